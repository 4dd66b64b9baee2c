// Whether the model server is what the owner recorded and does what a turn relies on: it calls a
// tool, reuses the first request for the second, and can be made to end a thought.
//
// 1. Until it has passed no turn asks the model; status is answered all the same.
// 2. A server that cannot be reached is no failed test: the turn that needs it says so.
// 3. Looking never loads a model; only the round trip may, and only for a turn or at a boot that
//    found the model loaded.
import type { Clock } from "../../shared/clock/clock.ts";
import type { LoopdConfig } from "../../shared/config/loopd.ts";
import { type Err, err, ok, type Result } from "../../shared/results/result.ts";
import type { Baseline } from "../../shared/session_log/records.ts";
import { canonicalText } from "../../shared/wire/codec.ts";
import type { Answer } from "./completion.ts";
import type { Model } from "./model.ts";
import { type ModelFacts, modelFacts, modelState, slotsOf } from "./model_facts.ts";
import { assistantText, bodyOf, firstMessages, resultText } from "./request.ts";
import { declaredTools } from "./tool_calls.ts";
import { isArguments } from "./tool_arguments.ts";

const AGAIN_MS = 60_000;
const BOOT_POLL_MS = 2_000;

export type Check = { readonly check: string; readonly state: string };

export interface SelfTestOptions {
  readonly model: Model;
  readonly config: LoopdConfig;
  readonly clock: Clock;
  /** The beginning that a new session would have. */
  readonly baseline: () => Promise<Baseline>;
  readonly log: (line: string) => void;
  /** Aborts when the process stops. */
  readonly stopping: AbortSignal;
}

type State = {
  verdict: "open" | "passed" | "failed";
  checks: readonly Check[];
  facts: ModelFacts | null;
  endedMs: number;
  running: Promise<Result<null>> | null;
};

const CHECKS = ["settings", "tool-round-trip", "cache-reuse", "end-of-thinking"] as const;
const NOT_RUN: readonly Check[] = CHECKS.map((check) => ({ check, state: "not-yet-run" }));

export type SelfTest = ReturnType<typeof makeSelfTest>;

export function makeSelfTest(options: SelfTestOptions) {
  const state: State = { verdict: "open", checks: NOT_RUN, facts: null, endedMs: 0, running: null };
  const isOld = () => options.clock.monotonicMs() - state.endedMs >= AGAIN_MS;
  const refusal = () => state.verdict === "failed" && !isOld() ? failed(state.checks) : null;
  const ready = async (): Promise<Result<null>> => {
    if (state.verdict === "passed") return ok(null);
    const refused = refusal();
    if (refused !== null) return refused;
    state.running ??= run(options, state).finally(() => {
      state.running = null;
    });
    return await state.running;
  };
  return {
    /** Holds when the test has passed; runs it when it has not. Whoever holds a slot waits for it. */
    ready,
    /** Why no turn may start now, or null. */
    refusal,
    report: () => state.checks,
    facts: () => state.facts,
    /** Runs it as soon as the model is there, unless it is not loaded: then the first turn does. */
    async atBoot(): Promise<void> {
      const { stopping } = options;
      while (!stopping.aborted && state.verdict === "open") {
        const found = await modelState(options.model, options.config.inference.model);
        if (found.ok && found.value !== "loaded") return;
        if (found.ok && ((await ready()).ok || state.verdict !== "open")) return;
        await options.clock.sleep(BOOT_POLL_MS, stopping);
      }
    },
  };
}

function failed(checks: readonly Check[]): Err {
  const wrong = checks.filter((one) => one.state.startsWith("failed"));
  return err("self-test-failed", wrong.map((one) => `${one.check}: ${one.state}`).join("; "));
}

async function run(options: SelfTestOptions, state: State): Promise<Result<null>> {
  state.checks = CHECKS.map((check) => ({ check, state: "running" }));
  const checks: Check[] = [];
  const tested = await trials(options, await testSlot(options), checks);
  const { model } = options.config.inference;
  const facts = tested.ok ? await modelFacts(options.model, model) : tested;
  if (!facts.ok) {
    state.checks = NOT_RUN;
    return facts;
  }
  state.facts = facts.value;
  state.checks = [{ check: "settings", state: settings(options.config, facts.value) }, ...checks];
  state.endedMs = options.clock.monotonicMs();
  const isGood = state.checks.every((one) => !one.state.startsWith("failed"));
  state.verdict = isGood ? "passed" : "failed";
  for (const one of state.checks) options.log(`self-test: ${one.check}: ${one.state}`);
  return isGood ? ok(null) : failed(state.checks);
}

/** The main slot while it is empty, as its first session then finds it warm; else the other one. */
async function testSlot({ model, config }: SelfTestOptions): Promise<number> {
  const { main, background } = config.inference.slots;
  const slots = await slotsOf(model, config.inference.model);
  const isUsed = slots?.some((one) => one.id === main && (one.n_prompt_tokens ?? 0) > 0);
  return isUsed ? background : main;
}

/** What the server is, against what the owner recorded. */
function settings(config: LoopdConfig, facts: ModelFacts): string {
  const { expected, slots } = config.inference;
  const pairs = [
    ["build", expected.build, facts.build],
    ["template", expected.template_sha256, facts.templateSha256],
    ["n_ctx", expected.n_ctx, facts.nCtx],
    ["slots", expected.slots, facts.slots],
  ] as const;
  const wrong = pairs.filter(([, want, have]) => want !== undefined && want !== have)
    .map(([name, want, have]) => `${name} is ${have ?? "not told"}, recorded is ${want}`);
  if (facts.slots !== null && slots.main >= facts.slots) {
    wrong.push(`slot ${slots.main} is configured, the server has ${facts.slots}`);
  }
  if (facts.printsDate) wrong.push("the template prints the date");
  if (wrong.length > 0) return `failed: ${wrong.join("; ")}`;
  return pairs.every(([, , have]) => have === null)
    ? "not-applicable: the server does not tell its properties"
    : "ok";
}

async function trials(
  options: SelfTestOptions,
  slot: number,
  checks: Check[],
): Promise<Result<null>> {
  const baseline = await options.baseline();
  const target = { model: options.config.inference.model, slot };
  const quiet = { onPiece: () => {}, onRetry: () => {}, signal: options.stopping };
  const put = (messages: readonly string[], thinkingLeft: number) =>
    options.model.ask(bodyOf(baseline, messages, target).bytes, { slot, thinkingLeft, ...quiet });
  const asked = canonicalText({ role: "user", content: question(baseline) });
  const first = [...firstMessages(baseline), asked];
  const called = await put(first, options.config.inference.thinking_tokens);
  if (!called.ok) return called;
  const answer = called.value;
  const trip = roundTrip(answer, declaredTools(baseline.tools).map((tool) => tool.name));
  checks.push({ check: "tool-round-trip", state: trip });
  if (trip !== "ok") {
    checks.push(...NOT_RUN.slice(2));
    return ok(null);
  }
  const second = await put([...first, ...exchangeOf(answer)], 1_000_000);
  if (!second.ok) return second;
  checks.push({ check: "cache-reuse", state: reuse(answer, second.value) });
  const ended = answer.reasoning === "" ? null : await put(first, 1);
  if (ended?.ok === false && ended.code !== "thinking-limit") return ended;
  checks.push({ check: "end-of-thinking", state: endOfThinking(ended) });
  return ok(null);
}

/** A question that the examples answer with a call, or one that any model of use does. */
function question(baseline: Baseline): string {
  const { examples } = baseline;
  const called = examples.findIndex((message) => message["tool_calls"] !== undefined);
  const asked = examples[called - 1]?.["content"];
  return typeof asked === "string" ? asked : "What time is it? Call the tool clock.";
}

function roundTrip(answer: Answer, declared: readonly string[]): string {
  const [call] = answer.calls;
  if (call === undefined) return "failed: the model was asked to call a tool and called none";
  if (answer.finish !== "tool_calls") return `failed: the call ended with ${answer.finish}`;
  if (!declared.includes(call.name)) return `failed: the model called ${call.name.slice(0, 64)}`;
  return answer.calls.every((one) => isArguments(one.arguments))
    ? "ok"
    : "failed: a call's arguments are no JSON object";
}

/** The answer as it would be replayed, and a result for each of its calls. */
function exchangeOf({ content, reasoning, calls }: Answer): string[] {
  const tool_calls = calls.map((call, i) => ({ ...call, call: `self-test-${i}` }));
  return [
    assistantText({ content, reasoning_content: reasoning, tool_calls }),
    ...tool_calls.map(({ call }) => resultText(call, "It is noon.")),
  ];
}

function reuse(first: Answer, second: Answer): string {
  if (first.timings === null || second.timings === null) {
    return "not-applicable: the server gives no timings";
  }
  const { cache_n, prompt_n, predicted_n } = first.timings;
  const expected = cache_n + prompt_n + predicted_n - 1;
  const said = `${second.timings.cache_n} of ${expected} tokens were reused`;
  return second.timings.cache_n * 2 >= expected ? `ok: ${said}` : `failed: ${said}`;
}

function endOfThinking(ended: Result<Answer> | null): string {
  if (ended === null) return "not-applicable: the model did not think";
  return ended.ok ? "ok" : `failed: ${ended.code}: ${ended.detail}`.slice(0, 500);
}
