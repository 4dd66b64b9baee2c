// Guards the fault knobs: each one is seen on the wire as the knob says, and only then.
import { deepStrictEqual, match, ok as assert, strictEqual } from "node:assert";
import { type LlamaDouble, startLlamaDouble } from "./double.ts";
import { isObject, numberOf } from "./json_value.ts";
import { CONTEXT_ERROR, FORMAT_ERROR, type Knobs } from "./knobs.ts";
import { ask, events, json, openAsk, type RawAnswer, said } from "./raw_client.ts";
import { call, callInsideThinking, pause, say, speak, think, thinkForever } from "./turn.ts";

const TOOLS = [{ type: "function", function: { name: "read", parameters: { type: "object" } } }];
const OFF = { chat_template_kwargs: { enable_thinking: false } };
const body = (more: object = {}) => ({
  messages: [{ role: "user", content: "hello" }],
  stream: true,
  tools: TOOLS,
  ...OFF,
  ...more,
});

/** Asks once under `knobs`, then puts them at rest. */
async function under(
  double: LlamaDouble,
  knobs: Partial<Knobs>,
  more: object = {},
): Promise<RawAnswer> {
  double.set(knobs);
  const answer = await ask(double.port, body(more));
  double.calm();
  return answer;
}

Deno.test("Knobs delay the headers and answer with any status before them", async () => {
  await using cleanup = new AsyncDisposableStack();
  const double = await startLlamaDouble();
  cleanup.defer(() => double.stop());
  double.set({ delayHeadersMs: 60_000 });
  const late = await openAsk(double.port, body());
  const busy = async () => JSON.stringify(await json(double.port, "GET", "/slots"));
  while (!(await busy()).includes("true")) await new Promise((r) => setTimeout(r, 1));
  strictEqual(late.hasBytes(), false);
  late.leave();
  double.calm();
  for (const status of [401, 404, 500, 501, 503]) {
    const httpAnswer = { status, body: "proxy error: nothing", contentType: "text/plain" };
    const answer = await under(double, { httpAnswer });
    deepStrictEqual([answer.status, answer.text], [status, "proxy error: nothing"]);
  }
  const doubled = await under(double, { doubleConnectionHeader: true });
  strictEqual(doubled.head.match(/Connection: close/g)?.length, 2);
  double.script(() => ({ kind: "refusal", status: 500, type: "server_error", message: "no" }));
  const refused = await under(double, {});
  deepStrictEqual([refused.status, JSON.parse(refused.text).error.message], [500, "no"]);
});

Deno.test("Knobs cut and join writes without changing the text", async () => {
  await using cleanup = new AsyncDisposableStack();
  const double = await startLlamaDouble({ script: () => speak(say("Grüße 😀 und mehr")) });
  cleanup.defer(() => double.stop());
  const plain = await under(double, {});
  const whole = said(plain.text);
  const event = plain.text.split("\n\n")[1] ?? "";
  const insideCharacter = new TextEncoder().encode(event.split("ü")[0]).length + 1;
  for (const splitAt of [2, insideCharacter, -1]) {
    const cut = await under(double, { splitAt });
    strictEqual(said(cut.text).content, whole.content);
    assert(cut.reads.length > plain.reads.length, `${splitAt}`);
    const halves = cut.reads.map((read) => new TextDecoder().decode(read)).join("|");
    strictEqual(halves.includes("\ufffd"), splitAt === insideCharacter);
  }
  const every = await under(double, { splitEvery: 97 });
  strictEqual(said(every.text).content, whole.content);
  const joined = await under(double, { joinAll: true });
  strictEqual(said(joined.text).content, whole.content);
  const decoded = joined.reads.map((read) => new TextDecoder().decode(read));
  assert(decoded.some((read) => read.includes('"content":"Gr') && read.includes("[DONE]")));
});

Deno.test("Knobs change what surrounds the deltas", async () => {
  await using cleanup = new AsyncDisposableStack();
  const double = await startLlamaDouble({ script: () => speak(say("a b")), pingUnitMs: 5 });
  cleanup.defer(() => double.stop());
  assert(!said((await under(double, { noRole: true })).text).kinds.includes("role"));
  const progress = await under(double, { progressEvents: 500 }, { return_progress: true });
  strictEqual(said(progress.text).kinds.filter((kind) => kind === "progress").length, 500);
  const pinged = await under(double, { pingBetweenEvents: true });
  match(pinged.text, /\n\n:\n\ndata: /);
  strictEqual(said(pinged.text).content, "a b");
  const quiet = await under(double, { pauseAfter: { deltas: 1, ms: 40 } }, {
    sse_ping_interval: 1,
  });
  assert(!/"content":"a".*\n\n:\n\n/.test(quiet.text));
  const odd = await under(double, { extraFields: { novel: { a: 1 } }, unknownEvent: true });
  assert(events(odd.text).some((e) => e["object"] === "unheard.of"));
  assert(events(odd.text).some((e) => isObject(e["novel"])));
  const untimed = said((await under(double, { omitTimings: true })).text);
  deepStrictEqual([untimed.timings, untimed.done], [{}, true]);
  const usage = { stream_options: { include_usage: true } };
  assert(!said((await under(double, { omitUsage: true }, usage)).text).kinds.includes("usage"));
});

Deno.test("Knobs end a stream in each of the wrong ways", async () => {
  await using cleanup = new AsyncDisposableStack();
  const double = await startLlamaDouble({ script: () => speak(say("a b c d")) });
  cleanup.defer(() => double.stop());
  const failed = await under(double, { errorAfter: { deltas: 2, message: FORMAT_ERROR } });
  deepStrictEqual(
    [said(failed.text).content, said(failed.text).kinds.at(-1), failed.ending],
    ["a b", "error", "clean"],
  );
  assert(failed.text.includes(FORMAT_ERROR) && !failed.text.includes("[DONE]"));
  const noDone = await under(double, { noDone: true });
  deepStrictEqual([said(noDone.text).finish, said(noDone.text).done], ["stop", false]);
  const noFinish = await under(double, { noFinish: true });
  deepStrictEqual([said(noFinish.text).finish, said(noFinish.text).done], [null, true]);
  const ended = await under(double, { endAfter: 1 });
  deepStrictEqual([said(ended.text).content, ended.ending], ["a", "clean"]);
  const reset = await under(double, { resetAfter: 1 });
  deepStrictEqual([said(reset.text).content, reset.ending], ["a", "cut"]);
  const proxy = await under(double, { proxyErrorAfter: 1 });
  assert(proxy.text.endsWith("\n\nproxy error: Failed to read connection"));
  const whole = await under(double, { errorAfter: { deltas: 1, message: FORMAT_ERROR } }, {
    stream: false,
  });
  strictEqual(whole.status, 500);
  strictEqual(said((await under(double, {})).text).content, "a b c d");
});

Deno.test("Knobs make the model call tools wrongly", async () => {
  await using cleanup = new AsyncDisposableStack();
  const double = await startLlamaDouble();
  cleanup.defer(() => double.stop());
  const two = () => speak(call("read", { a: "x y" }), call("read", { b: "z" }));
  double.script(two);
  const same = said((await under(double, { duplicateToolIds: true })).text).calls;
  strictEqual(same[0]?.id, same[1]?.id);
  const mixed = await under(double, { interleaveCalls: true });
  deepStrictEqual(said(mixed.text).calls.map((c) => c.args), ['{"a":"x y"}', '{"b":"z"}']);
  const order = [...mixed.text.matchAll(/"tool_calls":\[\{"index":(\d)/g)].map((m) => m[1]);
  deepStrictEqual(order.slice(0, 4), ["0", "1", "0", "1"]);
  const cut = said((await under(double, { cutArgumentsAfter: 3 })).text);
  deepStrictEqual([cut.calls[0]?.args, cut.finish], ['{"a":"', "length"]);
  const dropped = said(
    (await under(double, { dropCalls: true }, { tool_choice: "required" })).text,
  );
  deepStrictEqual([dropped.calls.length, dropped.finish], [0, "stop"]);
  double.script(() => speak(call("read", { path: "not in the enum" })));
  strictEqual(said((await under(double, {})).text).finish, "tool_calls");
  double.script(() => speak(think("Let me"), callInsideThinking("read", { a: 1 })));
  const inside = await under(double, {}, { chat_template_kwargs: {}, verbose: true });
  deepStrictEqual(said(inside.text).reasoning, "Let me");
  strictEqual(said(inside.text).calls[0]?.args, '{"a":1}');
});

Deno.test("Knobs and budgets end a thought as the real server does", async () => {
  await using cleanup = new AsyncDisposableStack();
  const double = await startLlamaDouble({ script: () => speak(thinkForever(" on"), say("Done")) });
  cleanup.defer(() => double.stop());
  const thinking = { chat_template_kwargs: {} };
  const thought = async (more: object, knobs: Partial<Knobs> = {}) =>
    said((await under(double, knobs, { ...thinking, max_tokens: 30, ...more })).text);
  const shown = async (budget: number) => {
    const { reasoning } = await thought({ reasoning_budget_tokens: budget });
    return reasoning.match(/ on/g)?.length ?? 0;
  };
  deepStrictEqual([await shown(1), await shown(2), await shown(5)], [0, 1, 4]);
  const dead = await thought({ reasoning_budget_tokens: 0 });
  deepStrictEqual([dead.content, dead.finish], ["", "length"]);
  const told = await thought({ thinking_budget_tokens: 2, reasoning_budget_message: " Enough." });
  deepStrictEqual([told.reasoning, told.content], [" on Enough.", "Done"]);
  double.script(() => speak(think("a b c d"), say("Done")));
  const left = await thought({ reasoning_budget_tokens: 2 }, { leftoverThought: true });
  match(left.content, /<\/think>\n\nDone$/);
  double.script(() => speak(thinkForever()));
  const limited = await thought({ max_tokens: -1 }, { limitTokens: 5 });
  deepStrictEqual([limited.content, limited.finish], ["", "length"]);
});

Deno.test("handleControl() ends a thought, or says it does and nothing happens", async () => {
  await using cleanup = new AsyncDisposableStack();
  const double = await startLlamaDouble({
    script: () => speak(thinkForever(), say("Done")),
    knobs: { tokenMs: 1 },
  });
  cleanup.defer(() => double.stop());
  const control = (id: unknown, action = "reasoning_end") =>
    json(double.port, "POST", "/v1/chat/completions/control", { id, action });
  const peek = await ask(double.port, body({ chat_template_kwargs: {}, max_tokens: 9 }));
  const over = /"id":"(chatcmpl-\w+)"/.exec(peek.text)?.[1];
  strictEqual((await control(over))["message"], "no active completion for this id");
  const ended = await endThought(double, control);
  strictEqual(said(ended.text).content, "Done");
  double.set({ reasoningEndIgnored: true });
  const ignored = await endThought(double, control);
  deepStrictEqual([said(ignored.text).content, said(ignored.text).finish], ["", "length"]);
});

/** Starts a thinking answer, sends the control twice, and reads the answer to its end. */
async function endThought(
  double: LlamaDouble,
  control: (id: unknown) => Promise<{ readonly [key: string]: unknown }>,
): Promise<RawAnswer> {
  const thinking = { chat_template_kwargs: {}, max_tokens: 400 };
  const bare = await openAsk(double.port, body(thinking));
  await bare.seen("reasoning_content");
  const refused = await control(idIn(bare.soFar()));
  strictEqual(refused["message"], "reasoning control not enabled for this completion");
  bare.leave();
  const stream = await openAsk(double.port, body({ ...thinking, reasoning_control: true }));
  await stream.seen("reasoning_content");
  const id = idIn(stream.soFar());
  strictEqual((await control(id))["success"], true);
  strictEqual((await control(id))["success"], true);
  return await stream.answer();
}

function idIn(text: string): string {
  return /"id":"(chatcmpl-\w+)"/.exec(text)?.[1] ?? "";
}

Deno.test("complete() drops the connection where a forced end of thinking kills the process", async () => {
  await using cleanup = new AsyncDisposableStack();
  const double = await startLlamaDouble({ script: () => speak(thinkForever(), say("Done")) });
  cleanup.defer(() => double.stop());
  const budget = { chat_template_kwargs: {}, reasoning_budget_tokens: 3 };
  const bias = { ...budget, logit_bias: [["</think>", false]] };
  const grammar = { ...budget, tools: undefined, grammar: 'root ::= "x"' };
  for (const more of [bias, grammar]) {
    const answer = await under(double, {}, more);
    deepStrictEqual([answer.status, answer.ending], [200, "cut"]);
  }
  const harmless = { ...budget, logit_bias: [["</think>", -40]] };
  strictEqual(said((await under(double, {}, harmless)).text).content, "Done");
});

Deno.test("Knobs change what the cache gives", async () => {
  await using cleanup = new AsyncDisposableStack();
  const double = await startLlamaDouble({ slots: 2 });
  cleanup.defer(() => double.stop());
  const pinned = { id_slot: 0 };
  const cacheN = async (knobs: Partial<Knobs>, more: object = {}) =>
    numberOf(
      said((await under(double, knobs, { ...pinned, ...more })).text).timings["cache_n"],
      -1,
    );
  strictEqual(await cacheN({}), 0);
  const full = await cacheN({});
  assert(full > 4);
  strictEqual(await cacheN({ cache: "lost" }), 0);
  const checkpoint = await cacheN({ cache: "checkpoint" });
  assert(checkpoint > 0 && checkpoint < full);
  strictEqual(await cacheN({ cache: { foreign: 7 } }), 7);
  double.takeSlot(0);
  assert(await cacheN({ ramCacheMiss: true }) < full);
  strictEqual(await cacheN({}, { cache_prompt: false }), 0);
});

Deno.test("Knobs keep a slot busy after its client has left", async () => {
  await using cleanup = new AsyncDisposableStack();
  const double = await startLlamaDouble({
    slots: 1,
    script: () => speak(say("a"), pause(60_000)),
    knobs: { stuckSlot: true },
  });
  cleanup.defer(() => double.stop());
  const stream = await openAsk(double.port, body());
  await stream.seen('"content":"a"');
  stream.leave();
  while (double.record[0]?.closedMs === null) await new Promise((r) => setTimeout(r, 1));
  const busy = async () => JSON.stringify(await json(double.port, "GET", "/slots"));
  match(await busy(), /"is_processing":true/);
  double.freeSlots();
  match(await busy(), /"is_processing":false/);
  double.set({ stuckSlot: false, cancelMs: 5 });
  const slow = await openAsk(double.port, body());
  await slow.seen('"content":"a"');
  slow.leave();
  while ((await busy()).includes('"is_processing":true')) {
    await new Promise((r) => setTimeout(r, 1));
  }
  strictEqual(double.record.findLast((r) => r.method === "POST")?.outcome, "cancelled");
});

Deno.test("exceedContext() and crash() hit every running stream", async () => {
  await using cleanup = new AsyncDisposableStack();
  const double = await startLlamaDouble({
    slots: 2,
    script: () => speak(say("a"), pause(60_000)),
  });
  cleanup.defer(() => double.stop());
  const begin = async () => {
    const streams = await Promise.all([0, 1].map(() => openAsk(double.port, body())));
    await Promise.all(streams.map((stream) => stream.seen('"content":"a"')));
    return streams;
  };
  const exceeded = await begin();
  double.exceedContext();
  for (const stream of exceeded) {
    const { text, ending } = await stream.answer();
    deepStrictEqual([said(text).kinds.at(-1), ending], ["error", "clean"]);
    assert(text.includes(CONTEXT_ERROR));
  }
  const crashed = await begin();
  double.crash();
  for (const stream of crashed) strictEqual((await stream.answer()).ending, "cut");
  double.script(() => speak(say("x")));
  strictEqual(said((await under(double, {})).text).timings["cache_n"], 0);
});

Deno.test("Knobs change what the server says of itself", async () => {
  await using cleanup = new AsyncDisposableStack();
  const double = await startLlamaDouble();
  cleanup.defer(() => double.stop());
  const before = await json(double.port, "GET", "/props");
  double.set({ buildInfo: "b9-x", totalSlots: 1, nCtx: 99, chatTemplate: "new" });
  const after = await json(double.port, "GET", "/props");
  assert(before["chat_template"] !== "new");
  deepStrictEqual(
    [after["build_info"], after["total_slots"], after["chat_template"]],
    ["b9-x", 1, "new"],
  );
  assert(JSON.stringify(await json(double.port, "GET", "/slots")).includes('"n_ctx":99'));
  assert((await ask(double.port, body())).text.includes('"system_fingerprint":"b9-x"'));
});
