// Holds a conversation with the agent through @agentclientprotocol/sdk: it streams, runs a command, edits a file with a
// visible diff, asks permission both ways, and cancels. Exits non-zero with the first expectation that fails.
//   node sdk_client.mjs <folder with node_modules> <workspace> <outside> <agent argv...>
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const [packages, workspace, outside, ...argv] = process.argv.slice(2);
const require = createRequire(join(packages, "package.json"));
const acp = await import(pathToFileURL(require.resolve("@agentclientprotocol/sdk")));
const version = JSON.parse(readFileSync(join(packages, "node_modules/@agentclientprotocol/sdk/package.json"))).version;

const child = spawn(argv[0], argv.slice(1), { stdio: ["pipe", "pipe", "inherit"], cwd: "/" });
const exited = new Promise((resolve) => child.on("exit", (code, signal) => resolve({ code, signal })));
const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));

let updates = [];
let decide = () => { throw new Error("nobody expected to be asked"); };
const watchers = new Set();
const app = acp.client({ name: "sdk-client-test" })
  .onRequest(acp.methods.client.session.requestPermission, async (ctx) => decide(ctx.params))
  .onNotification(acp.methods.client.session.update, async (ctx) => {
    updates.push(ctx.params.update);
    for (const watcher of watchers) watcher();
  });

const texts = () => updates.filter((u) => u.sessionUpdate === "agent_message_chunk").map((u) => u.content.text).join("");
const calls = () => {
  const folded = new Map();
  for (const u of updates.filter((u) => u.sessionUpdate === "tool_call" || u.sessionUpdate === "tool_call_update")) {
    folded.set(u.toolCallId, { ...folded.get(u.toolCallId), ...u });
  }
  return [...folded.values()];
};
const until = (condition) => new Promise((resolve) => {
  const watcher = () => { if (condition()) { watchers.delete(watcher); resolve(); } };
  watchers.add(watcher);
  watcher();
});
const choose = (kind) => (params) => {
  assert.ok(params.toolCall.title && params.toolCall.rawInput, "a question shows what it is about");
  const option = params.options.find((o) => o.kind === kind);
  assert.ok(option, `${kind} is offered`);
  return { outcome: { outcome: "selected", optionId: option.optionId } };
};

await app.connectWith(stream, async (agent) => {
  const hello = await agent.request(acp.methods.agent.initialize, {
    protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: {}, clientInfo: { name: "sdk-client-test", version: "1" },
  });
  assert.equal(hello.protocolVersion, 1);
  assert.equal(hello.agentCapabilities.loadSession, true);
  const { sessionId } = await agent.request(acp.methods.agent.session.new, { cwd: workspace, mcpServers: [] });
  const prompt = (text) => {
    updates = [];
    return agent.request(acp.methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text }] });
  };

  let asked = 0;
  decide = (params) => { asked++; return choose("allow_once")(params); };
  assert.equal((await prompt("Make the change and report it.")).stopReason, "end_turn");
  assert.match(texts(), /I look around first\..*Everything is in place\./s);
  assert.ok(updates.filter((u) => u.sessionUpdate === "agent_message_chunk").length > 1, "text is streamed");
  const command = calls().find((c) => c.kind === "execute" && c.status === "completed");
  assert.match(JSON.stringify(command.content), /from-the-command/);
  const change = calls().find((c) => c.kind === "edit" && c.rawInput.old_string);
  const diff = change.content.find((c) => c.type === "diff");
  assert.equal(diff.path, join(workspace, "hello.txt"));
  assert.match(diff.oldText, /Hello, world/);
  assert.match(diff.newText, /Hello, reader/);
  assert.equal(asked, 1, "asked once");
  assert.equal(readFileSync(join(outside, "granted.txt"), "utf8"), "granted\n");
  console.log("ok   sdk: streams, runs a command, edits with a diff, asks and is allowed");

  decide = (params) => { asked++; return choose("reject_once")(params); };
  assert.equal((await prompt("Report it again.")).stopReason, "end_turn");
  assert.equal(asked, 2);
  assert.ok(!existsSync(join(outside, "rejected.txt")), "a rejected write is not done");
  assert.ok(calls().some((c) => c.status === "failed"));
  console.log("ok   sdk: asks and is refused");

  const answer = prompt("Talk at length.");
  await until(() => texts().length > 0);
  await agent.notify(acp.methods.agent.session.cancel, { sessionId });
  assert.equal((await answer).stopReason, "cancelled");
  assert.equal((await prompt("Still there?")).stopReason, "end_turn");
  console.log("ok   sdk: cancels and goes on");
});
child.stdin.end();
const end = await Promise.race([exited, new Promise((resolve) => setTimeout(() => resolve("did not exit"), 10000))]);
assert.deepEqual(end, { code: 0, signal: null }, "exits at end of input");
console.log(`ok   sdk: @agentclientprotocol/sdk ${version}, node ${process.version}`);
process.exit(0);
