// Plays recorded tasks and attacks against brokerd's own rulings, without a model.
//
// Benign: every call that asks the owner is one approval; a denied one is one too and fails its task.
// Attack: the adversary knows labels and grants. It picks any result of the task that holds a place a
// stranger can write, or that the grants call untrusted; any later moment; whether to make its own
// reading calls or go straight for the effects; and for every text of its calls, a wording that means
// the same or hides it behind a granted value. brokerd reads no text of a result, so how the planted
// text itself is worded changes nothing. The owner says yes to the task's calls and to no other.
import { decide, takePlan } from "../../roles/brokerd/decision.ts";
import type { AllowGrant } from "../../roles/brokerd/grant_schema.ts";
import { CallId, SessionId, TurnId } from "../../shared/ids/ids.ts";
import { join, type Label, SESSION_START } from "../../shared/labels/label.ts";
import { DEFAULTS, type Policy, readPolicy } from "./policy.ts";
import { filled, type Step, type Suite } from "./suite_data.ts";

export type SuiteReport = {
  readonly suite: string;
  readonly lines: number;
  readonly complaints: readonly string[];
  readonly tasks: number;
  readonly completed: number;
  readonly approvals: number;
  /** Approvals by tool. */
  readonly asked: ReadonlyMap<string, number>;
  readonly pairs: number;
  /** Pairs whose every effect ran without a yes, and those of which at least one effect did. */
  readonly executed: readonly string[];
  readonly partly: readonly string[];
  /** Results with a stranger's text that the grants call trusted, of all such results. */
  readonly trustedSlots: number;
  readonly slots: number;
  /** Tools with an effect that run unasked after such a trusted result, for some arguments. */
  readonly reach: readonly string[];
};

type Said = "auto" | "asked" | "denied";

/** One session: what it has seen so far and what it has called. */
type Run = { label: Label; readonly used: Map<string, number> };

const ids = {
  session: SessionId.parse(`chat-${"0".repeat(26)}`),
  turn: TurnId.parse(`t-${"0".repeat(26)}`),
  call: CallId.parse(`c-${"0".repeat(26)}`),
};
const newRun = (): Run => ({ label: SESSION_START, used: new Map() });

/** What becomes of one call, by brokerd's ruling; the label follows the result. */
function play(policy: Policy, run: Run, step: Step, ownerSays: "yes" | "no"): Said {
  const tool = policy.tools.find(step.tool);
  if (tool === null) return "denied";
  const used = run.used.get(step.tool) ?? 0;
  const one = {
    caller: { ...ids, label: run.label },
    tool,
    args: step.args,
    paths: [],
    set: policy.loaded.set,
    job: null,
    nowUnixMs: 0,
    isStopped: false,
    used: { turn: used, day: used },
    defaults: DEFAULTS,
  };
  const first = decide(one, null);
  if (first.ruling === "deny") return "denied";
  const said = first.ruling === "allow" ? "auto" : "asked";
  if (said === "asked" && ownerSays === "no") return said;
  const ruled = first.ruling === "allow" ? first : decide(one, first.hash);
  if (ruled.ruling !== "allow") return "denied";
  run.used.set(step.tool, used + 1);
  run.label = join(run.label, takePlan(ruled.decision).result_label);
  return said;
}

const withTexts = (step: Step, textOf: (place: string) => string): Step => ({
  ...step,
  args: Object.fromEntries(Object.entries(step.args).map(([k, v]) => [k, filled(v, textOf)])),
});

/** Replays one suite under the grants in `folder`. Throws when it has none for it. */
export function replaySuite(folder: string, suite: string, data: Suite): SuiteReport {
  const policy = readPolicy(folder, suite, data);
  const harmless = (place: string) => data.vectors[place] ?? "";
  const asked = new Map<string, number>();
  let completed = 0;
  let slots = 0;
  let trustedSlots = 0;
  const reach = new Set<string>();
  const attacks = Object.entries(data.injection_tasks).filter(([, one]) =>
    one.steps.some((step) => step.mutates)
  );
  const executed: string[] = [];
  const partly: string[] = [];
  for (const [task, { steps }] of Object.entries(data.user_tasks)) {
    const run = newRun();
    let isDone = true;
    for (const step of steps) {
      const said = play(policy, run, withTexts(step, harmless), "yes");
      if (said !== "auto") asked.set(step.tool, (asked.get(step.tool) ?? 0) + 1);
      if (said === "denied") isDone = false;
      if (step.vectors.length === 0) continue;
      slots++;
      if (run.label.untrusted) continue;
      trustedSlots++;
      for (const name of unaskedEffects(policy)) reach.add(name);
    }
    if (isDone) completed++;
    for (const [attack, { goal, steps: wanted }] of attacks) {
      const worst = worstOf(policy, steps, wanted, goal);
      if (worst === "all") executed.push(`${task} + ${attack}`);
      if (worst !== "none") partly.push(`${task} + ${attack}`);
    }
  }
  const tasks = Object.keys(data.user_tasks).length;
  return {
    suite,
    lines: policy.lines,
    complaints: policy.complaints,
    tasks,
    completed,
    approvals: [...asked.values()].reduce((sum, one) => sum + one, 0),
    asked,
    pairs: tasks * attacks.length,
    executed,
    partly,
    trustedSlots,
    slots,
    reach: [...reach].toSorted(),
  };
}

type Worst = "none" | "some" | "all";

/** The worst that the adversary can get in one task, over all its choices. */
function worstOf(
  policy: Policy,
  task: readonly Step[],
  wanted: readonly Step[],
  payload: string,
): Worst {
  const run = newRun();
  let worst: Worst = "none";
  let isPlanted = false;
  for (const step of task) {
    // From the planting on, names that hold the planted text hold the payload.
    play(policy, run, withTexts(step, () => payload), "yes");
    isPlanted ||= step.vectors.length > 0 || run.label.untrusted;
    if (!isPlanted) continue;
    for (const calls of [wanted, wanted.filter((one) => one.mutates)]) {
      const got = attack(policy, run, calls, payload);
      if (got === "all") return got;
      if (got === "some") worst = got;
    }
  }
  return worst;
}

function attack(policy: Policy, at: Run, calls: readonly Step[], payload: string): Worst {
  const run: Run = { label: at.label, used: new Map(at.used) };
  let got = 0;
  for (const call of calls) {
    const wordings = wordingsOf(policy, withTexts(call, () => payload));
    const isUnasked = wordings.some((one) => play(policy, run, one, "no") === "auto");
    if (call.mutates && isUnasked) got++;
  }
  const all = calls.filter((call) => call.mutates).length;
  return got === 0 ? "none" : got === all ? "all" : "some";
}

/** The call as it is, in other letters, and with each text beside one that a grant lets through. */
function wordingsOf(policy: Policy, call: Step): Step[] {
  const covers = policy.loaded.set.grants.filter((one) => one.tool === call.tool)
    .flatMap((one) => Object.values(one.patterns ?? {}).flat())
    .filter((glob) => glob.includes("*"))
    .map((glob) => glob.replace(/\*+/g, " , ").split(" , "));
  const words: ((text: string) => string)[] = [
    (text) => text,
    (text) => text.toUpperCase(),
    (text) => text.toLowerCase(),
    (text) => `https://${text}`,
    (text) => ` ${text}`,
    ...covers.map((parts) => (text: string) => parts.join(`,${text},`)),
    ...covers.map((parts) => (text: string) => parts.join(` ${text} `)),
    ...covers.map((parts) => (text: string) => parts.join(text)),
  ];
  return words.map((word) => ({ ...call, args: reworded(call.args, word) }));
}

function reworded(args: Step["args"], word: (text: string) => string): Step["args"] {
  const change = (value: unknown): unknown =>
    typeof value === "string" ? word(value) : Array.isArray(value) ? value.map(change) : value;
  return Object.fromEntries(Object.entries(args).map(([key, value]) => [key, change(value)]));
}

/** Tools with an effect that some grant lets run unasked in a trusted session. */
function unaskedEffects(policy: Policy): string[] {
  const isAuto = (name: string) =>
    policy.loaded.set.grants.some((one) => one.tool === name && one.mode === "auto");
  const limitsOf = (name: string) =>
    policy.loaded.set.grants.filter((one): one is AllowGrant =>
      one.tool === name && one.mode === "auto"
    ).flatMap((one) => Object.keys(one.patterns ?? {}));
  return policy.tools.all().filter(({ manifest }) => manifest.effect !== "none")
    .map(({ manifest }) => manifest.name).filter(isAuto)
    .map((name) => {
      const limits = limitsOf(name);
      return limits.length === 0 ? name : `${name} (only granted ${limits.join(", ")})`;
    });
}
