// The client of @modelcontextprotocol/client 2.x, which knows both eras: node client.mjs URL MODE
// [converse [STEP TO LEAVE OUT ...]]. MODE is "legacy", "auto", or the revision to insist on.

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

import { CAPABILITIES, Talk } from "./converse.mjs";
import { INFO, recordingFetch, report, walk } from "./walk.mjs";

const [url, mode, what = "walk", ...without] = process.argv.slice(2);
const traffic = [];
const transport = new StreamableHTTPClientTransport(new URL(url), {
  fetch: recordingFetch(traffic),
});
const client = new Client(INFO, {
  capabilities: what === "walk" ? {} : CAPABILITIES,
  versionNegotiation: { mode: ["legacy", "auto"].includes(mode) ? mode : { pin: mode } },
});
if (what === "walk") {
  await client.connect(transport);
  report("connected", {
    protocolVersion: client.getNegotiatedProtocolVersion(),
    serverInfo: client.getServerVersion(),
    instructions: client.getInstructions(),
  });
  await walk(client);
} else {
  const talk = new Talk(client, {
    handle: (method, answer) => client.setRequestHandler(method, ({ params }) => answer(params)),
    on: (method, hear) => client.setNotificationHandler(method, ({ params }) => void hear(params)),
    call: (params, options) => client.callTool(params, options),
  });
  await client.connect(transport);
  await talk.hold(client.getNegotiatedProtocolVersion(), without);
}
if (client.getProtocolEra() === "legacy") await transport.terminateSession();
await client.close();
report("traffic", traffic);
