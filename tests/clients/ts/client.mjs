// The client of @modelcontextprotocol/client 2.x, which knows both eras: node client.mjs URL MODE
// MODE is "legacy", "auto", or the revision to insist on.

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

import { INFO, recordingFetch, report, walk } from "./walk.mjs";

const [url, mode] = process.argv.slice(2);
const traffic = [];
const transport = new StreamableHTTPClientTransport(new URL(url), {
  fetch: recordingFetch(traffic),
});
const client = new Client(INFO, {
  versionNegotiation: { mode: ["legacy", "auto"].includes(mode) ? mode : { pin: mode } },
});
await client.connect(transport);
report("connected", {
  protocolVersion: client.getNegotiatedProtocolVersion(),
  serverInfo: client.getServerVersion(),
  instructions: client.getInstructions(),
});
await walk(client);
if (client.getProtocolEra() === "legacy") await transport.terminateSession();
await client.close();
report("traffic", traffic);
