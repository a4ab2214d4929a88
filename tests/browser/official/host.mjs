// A host of apps by the official SDK: it calls ?tool= of ?endpoint= and shows its app.
import { Client } from "@modelcontextprotocol/client";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { AppBridge, getToolUiResourceUri, PostMessageTransport } from "@modelcontextprotocol/ext-apps/app-bridge";

const wishes = new URLSearchParams(location.search);
const info = { name: "official-host", version: "1.0" };
const extensions = { "io.modelcontextprotocol/ui": { mimeTypes: ["text/html;profile=mcp-app"] } };
const client = new Client(info, { capabilities: { extensions } });
await client.connect(new StreamableHTTPClientTransport(new URL(wishes.get("endpoint"))));

const { tools } = await client.listTools();
const tool = tools.find((each) => each.name === wishes.get("tool"));
const { contents: [page] } = await client.readResource({ uri: getToolUiResourceUri(tool) });
const { csp = {}, permissions } = page._meta?.ui ?? {};

const frame = document.createElement("iframe");
frame.title = "App";
frame.sandbox = "allow-scripts allow-same-origin";
const ready = new Promise((resolve) => {
  addEventListener("message", ({ source, data }) => {
    if (source === frame.contentWindow && data.method === "ui/notifications/sandbox-proxy-ready") resolve();
  });
});
frame.src = `${wishes.get("sandbox")}/sandbox.html?${new URLSearchParams({ csp: JSON.stringify(csp) })}`;
document.body.append(frame);
await ready;

const capabilities = { openLinks: {}, serverTools: {}, serverResources: {}, logging: {} };
const hostContext = { theme: wishes.get("theme") ?? "light", toolInfo: { id: 1, tool } };
const bridge = new AppBridge(client, info, capabilities, { hostContext });
const seen = { sizes: [], logs: [], links: [], faults: [], results: [] };
Object.assign(window, { seen, bridge });
bridge.onerror = (error) => seen.faults.push(String(error));
bridge.onsizechange = ({ width, height }) => {
  seen.sizes.push({ width, height });
  frame.style.height = `${height}px`;
};
bridge.onloggingmessage = (params) => seen.logs.push(params);
bridge.onopenlink = async ({ url }) => {
  seen.links.push(url);
  return {};
};
const initialized = new Promise((resolve) => {
  bridge.oninitialized = resolve;
});
await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow));
await bridge.sendSandboxResourceReady({ html: page.text, csp, permissions, sandbox: "allow-scripts" });
await initialized;
seen.app = bridge.getAppVersion();
const given = JSON.parse(wishes.get("arguments") ?? "{}");
await bridge.sendToolInput({ arguments: given });
await bridge.sendToolResult(await client.callTool({ name: tool.name, arguments: given }));
