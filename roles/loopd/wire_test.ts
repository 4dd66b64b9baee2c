// Guards the README's sentences on the model's stream: any split of bytes is read alike, and an answer
// without its end is none.
import { deepStrictEqual, ok as assert, strictEqual } from "node:assert";
import fc from "fast-check";
import { systemClock } from "../../shared/clock/clock.ts";
import { err, ok } from "../../shared/results/result.ts";
import { TurnId } from "../../shared/ids/ids.ts";
import { encodeUtf8 } from "../../shared/wire/codec.ts";
import { TurnDelta } from "../../shared/wire/loop.ts";
import { newSession } from "../../tests/doubles/loopd_house.ts";
import { type Answer, completion } from "./completion.ts";
import { makeHub } from "./hub.ts";
import { makeModel } from "./model.ts";
import { sseReader } from "./sse.ts";

const encoder = new TextEncoder();
const chunk = (delta: unknown, more: unknown = {}) =>
  `data: ${
    JSON.stringify({ id: "chatcmpl-1", choices: [{ index: 0, delta }], ...Object(more) })
  }\n\n`;
const end = (finish: string) =>
  `data: ${JSON.stringify({ choices: [{ finish_reason: finish, delta: {} }] })}\n\n`;
const DONE = "data: [DONE]\n\n";

/** Reads a stream in pieces; the answer's code when there is none. */
function read(pieces: readonly Uint8Array[]): Answer | string {
  const reader = sseReader();
  const made = completion();
  for (const piece of pieces) {
    const events = reader.feed(piece);
    if (!events.ok) return events.code;
    for (const data of events.value) {
      const taken = made.take(data);
      if (!taken.ok) return taken.code;
    }
  }
  const answer = made.answer();
  return answer.ok ? answer.value : answer.code;
}
const readText = (text: string) => read([encoder.encode(text)]);

const BROKEN: readonly (readonly [name: string, stream: string])[] = [
  ["nothing at all", ""],
  ["no end mark", chunk({ content: "a" }) + end("stop")],
  ["no finish", chunk({ content: "a" }) + DONE],
  ["an unknown finish", chunk({ content: "a" }) + end("tired") + DONE],
  ["an event after the end", end("stop") + DONE + chunk({ content: "a" })],
  [
    "an error in the stream",
    'data: {"error":{"code":500,"message":"x","type":"server_error"}}\n\n',
  ],
  ["a proxy's own text", chunk({ content: "a" }) + "proxy error: Failed to read connection\n"],
  ["no JSON", "data: {\n\n"],
  ["a wrong type", chunk({ content: 7 }) + end("stop") + DONE],
  [
    "a lone surrogate",
    'data: {"choices":[{"delta":{"content":"\\ud800"}}]}\n\n' + end("stop") + DONE,
  ],
];

Deno.test("completion() is no answer without a finish and the end mark", () => {
  for (const [name, stream] of BROKEN) strictEqual(readText(stream), "model-stream-broken", name);
});

Deno.test("sseReader() refuses bytes that are not UTF-8", () => {
  strictEqual(read([Uint8Array.of(0x64, 0x61, 0xff, 0x0a)]), "model-stream-broken");
});

const STREAM = ":\n\n" + chunk({ role: "assistant", content: null }) +
  chunk({ reasoning_content: "Ümm 🎉" }) + "event: odd\n" + chunk({ content: "Zeile\u2028zwei" }) +
  chunk({ tool_calls: [{ index: 1, id: "x", function: { name: "b", arguments: '{"q":' } }] }) +
  ":\n\n" +
  chunk({ tool_calls: [{ index: 0, id: "x", function: { name: "a", arguments: "{" } }] }) +
  chunk({ tool_calls: [{ index: 1, function: { arguments: '"é"}' } }] }) +
  chunk({ tool_calls: [{ index: 0, function: { arguments: "}" } }] }) +
  chunk({}, { new_field: 1 }) +
  end("tool_calls") + DONE;
const WHOLE: Answer = {
  content: "Zeile\u2028zwei",
  reasoning: "Ümm 🎉",
  calls: [{ name: "a", arguments: "{}" }, { name: "b", arguments: '{"q":"é"}' }],
  finish: "tool_calls",
  timings: null,
};

Deno.test("sseReader() reads any split of the bytes alike", () => {
  const bytes = encoder.encode(STREAM);
  for (let at = 0; at <= bytes.length; at++) {
    deepStrictEqual(read([bytes.subarray(0, at), bytes.subarray(at)]), WHOLE, `cut at ${at}`);
  }
  fc.assert(fc.property(fc.array(fc.nat(bytes.length), { maxLength: 30 }), (cuts) => {
    const places = [0, ...cuts.sort((a, b) => a - b), bytes.length];
    const pieces = places.slice(1).map((to, i) => bytes.subarray(places[i], to));
    deepStrictEqual(read(pieces), WHOLE);
  }));
});

Deno.test("sseReader() keeps no reference to the caller's buffer", () => {
  const buffer = new Uint8Array(4);
  const reader = sseReader();
  const found: string[] = [];
  const bytes = encoder.encode(chunk({ content: "abc" }));
  for (let at = 0; at < bytes.length; at += 4) {
    const part = bytes.subarray(at, at + 4);
    buffer.set(part);
    const events = reader.feed(buffer.subarray(0, part.length));
    if (events.ok) found.push(...events.value);
  }
  strictEqual(found.length, 1);
  assert(found[0]?.includes("abc"));
});

/** What a server without end sends, and how many pieces of it are taken before it is dropped. */
async function endless(status: number, piece: string) {
  let taken = 0;
  const model = makeModel({
    ...{ clock: systemClock, model: "m", firstByteMs: 60_000, silenceMs: 60_000 },
    stopping: new AbortController().signal,
    async http(call) {
      if (call.method === "GET") return err("model-unreachable", "");
      call.onStatus(status);
      while (!call.signal.aborted) {
        taken++;
        call.onBytes(encodeUtf8(piece));
        await Promise.resolve();
      }
      return err("model-stream-broken", "dropped");
    },
  });
  const signal = new AbortController().signal;
  const quiet = { slot: 0, signal, thinkingLeft: 9_000_000, onPiece() {}, onRetry() {} };
  const answer = await model.ask(new Uint8Array(), quiet);
  return { answer, taken };
}

Deno.test("ask() drops an answer, a thought, a call and a refusal that do not end, and tries but once more", async () => {
  const words = "w".repeat(50_000);
  const made = { index: 0, function: { arguments: words } };
  const named = { index: 0, function: { name: words } };
  const calls = [{ tool_calls: [made] }, { tool_calls: [named] }];
  for (const delta of [{ content: words }, { reasoning_content: words }, ...calls]) {
    const event = `data: ${JSON.stringify({ choices: [{ delta }] })}\n\n`;
    const { answer, taken } = await endless(200, event);
    deepStrictEqual([answer.ok ? "ok" : answer.code, taken], ["model-stream-broken", 26]);
    assert(!answer.ok && answer.detail.includes("longer than 600000 characters"));
  }
  const { answer, taken } = await endless(404, words);
  deepStrictEqual([answer.ok ? "ok" : answer.code, taken], ["model-refused", 84]);
});

Deno.test("ask() gives a whole answer, or leaves at once, whatever becomes of its word to end a thought", async () => {
  for (const how of ["whole", "cancelled"]) {
    const cancelled = new AbortController();
    const model = makeModel({
      ...{ clock: systemClock, model: "m", firstByteMs: 3_600_000, silenceMs: 3_600_000 },
      stopping: new AbortController().signal,
      async http(call) {
        if (call.method === "GET") return err("model-unreachable", "");
        if (call.path.endsWith("/control")) {
          // A server that takes the word and never answers it.
          await new Promise((gone) => call.signal.addEventListener("abort", gone));
          return err("model-unreachable", "dropped");
        }
        call.onStatus(200);
        call.onBytes(encodeUtf8(chunk({ reasoning_content: "hm" })));
        if (how === "cancelled") {
          cancelled.abort();
          return err("model-stream-broken", "dropped");
        }
        call.onBytes(encodeUtf8(chunk({ content: "Yes." }) + end("stop") + DONE));
        return ok(null);
      },
    });
    const quiet = {
      slot: 0,
      signal: cancelled.signal,
      thinkingLeft: 1,
      onPiece() {},
      onRetry() {},
    };
    const answer = await model.ask(new Uint8Array(), quiet);
    strictEqual(
      answer.ok ? answer.value.content : answer.code,
      how === "whole" ? "Yes." : "turn-cancelled",
    );
  }
});

Deno.test("delta() cuts a giant piece into small ones and no character in two", async () => {
  const hub = makeHub();
  const over = new AbortController();
  const events = hub.watch(over.signal);
  const first = events.next();
  const text = "x" + "😀".repeat(5_000) + "\n" + "é".repeat(4_001);
  const [session, turn] = [newSession(), TurnId.parse(`t-${"0".repeat(26)}`)];
  hub.delta(session, turn, "answer", text);
  const told: string[] = [];
  for (let event = await first; event.done !== true; event = await events.next()) {
    const body = TurnDelta.shape.body.parse(event.value.body);
    told.push(body.text);
    if (told.join("").length >= text.length) break;
  }
  over.abort();
  await events.next();
  strictEqual(told.join(""), text);
});

Deno.test("watch() ends a watcher that falls behind, and no other", async () => {
  const hub = makeHub();
  const over = new AbortController();
  const [slow, quick] = [hub.watch(over.signal), hub.watch(over.signal)];
  const [session, turn] = [newSession(), TurnId.parse(`t-${"0".repeat(26)}`)];
  const behind = slow.next();
  for (let i = 0; i < 2_001; i++) {
    const next = quick.next();
    hub.state(session, turn, "reading", { percent: i % 100 });
    strictEqual((await next).done, false);
    if (i === 0) strictEqual((await behind).done, false);
  }
  hub.state(session, turn, "writing");
  deepStrictEqual(await slow.next(), { done: true, value: "too slow" });
  strictEqual((await quick.next()).done, false);
  over.abort();
  deepStrictEqual(await quick.next(), { done: true, value: "gone" });
});
