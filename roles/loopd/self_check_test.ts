// Guards the README's sentence on the self-test: what was recorded must be seen, and a server that
// breaks off is no failed test.
import { deepStrictEqual, ok as assert, strictEqual } from "node:assert";
import { systemClock } from "../../shared/clock/clock.ts";
import { LoopdConfig } from "../../shared/config/loopd.ts";
import { type Err, err, ok, type Result } from "../../shared/results/result.ts";
import type { Answer } from "./completion.ts";
import { toolsArray } from "./core_tools.ts";
import type { Model } from "./model.ts";
import { makeSelfTest } from "./self_check.ts";
import { newSession } from "../../tests/doubles/loopd_house.ts";

const called: Answer = {
  content: "",
  reasoning: "The clock.",
  calls: [{ name: "clock", arguments: "{}" }],
  finish: "tool_calls",
  timings: null,
};

/** A self-test against a server that says this, `answers` one after another. */
function selfTest(
  expected: object,
  props: Result<unknown>,
  answers: readonly (Answer | Err)[],
) {
  const left = [...answers];
  const model: Model = {
    ask() {
      const next = left.shift() ?? err("internal", "asked too often");
      return Promise.resolve("ok" in next ? next : ok(next));
    },
    look: (path) => Promise.resolve(path.startsWith("/props") ? props : ok(null)),
    erase: () => Promise.resolve(false),
    whenFree: () => Promise.resolve(),
  };
  return makeSelfTest({
    model,
    config: LoopdConfig.parse({ inference: { expected } }),
    clock: systemClock,
    baseline: () =>
      Promise.resolve({
        ...{ v: 1, session: newSession(), epoch: 0, created_unix_ms: 1 },
        label: { class: "private", untrusted: false },
        ...{ system: "s", examples: [], tools: toolsArray(), sampling: {} },
      }),
    log: () => {},
    stopping: new AbortController().signal,
  });
}

const state = (test: ReturnType<typeof selfTest>, check: string) =>
  test.report().find((one) => one.check === check)?.state;

Deno.test("ready() refuses a server that does not tell what the owner recorded of it", async () => {
  const tells = [ok(null), ok({}), ok("odd"), ok({ build_info: 7 })];
  for (const props of tells) {
    const test = selfTest({ build: "b1" }, props, [called, called, called]);
    const ready = await test.ready();
    strictEqual(ready.ok ? "ok" : ready.code, "self-test-failed");
    assert(state(test, "settings")?.includes("recorded is b1"));
    const open = selfTest({}, props, [called, called, called]);
    assert((await open.ready()).ok);
    assert(state(open, "settings")?.startsWith("not-applicable"));
  }
});

Deno.test("ready() is no failed test when the server breaks off, whichever question it was", async () => {
  const away = err("model-unreachable", "gone");
  for (const answers of [[away], [called, away], [called, called, away]]) {
    const test = selfTest({}, ok({}), answers);
    deepStrictEqual(await test.ready(), away);
    strictEqual(test.refusal(), null);
    strictEqual(state(test, "end-of-thinking"), "not-yet-run");
  }
  const unseen = selfTest({ build: "b1" }, away, [called, called, called]);
  deepStrictEqual(await unseen.ready(), away);
  strictEqual(unseen.refusal(), null);
});

Deno.test("ready() refuses a server whose thoughts cannot be ended", async () => {
  const test = selfTest({}, ok({}), [called, called, err("thinking-limit", "on and on")]);
  const ready = await test.ready();
  strictEqual(ready.ok ? "ok" : ready.code, "self-test-failed");
  assert(state(test, "end-of-thinking")?.startsWith("failed: thinking-limit"));
});
