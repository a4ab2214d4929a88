// An app by the official SDK: it shows the tickets it is given, and calls a tool by a button.
import { App } from "@modelcontextprotocol/ext-apps";

const app = new App({ name: "Official app", version: "1.0.0" });
const list = document.querySelector("ul");
const show = ({ structuredContent }) => {
  const items = structuredContent.tickets.map((ticket) => {
    const item = document.createElement("li");
    item.textContent = `${ticket.status} #${ticket.id}`;
    item.dataset.id = ticket.id;
    return item;
  });
  list.replaceChildren(...items);
};
app.ontoolresult = show;
document.querySelector("button").addEventListener("click", async () => {
  const ticket_id = Number(list.firstElementChild.dataset.id);
  show(await app.callServerTool({ name: "move_on_board", arguments: { ticket_id, status: "solved" } }));
});
app.connect().then(() => {
  document.querySelector("output").textContent = app.getHostVersion().name;
});
