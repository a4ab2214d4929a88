// A login with @modelcontextprotocol/client 2.x; see login.mjs.

import {
  Client,
  StreamableHTTPClientTransport,
  UnauthorizedError,
} from "@modelcontextprotocol/client";

import { tell } from "./login.mjs";
import { INFO } from "./walk.mjs";

await tell({
  newClient: () => new Client(INFO, { versionNegotiation: { mode: "auto" } }),
  open: (url, authProvider) => new StreamableHTTPClientTransport(url, { authProvider }),
  call: (client, params, options) => client.callTool(params, options),
  finish: (transport, back) => transport.finishAuth(back),
  isUnauthorized: (error) => error instanceof UnauthorizedError,
});
