// The board shows what its tools return, and calls them. Everything is text: nothing is made HTML.
const element = (id) => document.getElementById(id);
const columns = [...document.querySelectorAll("[data-status]")];
const labelOf = (column) => column.querySelector("h2").firstChild.textContent.trim();
let replyingTo = null;

const button = (label, ticket, action, act) => {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = label;
  made.setAttribute("aria-label", `${label}: ticket ${ticket.id}`);
  made.dataset.key = `${ticket.id} ${action}`;
  made.addEventListener("click", act);
  return made;
};

const card = (ticket) => {
  const made = element("ticket").content.cloneNode(true);
  made.querySelector(".subject").textContent = ticket.subject;
  const about = made.querySelector(".about");
  about.textContent = [`#${ticket.id}`, ticket.customer, ticket.priority].join(" · ");
  about.dataset.priority = ticket.priority;
  const others = columns.filter((column) => column.dataset.status !== ticket.status);
  made.querySelector(".actions").append(
    ...others.map((column) =>
      button(labelOf(column), ticket, column.dataset.status, () => move(ticket, column)),
    ),
    button("Reply", ticket, "reply", () => reply(ticket)),
  );
  return made;
};

const show = ({ tickets }) => {
  const focused = document.activeElement?.dataset.key?.split(" ")[0];
  for (const column of columns) {
    const own = tickets.filter((ticket) => ticket.status === column.dataset.status);
    column.querySelector(".count").textContent = `(${own.length})`;
    column.querySelector("ul").replaceChildren(...own.map(card));
  }
  element("waiting").hidden = true;
  element("board").hidden = false;
  // Whoever works by the keyboard goes on at the ticket, wherever it is now.
  if (focused) document.querySelector(`[data-key^="${focused} "]`)?.focus();
};

const say = (text) => {
  element("said").textContent = text;
};

const showResult = (result) => {
  if (result.isError) say(result.content.map((block) => block.text).join("\n"));
  else show(result.structuredContent);
  return !result.isError;
};

const move = async (ticket, column) => {
  const { status } = column.dataset;
  try {
    const result = await mcpApp.callTool("move_on_board", { ticket_id: ticket.id, status });
    if (showResult(result)) say(`Ticket ${ticket.id} is now under ${labelOf(column)}.`);
  } catch (error) {
    say(error.message);
  }
};

const reply = (ticket) => {
  replyingTo = ticket;
  element("reply-title").textContent = `Reply to #${ticket.id} ${ticket.subject}`;
  element("reply").hidden = false;
  element("reply").querySelector("textarea").focus();
};
const endReply = () => {
  element("reply").hidden = true;
  document.querySelector(`[data-key="${replyingTo.id} reply"]`)?.focus();
};
element("cancel").addEventListener("click", endReply);
addEventListener("mcp-submit", ({ detail }) => {
  detail.arguments.ticket_id = replyingTo.id;
});
addEventListener("mcp-result", ({ detail: result }) => {
  if (result.isError) return;
  show(result.structuredContent);
  say(`Ticket ${replyingTo.id} has been answered.`);
  endReply();
});

mcpApp.on("result", showResult);
mcpApp.on("cancelled", () => say("The tickets were not loaded."));
