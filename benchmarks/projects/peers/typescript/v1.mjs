// The TypeScript SDK v1 with sessions in memory, in the Express application that it ships.
// JSON=1 answers by JSON instead of events, its default.
import { randomUUID } from "node:crypto";

import { createMcpExpressApp } from "@modelcontextprotocol/sdk/server/express.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";

import { registerTools } from "./tools.mjs";

const transports = new Map();
const app = createMcpExpressApp();

app.all("/mcp", async (request, response) => {
  const transport = transports.get(request.headers["mcp-session-id"]) ?? (await opened());
  await transport.handleRequest(request, response, request.body);
});

async function opened() {
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    enableJsonResponse: Boolean(process.env.JSON),
    onsessioninitialized: (id) => transports.set(id, transport),
  });
  const server = new McpServer({ name: "bench", version: "1" }, { capabilities: { logging: {} } });
  registerTools(server, (params, extra) =>
    extra.sendNotification({ method: "notifications/message", params }),
  );
  await server.connect(transport);
  return transport;
}

app.listen(Number(process.argv[2]), "127.0.0.1");
