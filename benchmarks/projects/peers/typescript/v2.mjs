// The TypeScript SDK v2 with sessions in memory, on Node's own HTTP server.
// JSON=1 answers by JSON instead of events, its default.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";

import { NodeStreamableHTTPServerTransport } from "@modelcontextprotocol/node";
import { McpServer } from "@modelcontextprotocol/server";

import { registerTools } from "./tools.mjs";

const transports = new Map();

createServer(async (request, response) => {
  const transport = transports.get(request.headers["mcp-session-id"]) ?? (await opened());
  await transport.handleRequest(request, response);
}).listen(Number(process.argv[2]), "127.0.0.1");

async function opened() {
  const transport = new NodeStreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    enableJsonResponse: Boolean(process.env.JSON),
    onsessioninitialized: (id) => transports.set(id, transport),
  });
  const server = new McpServer({ name: "bench", version: "1" }, { capabilities: { logging: {} } });
  registerTools(server, (data, context) => context.mcpReq.log(data.level, data.data));
  await server.connect(transport);
  return transport;
}
