// The client of @modelcontextprotocol/sdk 1.x, which knows the legacy era alone: node sdk.mjs URL
// legacy [converse [STEP TO LEAVE OUT ...]]

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import * as types from "@modelcontextprotocol/sdk/types.js";

import { CAPABILITIES, Talk } from "./converse.mjs";
import { INFO, recordingFetch, report, walk } from "./walk.mjs";

const SCHEMAS = {
  "elicitation/create": types.ElicitRequestSchema,
  "sampling/createMessage": types.CreateMessageRequestSchema,
  "roots/list": types.ListRootsRequestSchema,
  "notifications/message": types.LoggingMessageNotificationSchema,
  "notifications/elicitation/complete": types.ElicitationCompleteNotificationSchema,
  "notifications/resources/updated": types.ResourceUpdatedNotificationSchema,
  "notifications/tools/list_changed": types.ToolListChangedNotificationSchema,
  "notifications/prompts/list_changed": types.PromptListChangedNotificationSchema,
  "notifications/resources/list_changed": types.ResourceListChangedNotificationSchema,
};

const [url, , what = "walk", ...without] = process.argv.slice(2);
const traffic = [];
const transport = new StreamableHTTPClientTransport(new URL(url), {
  fetch: recordingFetch(traffic),
});
const client = new Client(INFO, { capabilities: what === "walk" ? {} : CAPABILITIES });
if (what === "walk") {
  await client.connect(transport);
  report("connected", {
    protocolVersion: transport.protocolVersion,
    serverInfo: client.getServerVersion(),
    instructions: client.getInstructions(),
  });
  await walk(client);
} else {
  const talk = new Talk(client, {
    handle: (method, answer) =>
      client.setRequestHandler(SCHEMAS[method], ({ params }) => answer(params ?? {})),
    on: (method, hear) =>
      client.setNotificationHandler(SCHEMAS[method], ({ params }) => void hear(params ?? {})),
    call: (params, options) => client.callTool(params, types.CallToolResultSchema, options),
  });
  await client.connect(transport);
  await talk.hold(transport.protocolVersion, without);
}
await transport.terminateSession();
await client.close();
report("traffic", traffic);
