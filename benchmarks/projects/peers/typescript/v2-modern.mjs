// The TypeScript SDK v2 as it serves 2026-07-28: a server for each request.
import { createServer } from "node:http";

import { toNodeHandler } from "@modelcontextprotocol/node";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";

import { registerTools } from "./tools.mjs";

const handler = createMcpHandler(() => {
  const server = new McpServer({ name: "bench", version: "1" }, { capabilities: { logging: {} } });
  registerTools(server, (data, context) => context.mcpReq.log(data.level, data.data));
  return server;
});

createServer(toNodeHandler(handler)).listen(Number(process.argv[2]), "127.0.0.1");
