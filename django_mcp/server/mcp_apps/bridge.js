// The page's side of MCP Apps (io.modelcontextprotocol/ui, 2026-01-26): JSON-RPC by postMessage.
// Plain JavaScript, as it stands: it is written into each page, without lines such as these.
window.mcpApp = (() => {
  "use strict";
  const about = JSON.parse(document.currentScript.dataset.mcpApp);
  const root = document.documentElement;
  const host = { info: null, capabilities: {}, context: {} };
  const waiting = new Map();
  const handlers = new Map();
  const latest = new Map();
  let lastId = 0;

  const send = (message) => parent.postMessage({ jsonrpc: "2.0", ...message }, "*");
  const notify = (method, params = {}) => send({ method, params });
  const request = (method, params = {}) =>
    new Promise((resolve, reject) => {
      waiting.set(++lastId, { resolve, reject });
      send({ id: lastId, method, params });
    });

  // Events. Whoever comes late is told the latest: results may be there before a script is.
  const on = (name, handler) => {
    if (!handlers.has(name)) handlers.set(name, []);
    handlers.get(name).push(handler);
    if (latest.has(name)) queueMicrotask(() => handler(latest.get(name)));
  };
  const tell = (name, value) => {
    latest.set(name, value);
    return (handlers.get(name) ?? []).map((handler) => handler(value));
  };

  // How the host looks, and how much room there is.
  const adapt = ({ theme, styles, containerDimensions: room }) => {
    if (theme) {
      root.dataset.theme = theme;
      root.style.colorScheme = theme;
    }
    for (const [name, value] of Object.entries(styles?.variables ?? {})) {
      if (name.startsWith("--")) root.style.setProperty(name, value ?? "");
    }
    const fonts = styles?.css?.fonts;
    if (fonts) {
      const id = "mcp-host-fonts";
      const sheet = document.getElementById(id) ?? document.head.appendChild(document.createElement("style"));
      Object.assign(sheet, { id, textContent: fonts });
    }
    if (!room) return;
    const size = (px) => (px ? `${px}px` : "");
    Object.assign(root.style, {
      height: "height" in room ? "100vh" : "",
      maxHeight: size(room.maxHeight),
      width: "width" in room ? "100vw" : "",
      maxWidth: size(room.maxWidth),
    });
  };

  let reported = "";
  let isMeasuring = false;
  const measure = () => {
    isMeasuring = false;
    const { height } = root.style;
    root.style.height = "max-content";
    const size = { width: Math.ceil(innerWidth), height: Math.ceil(root.getBoundingClientRect().height) };
    root.style.height = height;
    const said = JSON.stringify(size);
    if (said !== reported) notify("ui/notifications/size-changed", size);
    reported = said;
  };
  const watchSize = () => {
    const observer = new ResizeObserver(() => {
      if (!isMeasuring) requestAnimationFrame(measure);
      isMeasuring = true;
    });
    [root, document.body].forEach((element) => observer.observe(element));
  };

  // What the host sends.
  const notifications = {
    "ui/notifications/tool-input-partial": ({ arguments: given }) => tell("partial-input", given ?? {}),
    "ui/notifications/tool-input": ({ arguments: given }) => tell("input", given ?? {}),
    "ui/notifications/tool-result": (result) => tell("result", result),
    "ui/notifications/tool-cancelled": ({ reason }) => tell("cancelled", reason ?? ""),
    "ui/notifications/host-context-changed": (changed) => {
      Object.assign(host.context, changed);
      adapt(changed);
      tell("context", host.context);
    },
  };
  const requests = {
    ping: () => ({}),
    "ui/resource-teardown": async (params) => {
      await Promise.all(tell("teardown", params));
      return {};
    },
  };
  const answer = async ({ id, method, params = {} }) => {
    const handle = Object.hasOwn(requests, method) && requests[method];
    if (!handle) return send({ id, error: { code: -32601, message: `Unknown method: ${method}` } });
    try {
      send({ id, result: await handle(params) });
    } catch (error) {
      send({ id, error: { code: -32000, message: String(error?.message ?? error) } });
    }
  };
  addEventListener("message", ({ source, data }) => {
    if (source !== parent || data?.jsonrpc !== "2.0") return;
    if (data.method !== undefined) {
      if (data.id !== undefined) answer(data);
      else if (Object.hasOwn(notifications, data.method)) notifications[data.method](data.params ?? {});
      return;
    }
    const { resolve, reject } = waiting.get(data.id) ?? {};
    waiting.delete(data.id);
    if (data.error) reject?.(Object.assign(new Error(data.error.message), data.error));
    else resolve?.(data.result);
  });

  const connect = async () => {
    const { name, version, displayModes: availableDisplayModes } = about;
    const said = await request("ui/initialize", {
      protocolVersion: "2026-01-26",
      appInfo: { name, version },
      appCapabilities: { availableDisplayModes },
    });
    host.info = said.hostInfo;
    host.capabilities = said.hostCapabilities ?? {};
    host.context = { ...said.hostContext };
    adapt(host.context);
    tell("context", host.context);
    notify("ui/notifications/initialized");
    watchSize();
    return host;
  };
  // Without a host, as when somebody opens the page by itself, there is nobody to connect to.
  const ready = new Promise((resolve, reject) => {
    if (parent === window) return;
    const begin = () => connect().then(resolve, reject);
    if (document.readyState === "loading") addEventListener("DOMContentLoaded", begin);
    else begin();
  });

  const openLink = (url) => request("ui/open-link", { url });
  const log = (level, data) => {
    if (host.capabilities.logging) notify("notifications/message", { level, data, logger: about.name });
  };
  // A frame cannot leave itself: links are opened by the host.
  addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href]");
    if (!link || event.defaultPrevented || !/^https?:$/.test(link.protocol)) return;
    event.preventDefault();
    openLink(link.href).catch((error) => log("warning", `${link.href}: ${error.message}`));
  });

  return {
    host,
    ready,
    on,
    callTool: (name, given = {}) => request("tools/call", { name, arguments: given }),
    readResource: (uri) => request("resources/read", { uri }),
    openLink,
    sendMessage: (text) => request("ui/message", { role: "user", content: [{ type: "text", text }] }),
    updateModelContext: (context) => request("ui/update-model-context", context),
    requestDisplayMode: (mode) => request("ui/request-display-mode", { mode }),
    log,
  };
})();
