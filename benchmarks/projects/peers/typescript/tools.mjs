// The tools, the same for both versions of the SDK.
import { setTimeout } from "node:timers/promises";
import * as z from "zod/v4";

const text = (value) => ({ content: [{ type: "text", text: String(value) }] });
const numbers = z.object({ a: z.int(), b: z.int() });
const told = z.object({ number: z.int(), pause: z.int().default(0) });
const noted = z.object({ title: z.string(), text: z.string(), urgent: z.boolean().default(false) });

export function registerTools(server, log) {
  server.registerTool(
    "add",
    { description: "Add two numbers.", inputSchema: numbers },
    async ({ a, b }) => text(a + b),
  );
  server.registerTool(
    "tell",
    {
      description: "Say three things, then return the number; wait, if asked to, after the first.",
      inputSchema: told,
    },
    async ({ number, pause }, extra) => {
      for (let count = 0; count < 3; count++) {
        await log({ level: "info", data: `${number} ${count}` }, extra);
        if (pause && !count) {
          await setTimeout(pause);
        }
      }
      return text(number);
    },
  );
  for (let number = 0; number < 48; number++) {
    server.registerTool(
      `note_${String(number).padStart(2, "0")}`,
      { description: "Take a note.", inputSchema: noted },
      async ({ title, text: body }) => text(`${title}: ${body}`),
    );
  }
}
