// Generation: walks the plan token by token under the request's limits, the thinking budget, the
// control endpoint and the knobs, and hands every visible delta on. It ends in one of four ways:
// finished, cancelled by the client, interrupted by the server, or broken off by a fault knob.
import type { Interrupt, RunningTask } from "./engine.ts";
import type { Knobs } from "./knobs.ts";
import { counted, type CountedStep, type Delta, type Plan } from "./plan.ts";
import { wholeText } from "./tokens.ts";
import type { Finish } from "./turn.ts";
import { rest, settled } from "./waiting.ts";

export type Generation = {
  readonly plan: Plan;
  readonly task: RunningTask;
  readonly knobs: Knobs;
  /** Aborts when nobody wants the answer any more. */
  readonly cancelled: AbortSignal;
  /** Tokens that may be generated; at least 1. */
  readonly limit: number;
  /** The request's thinking budget: N lets N-1 tokens through; 0 and less do nothing. */
  readonly budget: number;
  /** Ends with `length` after the first newline past this time; 0 = never. */
  readonly maxMs: number;
  /** True when a forced end of thinking kills the process. */
  readonly endTagForbidden: boolean;
  /** Called for each step of whole characters, null when nothing of it can be seen. */
  readonly show: (delta: Delta | null, predictedN: number) => Promise<void>;
  /** Called for every token, visible or not. */
  readonly onToken: (predictedN: number) => void;
};

export type Break = "error" | "end" | "reset" | "proxy";
export type Outcome =
  | { readonly kind: "finished"; readonly finish: Finish }
  | { readonly kind: "cancelled" }
  | { readonly kind: "interrupted"; readonly interrupt: Interrupt }
  | { readonly kind: "broken"; readonly how: Break }
  | { readonly kind: "aborted" };

/** How often a fast answer lets the rest of the program run, so that a disconnect is seen. */
const BREATH_TOKENS = 32;
type Forced = { readonly kind: "forced" };
const FORCED: Forced = { kind: "forced" };

/** @param tokens receives the generated tokens as they come */
export async function generate(g: Generation, tokens: number[]): Promise<Outcome> {
  const stop = AbortSignal.any([g.cancelled, g.task.wake.signal]);
  const startedMs = performance.now();
  const early = breakAfter(g.knobs, 0);
  if (early !== null) return { kind: "broken", how: early };
  let deltas = 0;
  let fragments = 0;
  for (const step of walk(g)) {
    if ("kind" in step) {
      if (g.endTagForbidden) return { kind: "aborted" };
      continue;
    }
    if (step.until !== undefined) await settled(step.until, stop);
    await rest((step.holdMs ?? 0) + step.tokens.length * g.knobs.tokenMs, stop);
    if (tokens.length % BREATH_TOKENS === BREATH_TOKENS - 1) await rest(1, stop);
    const ended = endedBy(g);
    if (ended !== null) return ended;
    const room = g.limit - tokens.length;
    const own = step.tokens.slice(0, room);
    tokens.push(...own);
    g.onToken(tokens.length);
    const delta = own.length === step.tokens.length ? step.delta : partOf(step, own);
    if (delta !== null || (own.length > 0 && wholeText(own) !== "")) {
      await g.show(delta, tokens.length);
    }
    if (delta !== null) {
      deltas++;
      if ("tool_calls" in delta) fragments++;
      const how = breakAfter(g.knobs, deltas);
      if (how !== null) return { kind: "broken", how };
      if (g.knobs.cutArgumentsAfter === fragments) return { kind: "finished", finish: "length" };
    }
    if (step.ends && own.length === step.tokens.length) {
      return { kind: "finished", finish: g.plan.finish };
    }
    const late = g.maxMs > 0 && step.raw.includes("\n") &&
      performance.now() - startedMs > g.maxMs;
    if (tokens.length >= g.limit || late) return { kind: "finished", finish: "length" };
  }
  return { kind: "finished", finish: g.plan.finish };
}

/** The steps in order; a forced end of thinking announces itself. */
function* walk(g: Generation): Generator<CountedStep | Forced> {
  let thoughtTokens = 0;
  for (const step of thoughts(g.plan)) {
    const isOver = g.budget > 0 && thoughtTokens + step.tokens.length > g.budget - 1;
    if (isOver || (g.task.endReasoning && !g.knobs.reasoningEndIgnored)) {
      yield FORCED;
      yield* counted(g.plan.forced);
      return;
    }
    thoughtTokens += step.tokens.length;
    yield step;
  }
  yield* counted(g.plan.answer);
}

function* thoughts(plan: Plan): Generator<CountedStep> {
  yield* counted(plan.thought);
  if (plan.endless === null) return;
  const unit = counted([plan.endless]);
  while (true) yield* unit;
}

function endedBy(g: Generation): Outcome | null {
  if (g.task.interrupt !== null) return { kind: "interrupted", interrupt: g.task.interrupt };
  return g.cancelled.aborted ? { kind: "cancelled" } : null;
}

/** What can be shown of a step whose last tokens were not generated. */
function partOf(step: CountedStep, own: readonly number[]): Delta | null {
  const text = wholeText(own);
  if (step.delta === null || text === "" || "tool_calls" in step.delta) return null;
  return "content" in step.delta ? { content: text } : { reasoning_content: text };
}

function breakAfter(knobs: Knobs, deltas: number): Break | null {
  if (knobs.errorAfter?.deltas === deltas) return "error";
  if (knobs.endAfter === deltas) return "end";
  if (knobs.resetAfter === deltas) return "reset";
  return knobs.proxyErrorAfter === deltas ? "proxy" : null;
}
