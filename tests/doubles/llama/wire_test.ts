// Guards the wire of the double: what a client sees of a healthy answer, in which order, and what it
// gets for a faulty request.
import { deepStrictEqual, match, ok as assert, strictEqual } from "node:assert";
import { startLlamaDouble } from "./double.ts";
import { isObject, listOf } from "./json_value.ts";
import { ask, events, json, openAsk, raw, said } from "./raw_client.ts";
import { call, inOrder, say, silent, speak, think, waitFor } from "./turn.ts";

const TOOLS = [{ type: "function", function: { name: "read", parameters: { type: "object" } } }];
const user = (content: string) => ({ role: "user", content });
const hello = (more: object = {}) => ({ messages: [user("hello")], stream: true, ...more });

Deno.test("startLlamaDouble() refuses each faulty request with the server's own status", async () => {
  await using cleanup = new AsyncDisposableStack();
  const double = await startLlamaDouble({ nCtx: 64 });
  cleanup.defer(() => double.stop());
  const assistant = (more: object) => ({ role: "assistant", ...more });
  const calling = (args: unknown) => ({
    messages: [
      user("x"),
      assistant({ tool_calls: [{ type: "function", function: { name: "f", arguments: args } }] }),
      user("y"),
    ],
  });
  const grammar = { messages: [user("x")], grammar: "root ::= 'x'", tools: TOOLS };
  const cases: [number, RegExp, unknown][] = [
    [500, /parse error/, "{"],
    [400, /'messages' is required/, {}],
    [400, /to be an array/, { messages: null }],
    [400, /All non-assistant messages/, { messages: [{ role: "user" }] }],
    [400, /either 'content' or/, { messages: [user("x"), assistant({ reasoning_content: "r" })] }],
    [500, /but is null/, { messages: [user("x"), assistant({ content: "", name: null })] }],
    [500, /but is null/, {
      messages: [user("x"), assistant({ content: "", reasoning_content: null }), user("y")],
    }],
    [500, /arguments as JSON/, calling("")],
    [500, /arguments as JSON/, calling('{"a":')],
    [500, /Jinja/, calling("[1]")],
    [400, /Invalid tool_choice: zzz/, hello({ tool_choice: "zzz" })],
    [400, /grammar constraints with tools/, grammar],
    [400, /logprobs is not supported/, hello({ tools: TOOLS, logprobs: true })],
    [400, /type must be number, but is string/, hello({ temperature: "hot" })],
    [400, /but got 5/, hello({ n: 5 })],
    [
      400,
      /expected boolean, got string/,
      hello({
        chat_template_kwargs: { enable_thinking: "no" },
      }),
    ],
    [400, /2 or more assistant/, {
      messages: [user("x"), assistant({ content: "a" }), assistant({ content: "b" })],
    }],
    [400, /Cannot set both/, hello({ continue_final_message: true })],
    [400, /failed to parse grammar/, hello({ grammar: "nonsense" })],
    [500, /No user query/, { messages: [{ role: "system", content: "x" }] }],
    [500, /must be at the beginning/, {
      messages: [user("x"), { role: "system", content: "late" }],
    }],
    [500, /image input/, {
      messages: [{ role: "user", content: [{ type: "image_url", image_url: {} }] }],
    }],
    [400, /exceeds the available context size/, { messages: [user("word ".repeat(80))] }],
  ];
  for (const [status, message, body] of cases) {
    const answer = await ask(double.port, body);
    strictEqual(answer.status, status, JSON.stringify(body));
    match(answer.text, message);
    match(answer.head, /application\/json; charset=utf-8/);
  }
  const over = await json(double.port, "POST", "/v1/chat/completions", cases.at(-1)?.[2]);
  const error = isObject(over["error"]) ? over["error"] : {};
  strictEqual(error["type"], "exceed_context_size_error");
  strictEqual(error["n_ctx"], 64);
});

Deno.test("startLlamaDouble() takes what the real server takes", async () => {
  await using cleanup = new AsyncDisposableStack();
  const double = await startLlamaDouble();
  cleanup.defer(() => double.stop());
  const calling = {
    role: "assistant",
    tool_calls: [{ type: "function", function: { name: "f", arguments: "{}" } }],
  };
  const bodies = [
    hello({ tool_choice: { type: "function", function: { name: "x" } }, unheard: { of: 1 } }),
    hello({ temperature: -1, top_p: 7, id_slot: 9 }),
    { messages: [user("x"), calling] },
    { messages: [user("x"), calling, { role: "tool", content: "r" }] },
    { messages: [{ role: "developer", content: "d" }, user("x")], max_tokens: null },
    { messages: [{ role: "user", content: [{ type: "text", text: "a" }] }] },
  ];
  for (const body of bodies) strictEqual((await ask(double.port, body)).status, 200);
  const newer = await startLlamaDouble({ profile: "newer" });
  cleanup.defer(() => newer.stop());
  const answer = await ask(newer.port, { messages: [user("x"), calling] });
  strictEqual(answer.status, 400);
  match(answer.text, /Cannot continue an assistant message that contains tool calls/);
});

Deno.test("startLlamaDouble() streams chunks in the server's order with one constant id", async () => {
  await using cleanup = new AsyncDisposableStack();
  const script = inOrder(
    speak(think("Greet."), say("Hi 😀"), call("read", { n: 7, path: "a" })),
  );
  const double = await startLlamaDouble({ script, batch: 10, model: "ornith" });
  cleanup.defer(() => double.stop());
  const body = hello({
    model: "something else",
    tools: TOOLS,
    return_progress: true,
    timings_per_token: true,
    stream_options: { include_usage: true },
  });
  const answer = await ask(double.port, body);
  match(answer.head, /^HTTP\/1\.1 200 OK/);
  for (const header of ["Content-Type: text/event-stream", "X-Accel-Buffering: no"]) {
    assert(answer.head.includes(header));
  }
  const { kinds, timings, usage, ...rest } = said(answer.text);
  const order = kinds.filter((kind, i) => kind !== kinds[i - 1]);
  deepStrictEqual(order, ["progress", "role", "reasoning", "content", "call", "finish", "usage"]);
  strictEqual(rest.content, "Hi 😀");
  strictEqual(rest.reasoning, "Greet.\n");
  strictEqual(rest.finish, "tool_calls");
  strictEqual(rest.calls[0]?.args, '{"n":7,"path":"a"}');
  match(rest.calls[0]?.id ?? "", /^[A-Za-z0-9]{32}$/);
  assert(answer.text.endsWith("data: [DONE]\n\n"));
  strictEqual(
    Number(usage["prompt_tokens"]),
    Number(timings["cache_n"]) + Number(timings["prompt_n"]),
  );
  strictEqual(usage["completion_tokens"], timings["predicted_n"]);
  const all = events(answer.text);
  strictEqual(new Set(all.map((e) => e["id"])).size, 1);
  match(String(all[0]?.["id"]), /^chatcmpl-[A-Za-z0-9]{32}$/);
  assert(all.every((e) => e["model"] === "ornith" && e["object"] === "chat.completion.chunk"));
  const progress = all.flatMap((e) => isObject(e["prompt_progress"]) ? [e["prompt_progress"]] : []);
  strictEqual(progress[0]?.["processed"], progress[0]?.["cache"]);
  strictEqual(progress.at(-1)?.["processed"], progress.at(-1)?.["total"]);
  const steps = progress.map((p) => Number(p["processed"]));
  deepStrictEqual(steps.slice(0, 3), [0, 10, 20]);
});

Deno.test("startLlamaDouble() puts timings on the finish chunk when no usage is asked", async () => {
  await using cleanup = new AsyncDisposableStack();
  const double = await startLlamaDouble({ script: () => speak(say("Hi")) });
  cleanup.defer(() => double.stop());
  const last = events((await ask(double.port, hello())).text).at(-1);
  assert(last !== undefined && isObject(last["timings"]));
  const whole = await json(double.port, "POST", "/v1/chat/completions", hello({ stream: false }));
  const choice = listOf(whole["choices"])[0];
  assert(isObject(choice) && isObject(choice["message"]));
  deepStrictEqual(choice["message"], { role: "assistant", content: "Hi" });
  assert(isObject(whole["usage"]) && isObject(whole["timings"]));
});

Deno.test("startLlamaDouble() cuts tool arguments where the script says", async () => {
  await using cleanup = new AsyncDisposableStack();
  const fragments = ["{", '"f":', "t", "r", "ue", ',"l":', "[1, ", "1]", "}"];
  const double = await startLlamaDouble({
    script: () => speak(call("read", fragments), call("read", {})),
  });
  cleanup.defer(() => double.stop());
  const { text } = await ask(double.port, hello({ tools: TOOLS }));
  const seen = events(text).flatMap((e) => {
    const found = /"tool_calls":\[\{"index":0.*"arguments":"((?:[^"\\]|\\.)*)"/.exec(
      JSON.stringify(e),
    );
    return found === null ? [] : [JSON.parse(`"${found[1]}"`)];
  });
  deepStrictEqual(seen, fragments);
  strictEqual(said(text).calls[1]?.args, "{}");
  assert(said(text).calls[0]?.id !== said(text).calls[1]?.id);
});

Deno.test("startLlamaDouble() obeys limits, stop strings and characters of two tokens", async () => {
  await using cleanup = new AsyncDisposableStack();
  const double = await startLlamaDouble();
  cleanup.defer(() => double.stop());
  const answer = async (script: () => ReturnType<typeof speak>, more: object) => {
    double.script(script);
    return said((await ask(double.port, hello(more))).text);
  };
  const off = { chat_template_kwargs: { enable_thinking: false } };
  const split = await answer(() => speak(say("😀")), { ...off, max_tokens: 1 });
  deepStrictEqual(split.kinds, ["finish"]);
  strictEqual(split.finish, "length");
  const none = await answer(() => speak(), off);
  deepStrictEqual([none.timings["predicted_n"], none.kinds], [1, ["role", "finish"]]);
  strictEqual(none.finish, "stop");
  const zero = await answer(() => speak(say("one two")), { ...off, max_tokens: 0 });
  deepStrictEqual([zero.content, zero.finish], ["one", "length"]);
  const first = await answer(() => speak(say("a b c d e")), {
    ...off,
    n_predict: 3,
    max_completion_tokens: 5,
    max_tokens: 9,
  });
  strictEqual(first.content, "a b c");
  const stopped = await answer(() => speak(say(["one S", "TO", "P two"])), {
    ...off,
    stop: "STOP",
  });
  deepStrictEqual([stopped.content, stopped.finish], ["one ", "stop"]);
  const almost = await answer(() => speak(say(["one S", "T", "U two"])), {
    ...off,
    stop: ["STOP"],
  });
  deepStrictEqual([almost.content, almost.finish], ["one STU two", "stop"]);
  strictEqual(almost.kinds.filter((k) => k === "content").length, 1);
  const thought = await answer(() => speak(think("a b c d e f"), say("x")), { max_tokens: 3 });
  deepStrictEqual([thought.content, thought.finish], ["", "length"]);
  const quiet = await answer(() => speak(silent("\n\n"), say("x")), off);
  strictEqual(quiet.timings["predicted_n"], 4);
  strictEqual(quiet.kinds.filter((k) => k === "content").length, 1);
});

Deno.test("startLlamaDouble() reads calls only where tools are declared", async () => {
  await using cleanup = new AsyncDisposableStack();
  const script = () => speak(call("read", { n: 1 }), call("read", { n: 2 }));
  const double = await startLlamaDouble({ script });
  cleanup.defer(() => double.stop());
  const plain = said((await ask(double.port, hello())).text);
  strictEqual(plain.calls.length, 0);
  match(plain.content, /^<tool_call>\n<function=read>/);
  const one = hello({ tools: TOOLS, parallel_tool_calls: false });
  strictEqual(said((await ask(double.port, one)).text).calls.length, 1);
  const none = hello({ tools: TOOLS, tool_choice: "none" });
  strictEqual(said((await ask(double.port, none)).text).finish, "stop");
});

Deno.test("startLlamaDouble() leaves the thought in the content when asked to", async () => {
  await using cleanup = new AsyncDisposableStack();
  const double = await startLlamaDouble({ script: () => speak(think("Hm."), say("Yes")) });
  cleanup.defer(() => double.stop());
  const { text } = await ask(double.port, hello({ reasoning_format: "none" }));
  strictEqual(said(text).content, "<think>\nHm.\n</think>\n\nYes");
});

Deno.test("startLlamaDouble() goes on with a trailing assistant message", async () => {
  await using cleanup = new AsyncDisposableStack();
  const double = await startLlamaDouble({ script: () => speak(think(" two"), say(" three")) });
  cleanup.defer(() => double.stop());
  const after = (more: object) => ({
    stream: true,
    messages: [user("x"), { role: "assistant", content: "", ...more }],
  });
  const content = said((await ask(double.port, after({ content: "one" }))).text);
  deepStrictEqual([content.reasoning, content.content], ["", "one three"]);
  const open = said((await ask(double.port, after({ reasoning_content: "one" }))).text);
  deepStrictEqual([open.reasoning, open.content], ["one two\n", " three"]);
});

Deno.test("startLlamaDouble() pings after the headers and only in silence", async () => {
  await using cleanup = new AsyncDisposableStack();
  const gate = Promise.withResolvers<void>();
  const script = () => speak(say("a"), waitFor(gate.promise), say("b"));
  const double = await startLlamaDouble({ script, pingUnitMs: 20 });
  cleanup.defer(() => double.stop());
  const stream = await openAsk(double.port, hello({ sse_ping_interval: 1 }));
  await stream.seen(":\n\n");
  gate.resolve();
  const { text } = await stream.answer();
  match(text, /"content":"a".*\n\n(:\n\n)+data: .*"content":"b"/);
  const off = await openAsk(double.port, hello({ sse_ping_interval: -1 }));
  assert(!(await off.answer()).text.includes(":\n\n"));
});

Deno.test("startLlamaDouble() asks for the key on all but the profile's public paths", async () => {
  await using cleanup = new AsyncDisposableStack();
  for (const profile of ["b10470", "newer"] as const) {
    const double = await startLlamaDouble({ profile, apiKey: "k" });
    cleanup.defer(() => double.stop());
    const status = async (path: string, headers = {}) =>
      (await raw(double.port, "GET", path, undefined, headers)).status;
    strictEqual(await status("/props"), 401);
    strictEqual(await status("/props", { Authorization: "Bearer x" }), 401);
    strictEqual(await status("/props", { Authorization: "Bearer k" }), 200);
    strictEqual(await status("/props", { "X-Api-Key": "k" }), 200);
    strictEqual(await status("/health"), 200);
    strictEqual(await status("/v1/models"), profile === "newer" ? 401 : 200);
    strictEqual((await ask(double.port, hello())).status, 401);
  }
});

Deno.test("startLlamaDouble() records every request with its times", async () => {
  await using cleanup = new AsyncDisposableStack();
  const double = await startLlamaDouble();
  cleanup.defer(() => double.stop());
  await ask(double.port, hello({ seed: 7 }));
  await raw(double.port, "GET", "/props?autoload=false");
  const [first, second] = double.record;
  deepStrictEqual([first?.method, first?.path, first?.body["seed"]], [
    "POST",
    "/v1/chat/completions",
    7,
  ]);
  deepStrictEqual([second?.path, second?.query], ["/props", "autoload=false"]);
  const times = [first?.arrivedMs, first?.firstByteMs, first?.closedMs].map(Number);
  deepStrictEqual(times, times.toSorted((a, b) => a - b));
  deepStrictEqual([first?.outcome, first?.slot, first?.cacheN], ["finished", 0, 0]);
});
