// Guards the one thing that lets a tool run: nobody but decision.ts can make a decision, what is in
// it cannot be changed, and it works once. Each test is one way that others have tried.
import { ok, strictEqual, throws } from "node:assert";
import { type Case, decide, type Decision, takePlan } from "./decision.ts";
import { planHash } from "./plan.ts";
import { newCall, newTurn, openChat, testHouse } from "../../tests/doubles/broker_house.ts";
import { examine } from "./examine.ts";
import { SESSION_START } from "../../shared/labels/label.ts";
import { builtInGrants } from "./builtin_grants.ts";

/** A case that the built-in clock grant allows. */
function clockCase(): Case {
  const test = testHouse();
  const house = test.open();
  const request = {
    session: openChat(house),
    turn: newTurn(),
    call: newCall(),
    tool: "clock",
    args: "{}",
  };
  const examined = examine(
    { ...test.ports, tools: house.tools, sessions: house.sessions },
    request,
  );
  ok(!("outcome" in examined));
  house.approvals.close();
  house.close();
  return {
    ...examined,
    caller: { ...request, label: SESSION_START },
    set: {
      grants: builtInGrants("auto"),
      blockedTools: new Set(),
      isAllBlocked: false,
      defaultLimits: { calls_per_turn: 5, calls_per_day: 5 },
    },
    job: null,
    nowUnixMs: 0,
    isStopped: false,
    used: { turn: 0, day: 0 },
    defaults: { timeout_s: 5, output_bytes: 1_000, memory_mb: 64, pids: 32 },
  };
}

function genuine(): Decision {
  const ruling = decide(clockCase(), null);
  ok(ruling.ruling === "allow");
  return ruling.decision;
}

/** Spends a value past the type checker: what is tested is what happens when it runs. */
function spend(value: unknown): unknown {
  return Reflect.apply(takePlan, null, [value]);
}

function refused(value: unknown): void {
  throws(() => spend(value), /TypeError: This is no decision/);
}

Deno.test("takePlan() a constructor found on a genuine decision makes no other", () => {
  const real = genuine();
  const found = Object.getPrototypeOf(real).constructor;
  for (const key of [undefined, Symbol("mint"), Symbol.for("mint"), null, {}]) {
    throws(() => new found(key, {}), TypeError);
    throws(() => Reflect.construct(found, [key, {}]), TypeError);
    throws(() => Reflect.construct(found, [key, {}], Object), TypeError);
  }
  throws(() => {
    class Sub extends found {}
    return Reflect.construct(Sub, [Symbol("mint"), {}]);
  }, TypeError);
});

Deno.test("takePlan() a likeness of a decision is none", async () => {
  const real = genuine();
  refused(Object.create(Object.getPrototypeOf(real)));
  refused({ ...real });
  refused(Object.assign(Object.create(Object.getPrototypeOf(real)), real));
  refused(Object.setPrototypeOf({ plan: {} }, Object.getPrototypeOf(real)));
  refused(new Proxy(real, {}));
  refused(structuredClone({ ...real }));
  const { port1, port2 } = new MessageChannel();
  const arrived = new Promise((resolve) => port2.onmessage = (event) => resolve(event.data));
  port1.postMessage({ ...real });
  refused(await arrived);
  port1.close();
  port2.close();
  for (const value of [null, undefined, 0, "", "decision", true, [], () => {}, Symbol()]) {
    refused(value);
  }
  ok(takePlan(real), "the genuine one still works after all that");
});

Deno.test("takePlan() a clone of a genuine decision carries no plan", () => {
  const real = genuine();
  let clone: unknown = null;
  try {
    clone = structuredClone(real);
  } catch (thrown) {
    ok(thrown instanceof DOMException || thrown instanceof TypeError);
  }
  refused(clone);
});

Deno.test("takePlan() JSON makes no decision, and a decision makes no JSON", () => {
  refused(JSON.parse('{"plan":{"tool":"clock"},"isSpent":false}'));
  throws(() => JSON.stringify(genuine()), /no wire form/);
  throws(() => JSON.stringify({ deep: [genuine()] }), /no wire form/);
});

Deno.test("takePlan() a second copy of the module makes decisions of another kind", async () => {
  const copy = await import("./decision.ts?copy");
  const ruling = copy.decide(clockCase(), null);
  strictEqual(ruling.ruling, "allow");
  refused(ruling.decision);
  throws(() => Reflect.apply(copy.takePlan, null, [genuine()]), /This is no decision/);
});

Deno.test("takePlan() patched prototypes change nothing", () => {
  const before = [WeakSet.prototype.has, WeakMap.prototype.has, Object.isFrozen] as const;
  try {
    WeakSet.prototype.has = () => true;
    WeakMap.prototype.has = () => true;
    Object.isFrozen = () => true;
    refused({});
    refused(Object.create(Object.getPrototypeOf(genuine())));
  } finally {
    [WeakSet.prototype.has, WeakMap.prototype.has, Object.isFrozen] = before;
  }
});

Deno.test("takePlan() the second time throws, on the same object and through any alias", () => {
  const real = genuine();
  const alias = [real];
  takePlan(real);
  throws(() => takePlan(real), /spent/);
  throws(() => takePlan(alias[0] ?? real), /spent/);
});

Deno.test("takePlan() the plan inside cannot be changed from outside, before or after", () => {
  const one = clockCase();
  const args: Record<string, unknown> = { timezone: "Europe/Berlin" };
  const ruling = decide({ ...one, args }, null);
  ok(ruling.ruling === "allow");
  args.timezone = "changed";
  const plan = takePlan(ruling.decision);
  strictEqual(plan.args.timezone, "Europe/Berlin");
  throws(() => Object.assign(plan, { tool: "write_file" }), TypeError);
  throws(() => plan.mounts.push({ path: "/", write: true }), TypeError);
  throws(() => Object.assign(plan.args, { timezone: "x" }), TypeError);
  throws(() => Object.assign(ruling.decision, { x: 1 }), TypeError);
  strictEqual(planHash(plan), ruling.hash);
});

Deno.test("decide() an ask becomes a decision for the very plan that was approved and no other", () => {
  const one = { ...clockCase(), set: asking() };
  const first = decide(one, null);
  ok(first.ruling === "ask");
  const other = decide({ ...one, args: { timezone: "Asia/Tokyo" } }, first.hash);
  strictEqual(other.ruling, "ask");
  const moved = decide({ ...one, caller: { ...one.caller, call: newCall() } }, first.hash);
  strictEqual(moved.ruling, "ask");
  const tainted = { class: "private", untrusted: true } as const;
  strictEqual(
    decide({ ...one, caller: { ...one.caller, label: tainted } }, first.hash).ruling,
    "ask",
  );
  strictEqual(decide(one, "0".repeat(64)).ruling, "ask");
  strictEqual(decide(one, first.hash).ruling, "allow");
  strictEqual(decide({ ...one, isStopped: true }, first.hash).ruling, "deny");
});

Deno.test("decide() the plan has the lowest limit of all grants that fit, and of the defaults where one is silent", () => {
  const one = clockCase();
  const [clock] = one.set.grants.filter((grant) => grant.tool === "clock");
  ok(clock !== undefined && clock.mode !== "deny");
  const under = (...limits: (typeof clock.limits)[]) => {
    const grants = limits.map((each) => ({ ...clock, limits: each }));
    const ruling = decide({ ...one, set: { ...one.set, grants } }, null);
    ok(ruling.ruling === "allow");
    return ruling.plan.limits;
  };
  strictEqual(under({ timeout_s: 600 }).timeout_s, 600);
  for (const limits of [[{ timeout_s: 600 }, {}], [{}, { timeout_s: 600 }]]) {
    strictEqual(under(...limits).timeout_s, 5);
  }
  const both = under({ timeout_s: 600, pids: 20 }, { timeout_s: 3, output_bytes: 10 });
  strictEqual(`${both.timeout_s} ${both.pids} ${both.output_bytes}`, "3 20 10");
});

function asking(): Case["set"] {
  const grants = builtInGrants("auto").map((grant) => ({ ...grant, mode: "ask" as const }));
  return { ...clockCase().set, grants };
}

Deno.test("Decision code that forges one does not type-check", async () => {
  const source = [
    `import { type Decision, takePlan } from "${import.meta.resolve("./decision.ts")}";`,
    "const a: Decision = { toJSON: () => { throw new TypeError(); } };",
    "takePlan({});",
    "takePlan(null);",
    "export const taken = takePlan(a);",
  ].join("\n");
  const folder = Deno.makeTempDirSync();
  const path = `${folder}/forgery.ts`;
  Deno.writeTextFileSync(path, source);
  try {
    const check = await new Deno.Command(Deno.execPath(), {
      args: [
        "check",
        "--quiet",
        `--config=${decodeURIComponent(new URL("../../deno.json", import.meta.url).pathname)}`,
        path,
      ],
      stdout: "null",
      stderr: "piped",
      env: { NO_COLOR: "1" },
    }).output();
    ok(!check.success, "a forgery passed the type check");
    const said = new TextDecoder().decode(check.stderr);
    for (const line of ["const a: Decision", "takePlan({})", "takePlan(null)"]) {
      ok(said.includes(line), `not refused: ${line}\n${said}`);
    }
  } finally {
    Deno.removeSync(folder, { recursive: true });
  }
});

Deno.test("decision.ts exports no class, no mint and no decoder", async () => {
  const names = Object.keys(await import("./decision.ts")).sort();
  strictEqual(names.join(" "), "decide takePlan");
});
