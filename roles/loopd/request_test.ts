// Guards the sentence of the README that a session's requests only ever grow.
import { ok as assert, strictEqual } from "node:assert";
import fc from "fast-check";
import { seededRandom } from "../../shared/clock/random.ts";
import { CallId, MessageId, SessionId, TurnId, ulid } from "../../shared/ids/ids.ts";
import {
  type Baseline,
  parseSessionRecord,
  type SessionRecord,
} from "../../shared/session_log/records.ts";
import { toolsArray } from "./core_tools.ts";
import { extendPrefix, recordsOf, requestBody, type SentPrefix } from "./request.ts";
import { nextStep } from "./turn_step.ts";
import { shownMessage } from "./tool_result.ts";

const session = SessionId.parse(`chat-${ulid(1, seededRandom(1))}`);
const target = { model: "m", slot: 0 };

type Answer = {
  readonly content: string;
  readonly reasoning: string;
  readonly calls: readonly string[];
  readonly finish: "stop" | "length" | "tool_calls";
};
type Act =
  | { readonly is: "user"; readonly text: string; readonly untrusted: boolean }
  | { readonly is: "step"; readonly answer: Answer; readonly result: string }
  | { readonly is: "restart" | "label" | "notice" | "loss" | "clock" };

const text = fc.string({ unit: "grapheme", maxLength: 20 });
const args = fc.dictionary(text, fc.oneof(text, fc.boolean(), fc.array(fc.integer())), {
  maxKeys: 3,
}).map((value) => JSON.stringify(value));
const answer: fc.Arbitrary<Answer> = fc.record({
  content: text,
  reasoning: text,
  calls: fc.array(args, { maxLength: 3 }),
  finish: fc.constantFrom("stop", "length", "tool_calls"),
});
const act: fc.Arbitrary<Act> = fc.oneof(
  { weight: 2, arbitrary: fc.record({ is: fc.constant("user"), text, untrusted: fc.boolean() }) },
  { weight: 6, arbitrary: fc.record({ is: fc.constant("step"), answer, result: text }) },
  {
    weight: 2,
    arbitrary: fc.record({
      is: fc.constantFrom("restart", "label", "notice", "loss", "clock"),
    }),
  },
);

/** A session's log as random acts make it, and every request that was sent on the way. */
function play(acts: readonly Act[], maxCalls: number) {
  const random = seededRandom(7);
  let now = 1_000_000;
  let records: SessionRecord[] = [];
  const bodies: { readonly messages: readonly string[]; readonly bytes: Uint8Array }[] = [];
  const baseline: Baseline = {
    v: 1,
    session,
    epoch: 0,
    created_unix_ms: now,
    label: { class: "private", untrusted: false },
    system: "Be kind.",
    examples: [{ role: "user", content: "a" }, { role: "assistant", content: "b" }],
    tools: toolsArray(),
    sampling: { temperature: 0 },
  };
  const time = () => ({ time_unix_ms: now++ });
  const current = () => {
    const ended = records.flatMap((r) => r.kind === "turn_end" ? [r.turn] : []);
    return records.find((r) => r.kind === "user" && !ended.includes(r.turn));
  };
  const add = (record: unknown) => {
    const parsed = parseSessionRecord(record);
    if (!parsed.ok) throw new Error(parsed.detail);
    records.push(parsed.value);
  };
  const step = (one: Extract<Act, { is: "step" }>) => {
    const user = current();
    if (user?.kind !== "user") return;
    const { turn } = user;
    const next = nextStep(recordsOf(records, turn), maxCalls);
    if (next.is === "ask") {
      bodies.push(requestBody(baseline, records, turn, target));
      const { content, reasoning, finish } = one.answer;
      const tool_calls = one.answer.calls.map((arguments_) => ({
        call: CallId.parse(`c-${ulid(now, random)}`),
        name: "call_tool",
        arguments: arguments_,
        artifact: null,
      }));
      const rest = { turn, timings: null, finish, tool_calls };
      add({ kind: "assistant", ...time(), content, reasoning_content: reasoning, ...rest });
      return;
    }
    const calls = next.is === "call" ? [next.call] : next.is === "stop" ? next.unanswered : [];
    for (const call of calls) {
      const ids = { turn, call: call.call, tool: "x", content: one.result };
      const label = { class: "private", untrusted: true, outcome: "done", code: null };
      const none = { artifact: null, audit: null, container: null, image: null };
      add({ kind: "tool_result", ...time(), ...ids, ...label, ...none, bytes: 0 });
    }
    if (next.is === "stop" || next.is === "reply") {
      add({ kind: "turn_end", ...time(), turn, outcome: "answered" });
    }
  };
  for (const one of acts) {
    if (one.is === "user") {
      const turn = TurnId.parse(`t-${ulid(now, random)}`);
      const label = one.untrusted ? { class: "public", untrusted: true } as const : null;
      const ids = { turn, message_id: MessageId.parse(`m-${now}`), artifact: null };
      add({ kind: "user", ...time(), ...ids, content: shownMessage(one.text, label) });
    } else if (one.is === "step") step(one);
    else if (one.is === "restart") records = JSON.parse(JSON.stringify(records));
    else if (one.is === "clock") now = Math.max(0, now - 500_000);
    else if (one.is === "label") {
      add({ kind: "label", ...time(), class: "secret", untrusted: true, why: "x" });
    } else if (one.is === "notice") {
      add({ kind: "notice", ...time(), turn: null, code: "x", text: "x" });
    } else {
      const user = current();
      if (user?.kind !== "user") continue;
      const numbers = { expected: 2, reused: 1, guess: "x" };
      add({ kind: "cache_loss", ...time(), turn: user.turn, ...numbers });
    }
  }
  return bodies;
}

type SentMessage = {
  role: string;
  content?: unknown;
  reasoning_content?: unknown;
  tool_call_id?: string;
  tool_calls?: { id: string; function: { arguments: unknown } }[];
};

/** Why a server would refuse these messages for ever, or null. */
function wedge(messages: readonly SentMessage[]): string | null {
  let open: string[] = [];
  for (const message of messages) {
    if (typeof message.content !== "string") return "content is no text";
    if (message.reasoning_content === null || message.reasoning_content === "") return "thought";
    if (message.role === "tool") {
      if (open.shift() !== message.tool_call_id) return "a result without its call";
      continue;
    }
    if (open.length > 0) return "a call without its result";
    for (const call of message.tool_calls ?? []) {
      if (typeof call.function.arguments !== "string") return "arguments are no text";
      const value = JSON.parse(call.function.arguments);
      if (typeof value !== "object" || value === null || Array.isArray(value)) return "no object";
    }
    open = (message.tool_calls ?? []).map((call) => call.id);
    if (message.tool_calls?.length === 0) return "an empty list of calls";
  }
  const last = messages.at(-1);
  return last?.role === "user" || last?.role === "tool" ? null : `the last is ${last?.role}`;
}

Deno.test("requestBody() never sends what a server refuses for ever", () => {
  fc.assert(
    fc.property(fc.array(act, { minLength: 20, maxLength: 80, size: "max" }), (acts) => {
      for (const body of play(acts, 9)) {
        const sent = JSON.parse(new TextDecoder().decode(body.bytes));
        strictEqual(wedge(sent.messages), null);
        strictEqual(sent.messages[0].role, "system");
      }
    }),
    { numRuns: 60 },
  );
});

Deno.test("requestBody() begins with all messages of the request before, byte for byte", () => {
  let compared = 0;
  fc.assert(
    fc.property(fc.array(act, { minLength: 20, maxLength: 80, size: "max" }), (acts) => {
      const bodies = play(acts, 9);
      let sent: SentPrefix | undefined;
      bodies.forEach((body, i) => {
        const before = bodies[i - 1];
        const now = new TextDecoder().decode(body.bytes);
        if (before !== undefined) {
          const head = new TextDecoder().decode(before.bytes);
          const cut = head.indexOf('],"tools":');
          assert(now.startsWith(head.slice(0, cut)), `request ${i} does not extend ${i - 1}`);
          strictEqual(now.slice(now.indexOf('],"tools":')), head.slice(cut));
          compared++;
        }
        const next = extendPrefix(sent, body.messages);
        assert(next.ok, "the check at run time disagrees");
        sent = next.ok ? next.value : sent;
      });
    }),
    { numRuns: 60 },
  );
  assert(compared > 100, "the histories hardly asked twice");
});

Deno.test("extendPrefix() refuses a request whose past was changed", () => {
  const first = extendPrefix(undefined, ["a", "b"]);
  assert(first.ok, "the first is free");
  for (const messages of [["a"], ["a", "c", "d"], ["x", "b", "c"], ["a\nb", "c"]]) {
    const next = extendPrefix(first.ok ? first.value : undefined, messages);
    strictEqual(next.ok ? "sent" : next.code, "prefix-broken");
  }
});

Deno.test("extendPrefix() tells one message from two that look like it joined", () => {
  const first = extendPrefix(undefined, ["a", "b"]);
  const next = extendPrefix(first.ok ? first.value : undefined, ["a\nb", ""]);
  strictEqual(next.ok, false);
});
