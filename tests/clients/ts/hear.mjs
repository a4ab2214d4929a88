// node hear.mjs VERSION URL: the official client, version 1 or 2, in a session, prints each change
// that it hears of, and stays until its process is ended.

const [version, url] = process.argv.slice(2);
const INFO = { name: "hearer", version: "1.0" };
const METHOD = "notifications/tools/list_changed";
const print = () => console.log(METHOD);

if (version === "1") {
  const { Client } = await import("@modelcontextprotocol/sdk/client/index.js");
  const transports = await import("@modelcontextprotocol/sdk/client/streamableHttp.js");
  const { ToolListChangedNotificationSchema } = await import("@modelcontextprotocol/sdk/types.js");
  const client = new Client(INFO);
  client.setNotificationHandler(ToolListChangedNotificationSchema, print);
  await client.connect(new transports.StreamableHTTPClientTransport(new URL(url)));
} else {
  const sdk = await import("@modelcontextprotocol/client");
  const client = new sdk.Client(INFO, { versionNegotiation: { mode: "legacy" } });
  client.setNotificationHandler(METHOD, print);
  await client.connect(new sdk.StreamableHTTPClientTransport(new URL(url)));
}
