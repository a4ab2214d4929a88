// A client of one endpoint, as far as a host of apps needs one.
export class Client {
  constructor(endpoint) {
    this.endpoint = endpoint;
    this.lastId = 0;
    this.headers = {
      "Accept": "application/json, text/event-stream",
      "Content-Type": "application/json",
    };
  }

  async send(message) {
    const response = await fetch(this.endpoint, {
      method: "POST",
      headers: this.headers,
      body: JSON.stringify({ jsonrpc: "2.0", ...message }),
    });
    this.headers["Mcp-Session-Id"] ??= response.headers.get("Mcp-Session-Id");
    const text = await response.text();
    if (!text) return null;
    if (!response.headers.get("Content-Type").startsWith("text/event-stream")) return JSON.parse(text);
    const events = text.split("\n").filter((line) => line.startsWith("data: {"));
    return JSON.parse(events.at(-1).slice("data: ".length));
  }

  async request(method, params = {}) {
    const answer = await this.send({ id: ++this.lastId, method, params });
    if (answer.error) throw Object.assign(new Error(answer.error.message), answer.error);
    return answer.result;
  }

  async open() {
    const protocolVersion = "2025-11-25";
    const mimeTypes = ["text/html;profile=mcp-app"];
    const extensions = { "io.modelcontextprotocol/ui": { mimeTypes } };
    const clientInfo = { name: "host", version: "1.0" };
    this.server = await this.request("initialize", { protocolVersion, capabilities: { extensions }, clientInfo });
    this.headers["MCP-Protocol-Version"] = protocolVersion;
    await this.send({ method: "notifications/initialized" });
    this.tools = (await this.request("tools/list")).tools;
  }

  tool(name) {
    return this.tools.find((tool) => tool.name === name);
  }

  async page(uri) {
    const { contents: [page] } = await this.request("resources/read", { uri });
    return page;
  }
}
