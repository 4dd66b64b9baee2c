// Guards the rehearsal model: it says what it is, asks for exactly the calls its rules name, reads
// results back, and runs with no permission but its loopback address.
import { deepStrictEqual, match, ok as assert, strictEqual } from "node:assert";
import { type LlamaDouble, startLlamaDouble } from "./double.ts";
import { ask, raw, said } from "./raw_client.ts";
import { rehearsal } from "./rehearsal.ts";

const TOOLS = ["clock", "recall", "memory", "find_tool", "call_tool"].map((name) => ({
  type: "function",
  function: { name, parameters: { type: "object", properties: {}, required: [] } },
}));
const system = { role: "system", content: "You are Boxmaker." };

async function answer(double: LlamaDouble, messages: readonly unknown[], tools: unknown = TOOLS) {
  const { text } = await ask(double.port, { messages: [system, ...messages], stream: true, tools });
  return said(text);
}

async function started(cleanup: AsyncDisposableStack): Promise<LlamaDouble> {
  const double = await startLlamaDouble({ script: rehearsal, template: "qwen3.6" });
  cleanup.defer(() => double.stop());
  return double;
}

const user = (content: string) => ({ role: "user", content });

Deno.test("rehearsal() calls no tool that is not offered and invents no result", async () => {
  await using cleanup = new AsyncDisposableStack();
  const double = await started(cleanup);
  const { calls, content } = await answer(double, [user("what time is it?")], []);
  strictEqual(calls.length, 0);
  match(content, /clock, but it is not offered/);
});

Deno.test("rehearsal() asks for the calls its rules name", async () => {
  await using cleanup = new AsyncDisposableStack();
  const double = await started(cleanup);
  const inner = (name: string, args: object) => ["call_tool", {
    name,
    arguments: JSON.stringify(args),
  }];
  const cases: [string, unknown[]][] = [
    ["remember that tea is green", ["memory", {
      action: "add",
      file: "memory",
      text: "tea is green",
    }]],
    ["Remember about me that I am 40.", ["memory", {
      action: "add",
      file: "user",
      text: "I am 40.",
    }]],
    ["note that the bus was late", ["memory", { action: "note", text: "the bus was late" }]],
    ["what do you know about tea?", ["recall", { query: "tea", k: 5 }]],
    ["recall green tea", ["recall", { query: "green tea", k: 5 }]],
    ["read notes/a.txt", inner("read_file", { path: "notes/a.txt" })],
    ["list /srv/x", inner("list_dir", { path: "/srv/x" })],
    ["search two words in /srv", inner("search_files", { path: "/srv", text: "two words" })],
    ['write say "hi" to a.txt', inner("write_file", { path: "a.txt", content: 'say "hi"' })],
    ["fetch https://example.org/a?b=c", inner("http_fetch", { url: "https://example.org/a?b=c" })],
    ["what time is it?", ["clock", {}]],
    ["find tool for reading files", ["find_tool", { query: "reading files" }]],
    ["from: owner\n\n> read a.txt", inner("read_file", { path: "a.txt" })],
    ["please call the tool clock", ["clock", {}]],
  ];
  for (const [text, [name, args]] of cases) {
    const { calls, finish } = await answer(double, [user(text)]);
    strictEqual(calls.length, 1, text);
    deepStrictEqual([calls[0]?.name, JSON.parse(calls[0]?.args ?? "")], [name, args], text);
    strictEqual(finish, "tool_calls");
  }
});

Deno.test("rehearsal() reads results and refusals back", async () => {
  await using cleanup = new AsyncDisposableStack();
  const double = await started(cleanup);
  const after = async (text: string, result: string) => {
    const { calls } = await answer(double, [user(text)]);
    const assistant = {
      role: "assistant",
      content: "",
      tool_calls: [{
        id: "1",
        type: "function",
        function: { name: calls[0]?.name, arguments: calls[0]?.args },
      }],
    };
    return (await answer(double, [user(text), assistant, {
      role: "tool",
      tool_call_id: "1",
      content: result,
    }])).content;
  };
  const lines = Array.from({ length: 30 }, (_, i) => `line ${i}`).join("\n");
  const read = await after("read a.txt", `Result of read_file (private):\n${lines}`);
  match(read, /a\.txt begins so:\n\n> line 0\n/);
  match(read, /\(18 more lines\)/);
  assert(!read.includes("Result of"));
  const denied = "read_file was not run: no grant covers it [no_grant]";
  match(await after("read a.txt", denied), /did not do it.*\n\n> read_file was not run/);
  match(await after("read a.txt", "Result of read_file (private):\nit failed"), /begins so/);
  const hits = "Result of recall (private):\n[1] note · today · private\nTea is green.";
  match(await after("recall tea", hits), /about tea:\n\n> \[1\] note.*\n> Tea is green\./);
  match(await after("recall tea", "tea is green"), /about tea:\n\n> tea is green/);
  match(await after("remember that x", "ok"), /Done: x/);
});

Deno.test("rehearsal() says what it is once, and whenever it is asked", async () => {
  await using cleanup = new AsyncDisposableStack();
  const double = await started(cleanup);
  const first = await answer(double, [user("hello")]);
  match(first.content, /I am the rehearsal model, not a real one/);
  const history = [user("hello"), { role: "assistant", content: first.content }];
  const second = await answer(double, [...history, user("blah")]);
  assert(!second.content.includes("rehearsal model"));
  match(second.content, /remember that/);
  const asked = await answer(double, [...history, user("who are you?")]);
  match(asked.content, /rehearsal model: a small set of fixed rules/);
  match((await answer(double, [user("every morning greet me")])).content, /```toml\nschedule = /);
  const thought = await answer(double, [user("think 7")]);
  strictEqual(thought.reasoning.trim().split(" ").length, 7);
});

Deno.test("main() serves the rehearsal with one loopback permission", async () => {
  const main = decodeURIComponent(new URL("main.ts", import.meta.url).pathname);
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "--no-prompt", "--cached-only", "--allow-net=127.0.0.1", main, "--rehearsal"],
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  const { value } = await reader.read();
  const port = Number(/:(\d+)\s/.exec(value ?? "")?.[1]);
  const health = await raw(port, "GET", "/health");
  child.kill("SIGTERM");
  const { code } = await child.status;
  await reader.cancel();
  deepStrictEqual([health.text, code], ['{"status":"ok"}', 0]);
});
