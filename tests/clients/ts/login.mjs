// What both TypeScript clients do when they log in: node login1.mjs (or login2.mjs) SITE CLIENT_ID
// CALLBACK PYTHON PERSON. CLIENT_ID is "registration" or the URL of a document. The last line that is
// printed is the story, as JSON.

import { execFile } from "node:child_process";
import { promisify } from "node:util";

const SECONDS = 60;
const [site, clientId, callback, python, person] = process.argv.slice(2);
const run = promisify(execFile);

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Keeps a login in memory, and sends the person to agree. */
class Login {
  agreed = [];
  back = null;
  expires = null;

  get redirectUrl() {
    return callback;
  }

  get clientMetadataUrl() {
    return clientId === "registration" ? undefined : clientId;
  }

  get clientMetadata() {
    return {
      client_name: "TypeScript SDK",
      redirect_uris: [callback],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      token_endpoint_auth_method: "none",
    };
  }

  clientInformation() {
    return this.client;
  }

  saveClientInformation(client) {
    this.client = client;
  }

  tokens() {
    return this.kept;
  }

  saveTokens(tokens) {
    this.kept = tokens;
    this.expires = Date.now() + tokens.expires_in * 1000;
  }

  saveCodeVerifier(verifier) {
    this.verifier = verifier;
  }

  codeVerifier() {
    return this.verifier;
  }

  invalidateCredentials(scope) {
    if (scope === "all" || scope === "client") this.client = undefined;
    if (scope === "all" || scope === "tokens") this.kept = undefined;
  }

  async redirectToAuthorization(url) {
    this.agreed.push(Object.fromEntries(url.searchParams));
    const { stdout } = await run(python, [person, "--stay", url.href]);
    this.back = new URL(stdout.trim()).searchParams;
  }
}

/**
 * Logs in with a client, and tells the story. `open` makes a transport for a URL and a login,
 * `call` calls a tool, `finish` has a transport take what came back, and `isUnauthorized` knows the error after which a
 * person was asked.
 */
export async function tell({ newClient, open, call, finish, isUnauthorized }) {
  const login = new Login();
  const url = new URL(`${site}/mcp`);
  let transport = open(url, login);
  let client = newClient();
  let waiting;
  const hasBegun = new Promise((resolve) => (waiting = resolve));

  async function attempt(action) {
    try {
      return await action();
    } catch (error) {
      if (!isUnauthorized(error)) throw error;
      await finish(transport, login.back);
      return action();
    }
  }

  async function connect() {
    try {
      await client.connect(transport);
    } catch (error) {
      if (!isUnauthorized(error)) throw error;
      await finish(transport, login.back);
      transport = open(url, login);
      client = newClient();
      await client.connect(transport);
    }
  }

  async function textOf(name) {
    const options = { onprogress: () => waiting(), timeout: SECONDS * 1000 };
    const result = await attempt(() => call(client, { name, arguments: {} }, options));
    return result.content[0].text;
  }

  async function said(name) {
    try {
      return await textOf(name);
    } catch (error) {
      return `${error.name}: ${error.message}`;
    }
  }

  await connect();
  const { tools } = await client.listTools();
  const story = { tools: tools.map((tool) => tool.name).sort() };
  story.who = await textOf("whoami");
  story.pay = await said("pay");
  const visits = login.agreed.length;
  while (Date.now() <= login.expires) await sleep(50);
  story.refreshed = await textOf("whoami");
  story.asked_again = login.agreed.length - visits;
  const calling = said("wait");
  await hasBegun;
  story.revoked = Number((await run(python, [person, "--revoke", site])).stdout);
  const begun = Date.now();
  story.ended = await calling;
  story.ended_after = (Date.now() - begun) / 1000;
  story.agreed = login.agreed;
  console.log(`\n${JSON.stringify(story)}`);
  process.exit(0);
}
