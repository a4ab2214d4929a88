// The client of @modelcontextprotocol/sdk 1.x, which knows the legacy era alone: node sdk.mjs URL

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

import { INFO, recordingFetch, report, walk } from "./walk.mjs";

const [url] = process.argv.slice(2);
const traffic = [];
const transport = new StreamableHTTPClientTransport(new URL(url), {
  fetch: recordingFetch(traffic),
});
const client = new Client(INFO);
await client.connect(transport);
report("connected", {
  protocolVersion: transport.protocolVersion,
  serverInfo: client.getServerVersion(),
  instructions: client.getInstructions(),
});
await walk(client);
await transport.terminateSession();
await client.close();
report("traffic", traffic);
