// Holds the conversation of ../python_conversation.py with any of the TypeScript clients and
// prints, a JSON line for each step, what the client asked, heard and answered.

import { readFileSync } from "node:fs";

import { report } from "./walk.mjs";

const MILLISECONDS = 30_000;
const SCRIPT = JSON.parse(readFileSync(new URL("../conversation.json", import.meta.url), "utf8"));
const LOG_LEVEL = "io.modelcontextprotocol/logLevel";
const EMMA = "book://emma";
const SANDITON = "book://sanditon";

export const CAPABILITIES = {
  elicitation: { form: {}, url: {} },
  sampling: { tools: {} },
  roots: {},
};

/** One conversation, and what reaches the client beside results. */
export class Talk {
  progress = [];
  logs = [];
  asked = [];
  completed = [];
  changed = [];
  signed = false;
  broken = [];

  /**
   * `handle(method, answer)` and `on(method, hear)` register handlers, which get parameters;
   * `call(params, options)` calls a tool: in these the clients differ.
   */
  constructor(client, { handle, on, call }) {
    this.client = client;
    this.callTool = call;
    handle("elicitation/create", (params) => this.elicit(params));
    handle("sampling/createMessage", (params) => this.sample(params));
    handle("roots/list", () => this.listRoots());
    on("notifications/message", ({ _meta, ...params }) => this.logs.push(params));
    on("notifications/elicitation/complete", (params) => this.completed.push(params.elicitationId));
    on("notifications/resources/updated", (params) => this.changed.push(params.uri));
    for (const list of ["tools", "prompts", "resources"]) {
      on(`notifications/${list}/list_changed`, () => this.changed.push(list));
    }
    client.onerror = (error) => this.broken.push(String(error.message));
  }

  async elicit({ _meta, ...params }) {
    this.asked.push(params);
    // The question that was asked last is answered first, the other when that call has ended.
    if (params.message === "Who signs Emma?") await until(() => this.signed);
    if (params.message === "Who signs Middlemarch?") await until(() => this.asked.length === 2);
    return SCRIPT.answers[params.message];
  }

  sample({ _meta, ...params }) {
    this.asked.push(params);
    const [last] = [params.messages.at(-1).content].flat();
    return SCRIPT.samples[last.type === "tool_result" ? last.content[0].text : last.text];
  }

  listRoots() {
    this.asked.push({});
    return { roots: SCRIPT.roots };
  }

  /** Say everything, but for some steps that a session does not have everywhere. */
  async hold(revision, without) {
    this.modern = revision >= "2026";
    report("connected", revision);
    for (const [step, words] of Object.entries(SCRIPT.calls)) {
      if (!(this.modern && words.resumes)) report(step, await this.call(words));
    }
    report("signed", await this.letSign());
    if (this.modern) {
      report("changes", await this.listen());
      report("lost", await this.loseAndListenAgain());
      report("cut off", await this.beCutOff());
    } else if (!without.includes("changes")) {
      report("changes", await this.subscribe());
    }
    report("called off", [await this.callOff("doze"), await this.callOff("watch")]);
  }

  /** Call a tool, and give what was heard besides. */
  async call({ name, arguments: given, level }) {
    const params = { name, arguments: given };
    if (level && this.modern) params._meta = { [LOG_LEVEL]: level };
    else if (level) await this.client.setLoggingLevel(level);
    const heard = { progress: [], logs: [], asked: [], completed: [] };
    Object.assign(this, heard);
    return { ...(await this.result(params)), ...heard };
  }

  async result(params, options) {
    const onprogress = (progress) => this.progress.push(progress);
    try {
      const result = await this.callTool(params, { onprogress, timeout: MILLISECONDS, ...options });
      return { result };
    } catch (error) {
      return { error: { code: error.code, message: error.message } };
    }
  }

  /** Call twice at once; see `elicit`. */
  async letSign() {
    this.asked = [];
    const ended = [];
    const sign = async (title) => {
      const { result } = await this.result({ name: "sign", arguments: { title } });
      ended.push(result.content[0].text);
      this.signed = true;
    };
    const first = sign("Emma");
    await until(() => this.asked.length === 1);
    await Promise.all([first, sign("Middlemarch")]);
    return { ended, asked: this.asked.map(({ message }) => message) };
  }

  /** Hear of changes on the session's own stream, which breaks off after the first. */
  async subscribe() {
    this.changed = [];
    await this.client.subscribeResource({ uri: EMMA });
    await this.change("relabel", { slug: "sanditon" });
    await this.heardAfter(EMMA, "relabel", { slug: "emma" });
    for (const what of ["tools", "prompts", "resources"]) {
      await this.heardAfter(what, "rearrange", { what });
    }
    await this.client.unsubscribeResource({ uri: EMMA });
    await this.change("relabel", { slug: "emma" });
    await this.heardAfter("tools", "rearrange", { what: "tools" });
    return { heard: this.changed };
  }

  /** Hear of the changes that were asked for. */
  async listen() {
    const stream = await this.listening({ toolsListChanged: true, resourceSubscriptions: [EMMA] });
    await this.change("relabel", { slug: "sanditon" });
    await this.heardAfter(EMMA, "relabel", { slug: "emma" });
    await this.change("rearrange", { what: "prompts" });
    await this.heardAfter("tools", "rearrange", { what: "tools" });
    await stream.close();
    return { honored: stream.honoredFilter, heard: this.changed };
  }

  /** Lose the stream after the first change, which is said; and listen again. */
  async loseAndListenAgain() {
    const filter = { resourceSubscriptions: [SANDITON] };
    const first = await this.listening(filter);
    await this.heardAfter(SANDITON, "relabel", { slug: "sanditon" });
    const lost = (await first.closed) === "remote";
    const second = await this.listening(filter);
    await this.heardAfter(SANDITON, "relabel", { slug: "sanditon" });
    await second.close();
    return { lost, heard: this.changed };
  }

  async listening(filter) {
    const stream = await this.client.listen(filter, { timeout: MILLISECONDS });
    this.changed = [];
    return stream;
  }

  /** Lose the stream of a call, and give what the client says to that. */
  async beCutOff() {
    this.broken = [];
    const name = `cut off ${crypto.randomUUID()}`;
    const giveUp = new AbortController();
    const calling = this.result({ name: "doze", arguments: { name } }, { signal: giveUp.signal });
    await this.noted(name);
    await until(() => this.broken.length);
    // This client's call would go on to wait until its time-out.
    giveUp.abort();
    await calling;
    return this.broken[0];
  }

  /** Call off a call when it has begun, and wait until its function has noted that. */
  async callOff(tool) {
    const name = `${tool} ${crypto.randomUUID()}`;
    const calling = new AbortController();
    const onprogress = () => calling.abort("enough");
    await this.result({ name: tool, arguments: { name } }, { onprogress, signal: calling.signal });
    await this.noted(name);
    return tool;
  }

  async noted(name) {
    await until(() => this.change("noted", { name }));
  }

  async change(name, given) {
    const result = await this.callTool({ name, arguments: given }, { timeout: MILLISECONDS });
    if (result.isError) throw new Error(JSON.stringify(result));
    return result.structuredContent?.result ?? result.structuredContent;
  }

  /** Change something, and wait until word of it has come. */
  async heardAfter(change, tool, given) {
    const times = () => this.changed.filter((each) => each === change).length;
    const before = times();
    await this.change(tool, given);
    await until(() => times() > before);
  }
}

/** Wait for a condition. */
async function until(condition) {
  const end = Date.now() + MILLISECONDS;
  while (!(await condition())) {
    if (Date.now() > end) throw new Error(`Never true: ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
