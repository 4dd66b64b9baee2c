// Guards the part of the double that makes `cache_n` true and waiting silent: slots, their queue,
// their caches, and what a template change does to a prefix.
import { deepStrictEqual, match, ok as assert, strictEqual } from "node:assert";
import fc from "fast-check";
import { type LlamaDouble, startLlamaDouble } from "./double.ts";
import { isObject, type JsonObject, listOf, numberOf } from "./json_value.ts";
import { ask, json, openAsk, raw, type RawAnswer, said } from "./raw_client.ts";
import type { TemplateName } from "./templates.ts";
import { detokenize, tokenize } from "./tokens.ts";
import { call, type Part, pause, say, speak, think, waitFor } from "./turn.ts";

const TOOLS = [{ type: "function", function: { name: "read", parameters: { type: "object" } } }];
const user = (content: string) => ({ role: "user", content });
const body = (messages: readonly unknown[], more: object = {}) => ({
  messages,
  stream: true,
  tools: TOOLS,
  ...more,
});

async function slotList(double: LlamaDouble): Promise<JsonObject[]> {
  return listOf((await json(double.port, "GET", "/slots"))["list"]).filter(isObject);
}

async function untilFree(double: LlamaDouble, slot: number): Promise<void> {
  while ((await slotList(double))[slot]?.["is_processing"] !== false) {
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

Deno.test("slotPool() sends not one byte while a request waits, then serves in order", async () => {
  await using cleanup = new AsyncDisposableStack();
  const gates = [0, 1, 2].map(() => Promise.withResolvers<void>());
  let started = 0;
  const order: string[] = [];
  const double = await startLlamaDouble({
    slots: 1,
    script: async (request) => {
      order.push(request.messages[0]?.content ?? "");
      await gates[started++]?.promise;
      return speak(say("ok"));
    },
  });
  cleanup.defer(() => double.stop());
  const streams = [];
  for (const [i, name] of ["first", "second", "third"].entries()) {
    streams.push(await openAsk(double.port, body([user(name)], { sse_ping_interval: 1 })));
    while (double.waiting() < i) await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await new Promise((resolve) => setTimeout(resolve, 20));
  deepStrictEqual(streams.map((s) => s.hasBytes()), [false, false, false]);
  gates[0]?.resolve();
  await streams[0]?.answer();
  deepStrictEqual(streams.map((s) => s.hasBytes()), [true, false, false]);
  gates[1]?.resolve();
  gates[2]?.resolve();
  await Promise.all(streams.map((s) => s.answer()));
  deepStrictEqual(order, ["first", "second", "third"]);
});

Deno.test("slotPool() gives a freed slot to who asked for it before who came first", async () => {
  await using cleanup = new AsyncDisposableStack();
  const gate = Promise.withResolvers<void>();
  const order: string[] = [];
  const double = await startLlamaDouble({
    slots: 2,
    script: (request) => {
      const name = request.messages[0]?.content ?? "";
      order.push(name);
      return name.startsWith("hold") ? speak(waitFor(gate.promise), say("x")) : speak(say("x"));
    },
  });
  cleanup.defer(() => double.stop());
  const holds = [0, 1].map((slot) =>
    openAsk(double.port, body([user(`hold ${slot}`)], { id_slot: slot }))
  );
  const open = await Promise.all(holds);
  while (order.length < 2) await new Promise((resolve) => setTimeout(resolve, 1));
  const any = ask(double.port, body([user("any")]));
  while (double.waiting() < 1) await new Promise((resolve) => setTimeout(resolve, 1));
  const pinned = ask(double.port, body([user("pinned")], { id_slot: 3 }));
  while (double.waiting() < 2) await new Promise((resolve) => setTimeout(resolve, 1));
  open[1]?.leave();
  await pinned;
  gate.resolve();
  await Promise.all([any, open[0]?.answer()]);
  deepStrictEqual(order.slice(2), ["pinned", "any"]);
  strictEqual(double.record.find((r) => r.bodyText.includes('"pinned"'))?.slot, 1);
});

Deno.test("slotPool() forgets a waiting request whose client has left", async () => {
  await using cleanup = new AsyncDisposableStack();
  const gate = Promise.withResolvers<void>();
  const double = await startLlamaDouble({
    slots: 1,
    script: () => speak(waitFor(gate.promise), say("x")),
  });
  cleanup.defer(() => double.stop());
  const first = await openAsk(double.port, body([user("a")]));
  const second = await openAsk(double.port, body([user("b")]));
  while (double.waiting() < 1) await new Promise((resolve) => setTimeout(resolve, 1));
  second.leave();
  while (double.waiting() > 0) await new Promise((resolve) => setTimeout(resolve, 1));
  gate.resolve();
  strictEqual(said((await first.answer()).text).done, true);
});

Deno.test("complete() frees the slot after a disconnect and keeps its tokens", async () => {
  await using cleanup = new AsyncDisposableStack();
  const double = await startLlamaDouble({
    slots: 1,
    script: () => speak(say("a b c"), pause(60_000), say("d")),
  });
  cleanup.defer(() => double.stop());
  const request = body([user("one two three")]);
  const stream = await openAsk(double.port, request);
  await stream.seen(" c");
  const busy = (await slotList(double))[0];
  strictEqual(busy?.["is_processing"], true);
  assert(Array.isArray(busy?.["next_token"]));
  stream.leave();
  await untilFree(double, 0);
  strictEqual(double.record[0]?.outcome, "cancelled");
  double.script(() => speak(say("x")));
  const again = said((await ask(double.port, request)).text).timings;
  strictEqual(again["prompt_n"], 1);
});

Deno.test("complete() goes on without its client under a conversation id", async () => {
  await using cleanup = new AsyncDisposableStack();
  const gate = Promise.withResolvers<void>();
  const double = await startLlamaDouble({
    script: () => speak(say("one"), waitFor(gate.promise), say(" two")),
  });
  cleanup.defer(() => double.stop());
  const headers = { "X-Conversation-Id": "c1" };
  const stream = await openAsk(double.port, body([user("x")]), headers);
  await stream.seen("one");
  stream.leave();
  const lookup = { conversation_ids: ["c1", "unknown"] };
  const found = await json(double.port, "POST", "/v1/streams/lookup", lookup);
  strictEqual(listOf(found["list"]).length, 1);
  gate.resolve();
  const replay = await raw(double.port, "GET", "/v1/stream?conv_id=c1&from=0");
  strictEqual(said(replay.text).content, "one two");
  const tail = await raw(double.port, "GET", "/v1/stream?conv_id=c1&from=6");
  assert(replay.text.endsWith(tail.text) && tail.text.length === replay.text.length - 6);
  strictEqual((await raw(double.port, "DELETE", "/v1/stream?conv_id=c1")).status, 204);
  strictEqual((await raw(double.port, "GET", "/v1/stream?conv_id=c1")).status, 404);
});

const figures = (answer: RawAnswer) => {
  const t = said(answer.text).timings;
  return {
    cacheN: numberOf(t["cache_n"], -1),
    promptN: numberOf(t["prompt_n"], -1),
    predictedN: numberOf(t["predicted_n"], -1),
  };
};

/** The assistant message a client stores: exactly what it received. */
function replayOf(answer: RawAnswer): JsonObject {
  const { content, reasoning, calls } = said(answer.text);
  return {
    role: "assistant",
    content,
    ...(reasoning === "" ? {} : { reasoning_content: reasoning }),
    ...(calls.length === 0 ? {} : {
      tool_calls: calls.map((c, i) => ({
        id: `own-${i}`,
        type: "function",
        function: { name: c.name, arguments: c.args },
      })),
    }),
  };
}

const word = fc.constantFrom(
  "tea",
  "Grüße",
  "😀",
  "a-b",
  "12",
  "<x>",
  "日本語",
  '"q"',
  "\\",
  "{1}",
);
const text = fc.array(word, { minLength: 1, maxLength: 6 }).map((words) => words.join(" "));
const exchange = fc.record({
  question: text,
  thought: fc.option(text, { nil: null }),
  answer: text,
  args: fc.option(fc.dictionary(fc.constantFrom("path", "text", "n"), fc.oneof(text, fc.nat(99))), {
    nil: null,
  }),
  result: text,
});
const conversation = fc.array(exchange, { minLength: 1, maxLength: 4 });

Deno.test("complete() reads an exact replay from the cache, all but the last sampled token", async () => {
  for (const template of ["qwen3.6", "qwen2.5"] as const satisfies readonly TemplateName[]) {
    await using cleanup = new AsyncDisposableStack();
    const double = await startLlamaDouble({ template, keepThinking: "keep", slots: 1 });
    cleanup.defer(() => double.stop());
    await fc.assert(
      fc.asyncProperty(conversation, (turns) => replaysExactly(double, turns)),
      { numRuns: 20 },
    );
  }
});

type Exchange = typeof conversation extends fc.Arbitrary<(infer T)[]> ? T : never;

async function replaysExactly(double: LlamaDouble, turns: readonly Exchange[]): Promise<void> {
  const messages: unknown[] = [];
  let expected: number | null = null;
  const step = async (parts: readonly Part[]) => {
    double.script(() => speak(...parts));
    const answer = await ask(double.port, body(messages, { id_slot: 0 }));
    const got = figures(answer);
    if (expected !== null) strictEqual(got.cacheN, expected);
    expected = got.cacheN + got.promptN + got.predictedN - 1;
    const counted = await json(
      double.port,
      "POST",
      "/v1/chat/completions/input_tokens",
      body(messages),
    );
    strictEqual(counted["input_tokens"], got.cacheN + got.promptN);
    messages.push(replayOf(answer));
  };
  for (const turn of turns) {
    messages.push(user(turn.question));
    const thought = turn.thought === null ? [] : [think(turn.thought)];
    if (turn.args !== null) {
      await step([...thought, say(turn.answer), call("read", { ...turn.args })]);
      messages.push({ role: "tool", tool_call_id: "own-0", content: turn.result });
    }
    await step([...thought, say(turn.answer)]);
  }
}

Deno.test("renderPrompt() drops old thoughts in the one style and keeps them in the other", async () => {
  for (const template of ["qwen3.5", "qwen3.6"] as const) {
    await using cleanup = new AsyncDisposableStack();
    const double = await startLlamaDouble({ template, keepThinking: "keep", slots: 1 });
    cleanup.defer(() => double.stop());
    double.script(() => speak(think("A long thought about it."), say("Yes.")));
    const messages: unknown[] = [user("one")];
    const first = await ask(double.port, body(messages));
    messages.push(replayOf(first), user("two"));
    const second = figures(await ask(double.port, body(messages)));
    const { cacheN, promptN, predictedN } = figures(first);
    if (template === "qwen3.6") strictEqual(second.cacheN, cacheN + promptN + predictedN - 1);
    // The prefix breaks where the think block of the first answer began.
    else strictEqual(second.cacheN, cacheN + promptN - tokenize("<think>\n").length);
  }
});

Deno.test("renderPrompt() re-renders booleans and lists, so the cache ends at the call", async () => {
  await using cleanup = new AsyncDisposableStack();
  const double = await startLlamaDouble({ slots: 1 });
  cleanup.defer(() => double.stop());
  const roundTrip = async (args: string) => {
    double.script(() => speak(call("read", args)));
    const messages: unknown[] = [user(args)];
    const first = await ask(double.port, body(messages));
    messages.push(replayOf(first), { role: "tool", content: "  r  " });
    const second = await ask(double.port, body(messages));
    const { prompt } = await json(double.port, "POST", "/apply-template", body(messages));
    const { cacheN, promptN, predictedN } = figures(first);
    const isExact = figures(second).cacheN === cacheN + promptN + predictedN - 1;
    return { isExact, prompt: String(prompt) };
  };
  const compact = await roundTrip('{"b":true,"l":[1,1]}');
  strictEqual(compact.isExact, false);
  match(compact.prompt, /<parameter=b>\nTrue\n<\/parameter>\n<parameter=l>\n\[1, 1\]\n/);
  match(compact.prompt, /<tool_response>\nr\n<\/tool_response>/);
  const spaced = await roundTrip('{"l": [1, 1], "n": 7}');
  strictEqual(spaced.isExact, true);
  const inText = JSON.stringify({ name: "x", arguments: '{"b":true,"l":[1,1],"o":{"a": null}}' });
  strictEqual((await roundTrip(inText)).isExact, true);
});

Deno.test("slotPool() falls back to a checkpoint when the model cannot cut its state", async () => {
  await using cleanup = new AsyncDisposableStack();
  const double = await startLlamaDouble({
    slots: 1,
    cutting: "hybrid",
    script: () => speak(say("a b")),
  });
  cleanup.defer(() => double.stop());
  const off = { chat_template_kwargs: { enable_thinking: false } };
  const first = figures(await ask(double.port, body([user("one two")], off)));
  const messages = [user("one two"), { role: "assistant", content: "a c" }, user("three")];
  const second = figures(await ask(double.port, body(messages, off)));
  assert(second.cacheN > 0 && second.cacheN < first.promptN);
  const other = figures(await ask(double.port, body([user("zzz")], { ...off, tools: [] })));
  strictEqual(other.cacheN, 0);
});

Deno.test("slotPool() finds a swapped-out conversation in host memory, not on a pinned empty slot", async () => {
  await using cleanup = new AsyncDisposableStack();
  const double = await startLlamaDouble({ slots: 2 });
  cleanup.defer(() => double.stop());
  const long = body([user("alpha beta gamma ".repeat(20))], { id_slot: 0 });
  const other = body([user("delta epsilon zeta ".repeat(20))], { id_slot: 0, tools: [] });
  const first = figures(await ask(double.port, long));
  await ask(double.port, other);
  const back = figures(await ask(double.port, long));
  strictEqual(back.cacheN, first.promptN - 1);
  await ask(double.port, other);
  const pinned = figures(await ask(double.port, { ...long, id_slot: 1 }));
  strictEqual(pinned.cacheN, 0);
});

Deno.test("tokenize() is reversible and stable at special tokens", () => {
  const anyText = fc.oneof(fc.string({ unit: "grapheme" }), text);
  fc.assert(fc.property(anyText, anyText, (a, b) => {
    const whole = `${a}<|im_end|>\n<think>${b}`;
    strictEqual(detokenize(tokenize(whole)), whole);
    deepStrictEqual(tokenize(whole), [
      ...tokenize(a),
      ...tokenize("<|im_end|>\n<think>"),
      ...tokenize(b),
    ]);
  }));
});
