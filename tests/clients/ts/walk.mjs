// Walks through the steps of ../walk.json with any of the official clients and prints, a JSON line
// for each step, what the client received.

import { readFileSync } from "node:fs";

const CALLS = {
  "tools/list": "listTools",
  "tools/call": "callTool",
  "resources/list": "listResources",
  "resources/templates/list": "listResourceTemplates",
  "resources/read": "readResource",
  "prompts/list": "listPrompts",
  "prompts/get": "getPrompt",
  "completion/complete": "complete",
};
const STEPS = JSON.parse(readFileSync(new URL("../walk.json", import.meta.url), "utf8"));

export const INFO = { name: "walker", version: "1.0" };

/** A `fetch` that notes what went over the wire in `traffic`. */
export function recordingFetch(traffic) {
  return async (url, init) => {
    const response = await fetch(url, init);
    traffic.push({
      method: init?.method ?? "GET",
      status: response.status,
      sent: Object.fromEntries(new Headers(init?.headers)),
      session: response.headers.get("mcp-session-id"),
    });
    return response;
  };
}

export function report(step, value) {
  console.log(JSON.stringify({ step, value }));
}

export async function walk(client) {
  for (const [step, { method, params }] of Object.entries(STEPS)) {
    report(step, await attempt(client, CALLS[method], params));
  }
}

async function attempt(client, call, params) {
  try {
    return await client[call](params);
  } catch (error) {
    // Anything but an answer of the server is a fault of the test, and ends it.
    if (typeof error.code !== "number") throw error;
    return { error: { code: error.code, message: error.message, data: error.data } };
  }
}
