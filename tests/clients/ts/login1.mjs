// A login with @modelcontextprotocol/sdk 1.x; see login.mjs.

import { UnauthorizedError } from "@modelcontextprotocol/sdk/client/auth.js";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

import { tell } from "./login.mjs";
import { INFO } from "./walk.mjs";

await tell({
  newClient: () => new Client(INFO),
  open: (url, authProvider) => new StreamableHTTPClientTransport(url, { authProvider }),
  call: (client, params, options) => client.callTool(params, undefined, options),
  finish: (transport, back) => transport.finishAuth(back.get("code")),
  isUnauthorized: (error) => error instanceof UnauthorizedError,
});
