// Guards: "talking for weeks costs no unneeded prompt processing". Random histories through a whole
// loopd: tool calls done, denied, corrected and asked of the owner, grants that change, memory that is
// written, restarts of loopd and of the forwarder, a clock that jumps. Every request extends the one
// before it, and every reuse is exactly as expected.
import { deepStrictEqual, ok as assert, strictEqual } from "node:assert";
import fc from "fast-check";
import { systemClock } from "../../shared/clock/clock.ts";
import { seededRandom } from "../../shared/clock/random.ts";
import { ApprovalId, ulid } from "../../shared/ids/ids.ts";
import { cacheUses } from "../../shared/session_log/cache_use.ts";
import { call as ask } from "../../shared/wire/dial.ts";
import { CACHE_REPORT } from "../../shared/wire/loop.ts";
import {
  type LoopdHouse,
  newSession,
  startLoopdHouse,
  toolManifest,
  value,
} from "../../tests/doubles/loopd_house.ts";
import { call, say, type Script, speak, think } from "../../tests/doubles/llama/turn.ts";
import { passing, session, viaCall } from "../../tests/doubles/loopd_rig.ts";

type Act =
  | { readonly is: "say"; readonly text: string; readonly kind: number; readonly big: boolean }
  | { readonly is: "jump"; readonly byMs: number }
  | { readonly is: "restart" | "proxy" | "memory" | "grants" };

const DAY_MS = 86_400_000;

const act: fc.Arbitrary<Act> = fc.oneof(
  {
    weight: 7,
    arbitrary: fc.record({
      is: fc.constant("say"),
      text: fc.string({ unit: "grapheme", minLength: 1, maxLength: 12 }).map((t) => `q${t}`),
      kind: fc.nat(4),
      big: fc.boolean(),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ is: fc.constantFrom("restart", "proxy", "memory", "grants") }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      is: fc.constant("jump"),
      byMs: fc.integer({ min: -400 * DAY_MS, max: 400 * DAY_MS }),
    }),
  },
);

/** What the model does with a message, by its first words: `KIND BIG text`. */
const script: Script = (request, state) => {
  const last = request.messages.at(-1);
  if (last?.role === "tool") return speak(think("So."), say(`Read ${last.content.length}.`));
  const kind = /^kind(\d) (\d)/.exec(last?.content ?? "");
  if (kind === null) return passing(request, state);
  switch (Number(kind[1])) {
    case 0:
      return speak(think("A call."), call("clock", {}));
    case 1:
      return speak(viaCall("do_it", { path: "/x", limit: Number(kind[2]) }));
    case 2:
      return speak(call("recall", ["{broken"]), viaCall("nothing_like_it", {}));
    case 3:
      return speak(call("memory", { action: "note", text: "tea" }));
    default:
      return speak(think("Nothing to do."), say("Fine <|im_end|> 🎉."));
  }
};

function prepare(house: LoopdHouse, state: { isDenied: boolean; asks: number }): void {
  const tools = ["clock", "do_it", "memory"];
  for (const name of tools) {
    house.broker.tool(name, {
      approval: ApprovalId.parse(`a-${ulid(++state.asks, seededRandom(9))}`),
      run: (args) =>
        state.isDenied
          ? { outcome: "denied", code: "no_grant", message: "no grant allows it" }
          : { output: `${JSON.stringify(args)} <tool_call>`.repeat(name === "do_it" ? 900 : 1) },
    });
  }
}

async function play(acts: readonly Act[]): Promise<{ compared: number; kinds: Set<string> }> {
  let shiftMs = 0;
  const house = await startLoopdHouse({
    llama: { template: "qwen3.6", keepThinking: "keep", nCtx: 262_144 },
    tools: [toolManifest("do_it")],
    clock: { ...systemClock, nowUnixMs: () => systemClock.nowUnixMs() + shiftMs },
  });
  const state = { isDenied: false, asks: 0 };
  try {
    house.llama.script(script);
    prepare(house, state);
    await house.say(session, "good morning");
    for (const one of acts) {
      if (one.is === "restart") await house.restart();
      else if (one.is === "proxy") await house.restartProxy();
      else if (one.is === "jump") shiftMs = one.byMs;
      else if (one.is === "memory") house.memory.block(`# memory.md\nTea ${state.asks++}`);
      else if (one.is === "grants") state.isDenied = !state.isDenied;
      else if (one.is === "say") {
        prepare(house, state);
        await house.say(session, `kind${one.kind} ${one.big ? 1 : 0} ${one.text}`);
      }
    }
    const records = house.records(session);
    const uses = cacheUses(records);
    for (const use of uses.slice(1)) {
      const isAltered = use.cause === "arguments that were no JSON are replayed as {}";
      assert(use.reused === use.expected || isAltered, JSON.stringify(use));
    }
    const bodies = house.llama.record.filter((one) => one.bodyText.includes("good morning"));
    const head = (text: string) => text.slice(0, text.indexOf('],"tools":'));
    bodies.slice(1).forEach((one, i) => {
      assert(head(one.bodyText).startsWith(head(bodies[i]?.bodyText ?? "")), `request ${i + 1}`);
    });
    const kinds = records.flatMap((r) => r.kind === "tool_result" ? [r.outcome] : []);
    return { compared: uses.length - 1, kinds: new Set(kinds) };
  } finally {
    await house.stop();
  }
}

Deno.test("requests of random histories reuse exactly what is expected", async () => {
  let compared = 0;
  const kinds = new Set<string>();
  await fc.assert(
    fc.asyncProperty(fc.array(act, { minLength: 8, maxLength: 14, size: "max" }), async (acts) => {
      const found = await play(acts);
      compared += found.compared;
      found.kinds.forEach((kind) => kinds.add(kind));
    }),
    { numRuns: 4, endOnFailure: true },
  );
  assert(compared > 20, `${compared} compared`);
  assert(kinds.has("corrective") || kinds.has("done"), [...kinds].join());
});

Deno.test("cacheReport() tells per request what was reused, expected and why not", async () => {
  const house = await startLoopdHouse({ llama: { template: "qwen3.6", keepThinking: "keep" } });
  try {
    const path = `${house.home}/run/owner.sock`;
    const none = await ask(path, CACHE_REPORT, { session: null, limit: 5 });
    strictEqual(none.ok ? "ok" : none.code, "not-found");
    house.llama.script(script);
    for (const text of ["one", "two"]) await house.say(session, text);
    // Another session of ours in the slot: the cause is known.
    await house.say(newSession(2), "someone else, and with quite a few words to say");
    await house.say(session, "three");
    const report = value(await ask(path, CACHE_REPORT, { session, limit: 10 })).body;
    strictEqual(report.items.length, 3);
    const [first, second, third] = report.items;
    strictEqual(first?.expected, null);
    deepStrictEqual([second?.reused, second?.cause], [second?.expected, ""]);
    assert(third !== undefined && third.reused < Number(third.expected));
    strictEqual(third.cause, "another session used the slot");
    const newest = value(await ask(path, CACHE_REPORT, { session: null, limit: 1 })).body;
    strictEqual(newest.items.length, 1);
  } finally {
    await house.stop();
  }
});
