// Gets an error as the last event of a stream, and reports how often the client comes back for what
// follows it, and of what it complains: node ended.mjs URL PACKAGE MILLISECONDS

import { INFO, recordingFetch, report } from "./walk.mjs";

const [url, name, milliseconds] = process.argv.slice(2);
const sdk = "@modelcontextprotocol/sdk";
const transports = name === sdk ? `${sdk}/client/streamableHttp.js` : name;
const { Client } = await import(name === sdk ? `${sdk}/client/index.js` : name);
const { StreamableHTTPClientTransport } = await import(transports);

const traffic = [];
const fetch = recordingFetch(traffic);
const back = () => traffic.filter(({ sent }) => sent["last-event-id"]);
const client = new Client(INFO, { versionNegotiation: { mode: "legacy" } });
const complaints = [];
client.onerror = (error) => complaints.push(String(error.message));
await client.connect(new StreamableHTTPClientTransport(new URL(url), { fetch }));
try {
  await client.getPrompt({ name: "regret" });
} catch (error) {
  report("error", error.code);
}
// It comes back after a second, if it does, and after as long again if it is not content.
for (let waited = 0; back().length < 2 && waited < milliseconds; waited += 50) {
  await new Promise((resolve) => setTimeout(resolve, 50));
}
report("back", back().map(({ status }) => status));
report("complaints", complaints);
await client.close();
