// Holds the double to a real server: the same requests to both, the same shapes back. The double
// says what the real model has just said, so whatever differs is the wire. Needs the real server
// and its small model; skipped by name where they have not been fetched.
import { deepStrictEqual, ok as assert, strictEqual } from "node:assert";
import { hasRealLlama, REAL_LLAMA_MISSING, startRealLlama } from "../real_llama.ts";
import { type LlamaDouble, startLlamaDouble } from "./double.ts";
import { isObject, listOf, numberOf, parsed } from "./json_value.ts";
import { ask, events, raw, type RawAnswer, said } from "./raw_client.ts";
import { call, say, speak, type Speech } from "./turn.ts";

const IS_HERE = hasRealLlama();
const named = (claim: string) => IS_HERE ? claim : `${claim} (skipped: ${REAL_LLAMA_MISSING})`;

const user = (content: string) => ({ role: "user", content });
const TOOLS = [{
  type: "function",
  function: {
    name: "read",
    description: "Read a file",
    parameters: { type: "object", properties: { path: { type: "string" } }, required: ["path"] },
  },
}];
const fixed = { temperature: 0, stream: true, id_slot: 0, cache_prompt: true };

type Both = { readonly real: number; readonly double: number; readonly server: LlamaDouble };

/** Both servers, with the double set up as the real one is. */
async function both(cleanup: AsyncDisposableStack): Promise<Both> {
  const real = await startRealLlama();
  assert(real !== null);
  cleanup.defer(() => real.stop());
  const server = await startLlamaDouble({
    template: "qwen2.5",
    profile: "newer",
    slots: 2,
    nCtx: 8192,
    metrics: true,
  });
  cleanup.defer(() => server.stop());
  return { real: real.port, double: server.port, server };
}

/** Where a value's form is written down: member names and kinds, never the values. */
function shape(value: unknown): unknown {
  if (Array.isArray(value)) return value.length === 0 ? [] : [shape(value[0])];
  if (!isObject(value)) return value === null ? "null" : typeof value;
  return Object.fromEntries(
    Object.keys(value).toSorted().filter((key) => !OPEN_ENDED.includes(key))
      .map((key) => [key, shape(value[key])]),
  );
}

/** Members whose own members follow the build's list of options; the double sends a selection. */
const OPEN_ENDED = ["params", "models"];

function shapeOf(answer: RawAnswer): unknown {
  const value = parsed(answer.text);
  return { status: answer.status, type: contentType(answer), body: shape(value) };
}

function contentType(answer: RawAnswer): string {
  return /content-type: ([^\r\n]*)/i.exec(answer.head)?.[1] ?? "";
}

/** The distinct forms of a stream's events, in order. */
function streamShape(answer: RawAnswer): unknown {
  const shapes = events(answer.text).map((event) => JSON.stringify(shape(event)));
  return {
    status: answer.status,
    type: contentType(answer),
    ending: answer.ending,
    done: said(answer.text).done,
    events: shapes.filter((text, i) => text !== shapes[i - 1]).map((text) => parsed(text)),
  };
}

/** What the double must say to say the same. */
function echo(answer: RawAnswer): Speech {
  const { content, calls } = said(answer.text);
  return speak(
    ...(content === "" ? [] : [say(content)]),
    ...calls.map((c) => call(c.name, c.args)),
  );
}

async function same(ports: Both, method: string, path: string, body?: unknown): Promise<void> {
  const real = await raw(ports.real, method, path, body);
  const double = await raw(ports.double, method, path, body);
  deepStrictEqual(shapeOf(double), shapeOf(real), `${method} ${path}`);
}

async function sameSmallAnswers(ports: Both): Promise<void> {
  for (const path of ["/health", "/props", "/slots", "/v1/models", "/models", "/nope"]) {
    await same(ports, "GET", path);
  }
  await same(ports, "POST", "/tokenize", { content: "Hi there<|im_end|>" });
  await same(ports, "POST", "/tokenize", { content: "Hi", with_pieces: true });
  await same(ports, "POST", "/detokenize", { tokens: [1, 2] });
  const messages = [user("x"), { role: "assistant", content: "y" }, user("z")];
  await same(ports, "POST", "/apply-template", { messages, tools: TOOLS });
  await same(ports, "POST", "/v1/chat/completions/input_tokens", { messages });
  for (const body of [{}, { id: "x", action: "y" }, { id: "x", action: "reasoning_end" }]) {
    await same(ports, "POST", "/v1/chat/completions/control", body);
  }
  await same(ports, "POST", "/slots/0?action=erase", {});
  await same(ports, "POST", "/props", {});
  await same(ports, "POST", "/v1/streams/lookup", { conversation_ids: ["x"] });
  await same(ports, "GET", "/v1/stream?conv_id=x");
}

const assistant = (more: object) => ({ role: "assistant", ...more });
const calling = (args: string) => ({
  tools: TOOLS,
  messages: [
    user("x"),
    assistant({ tool_calls: [{ type: "function", function: { name: "read", arguments: args } }] }),
    user("y"),
  ],
});

const FAULTY: readonly unknown[] = [
  "{",
  {},
  { messages: null },
  { messages: "x" },
  { messages: [{ role: "user" }] },
  { messages: [{ content: "x" }] },
  { messages: [user("x"), assistant({ reasoning_content: "r" })] },
  { messages: [user("x"), assistant({ content: "", name: null }), user("y")] },
  { messages: [user("x"), assistant({ content: "", reasoning_content: null }), user("y")] },
  calling(""),
  calling('{"a":'),
  { messages: [user("x")], tool_choice: "zzz" },
  { messages: [user("x")], tools: TOOLS, grammar: 'root ::= "x"' },
  { messages: [user("x")], tools: TOOLS, logprobs: true, stream: true },
  { messages: [user("x")], temperature: "hot" },
  { messages: [user("x")], n: 5 },
  { messages: [user("x")], chat_template_kwargs: { enable_thinking: "no" } },
  { messages: [user("x"), assistant({ content: "a" }), assistant({ content: "b" })] },
  { messages: [user("x")], continue_final_message: true },
  { messages: [user("x")], grammar: "nonsense" },
  { messages: [user("word ".repeat(9000))] },
  { messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: "data:," } }] }] },
  { messages: [{ role: "user", content: [{ type: "zzz" }] }] },
  { tools: TOOLS, messages: calling("{}").messages.slice(0, 2) },
];

async function sameRefusals(ports: Both): Promise<void> {
  for (const body of FAULTY) {
    const verdict = async (port: number) => {
      const answer = await ask(port, body);
      const value = parsed(answer.text);
      const error = isObject(value) && isObject(value["error"]) ? value["error"] : {};
      const keys = Object.keys(error).toSorted();
      return { status: answer.status, code: error["code"], type: error["type"], keys };
    };
    const what = JSON.stringify(body).slice(0, 200);
    deepStrictEqual(await verdict(ports.double), await verdict(ports.real), what);
  }
}

async function sameStreams(ports: Both): Promise<void> {
  const hello = { ...fixed, messages: [user("Say hi")], max_tokens: 4 };
  const full = {
    return_progress: true,
    timings_per_token: true,
    stream_options: { include_usage: true },
  };
  const bodies: [object, "same" | "nothing"][] = [
    [hello, "same"],
    [{ ...hello, ...full }, "same"],
    [{ ...hello, logit_bias: [[2, 100]] }, "nothing"],
    [{ ...hello, messages: [user("Say hi"), assistant({ content: "Well, " })] }, "same"],
  ];
  for (const [body, words] of bodies) {
    const real = await ask(ports.real, body);
    const { content } = said(real.text);
    const own = content.startsWith("Well, ") ? content.slice("Well, ".length) : content;
    ports.server.script(() => words === "same" ? speak(say(own)) : speak());
    const double = await ask(ports.double, words === "same" ? { ...body, max_tokens: -1 } : body);
    // The double's tokens are its own, so only the reason for the end may differ.
    deepStrictEqual(streamShape(double), streamShape(real), JSON.stringify(body));
    strictEqual(said(double.text).content, content);
  }
  const whole = { ...hello, stream: false };
  ports.server.script(() => speak(say("Hi")));
  deepStrictEqual(
    shapeOf(await ask(ports.double, whole)),
    shapeOf(await ask(ports.real, whole)),
  );
  const slots = async (port: number) =>
    shape(listOf(parsed((await raw(port, "GET", "/slots")).text)));
  deepStrictEqual(await slots(ports.double), await slots(ports.real));
}

/** One finished exchange in which the file named is read. */
function example(path: string, text: string): unknown[] {
  const args = JSON.stringify({ path });
  return [
    user(`Read the file ${path}`),
    assistant({
      content: "",
      tool_calls: [{ id: path, type: "function", function: { name: "read", arguments: args } }],
    }),
    { role: "tool", tool_call_id: path, content: text },
    assistant({ content: `The file ${path} says: ${text}` }),
  ];
}

async function sameCallAndReplay(ports: Both): Promise<void> {
  const examples = [["a.txt", "tea"], ["b.txt", "milk"], ["c.txt", "rain"]]
    .flatMap(([path = "", text = ""]) => example(path, text));
  const body = {
    ...fixed,
    tools: TOOLS,
    timings_per_token: true,
    max_tokens: 80,
    messages: [...examples, user("Read the file d.txt")],
  };
  const real = await ask(ports.real, body);
  ports.server.script(() => echo(real));
  const double = await ask(ports.double, body);
  deepStrictEqual(streamShape(double), streamShape(real));
  const [theirs, ours] = [said(real.text), said(double.text)];
  deepStrictEqual([ours.finish, ours.calls[0]?.args], ["tool_calls", theirs.calls[0]?.args]);
  ports.server.script(() => speak(say("The file d.txt says: snow")));
  for (const [port, first] of [[ports.real, theirs], [ports.double, ours]] as const) {
    const made = first.calls[0];
    const fn = { name: made?.name, arguments: made?.args };
    const messages = [
      ...body.messages,
      assistant({
        content: first.content,
        tool_calls: [{ id: "own", type: "function", function: fn }],
      }),
      { role: "tool", tool_call_id: "own", content: "snow" },
    ];
    const second = said((await ask(port, { ...body, messages, max_tokens: 1 })).text).timings;
    const t = first.timings;
    const known = ["cache_n", "prompt_n", "predicted_n"].map((key) => numberOf(t[key], 0));
    strictEqual(second["cache_n"], known.reduce((sum, n) => sum + n, -1));
  }
}

Deno.test({
  name: named("startLlamaDouble() shows a client what a real server shows it"),
  ignore: !IS_HERE,
  fn: async (t) => {
    await using cleanup = new AsyncDisposableStack();
    const ports = await both(cleanup);
    await t.step("small endpoints have the same form", () => sameSmallAnswers(ports));
    await t.step("faulty requests get the same status and type", () => sameRefusals(ports));
    await t.step("streams have the same events in order", () => sameStreams(ports));
    await t.step("a call and its replay are the same", () => sameCallAndReplay(ports));
  },
});
