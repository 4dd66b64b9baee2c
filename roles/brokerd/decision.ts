// Rules on a call and makes the value without which nothing runs. This module alone can make one: it
// evaluates the grants itself, and has no decoder on purpose.
//
// 1. The plan sits inside, copied and frozen when the decision is made: approving one thing and
//    running another cannot be written.
// 2. An `ask` becomes a decision only for the very plan, by hash, that the owner said yes to.
// 3. Taking the plan spends the decision; there is no second time.
// 4. The check is syntax (`#plan in x`), which no patched prototype changes. What is left is a
//    debugger on the process, and code in this file.
import type { Tool } from "./catalog.ts";
import { evaluate, type GrantSet, type JsonObject } from "./grant_match.ts";
import type { Grant } from "./grant_schema.ts";
import { type Caller, type LimitDefaults, type Plan, planHash, planOf } from "./plan.ts";
import type { Reason } from "./reasons.ts";
import type { ResolvedPath } from "./real_paths.ts";

const MINT = Symbol("mint");

class DecisionImpl {
  readonly #plan: Plan;
  #isSpent = false;

  constructor(key: symbol, plan: Plan) {
    if (key !== MINT || new.target !== DecisionImpl) {
      throw new TypeError("A decision cannot be made here");
    }
    this.#plan = plan;
    Object.freeze(this);
  }

  static take(decision: unknown): Plan {
    if (typeof decision !== "object" || decision === null || !(#plan in decision)) {
      throw new TypeError("This is no decision");
    }
    if (decision.#isSpent) throw new TypeError("This decision is spent");
    decision.#isSpent = true;
    return decision.#plan;
  }

  toJSON(): never {
    throw new TypeError("A decision has no wire form");
  }
}

/** The type leaves this module; the class does not. */
export type Decision = DecisionImpl;

/** One call as it stands now: who asks for what, and the grants in force. */
export type Case = {
  readonly caller: Caller;
  readonly tool: Tool;
  readonly args: JsonObject;
  readonly paths: readonly ResolvedPath[];
  readonly set: GrantSet;
  readonly job: string | null;
  readonly nowUnixMs: number;
  readonly isStopped: boolean;
  readonly used: { readonly turn: number; readonly day: number };
  readonly defaults: LimitDefaults;
};

export type Ruling =
  | {
    readonly ruling: "deny";
    readonly code: Reason;
    readonly grant: Grant | null;
  }
  | { readonly ruling: "ask"; readonly plan: Plan; readonly hash: string }
  | {
    readonly ruling: "allow";
    readonly plan: Plan;
    readonly hash: string;
    readonly decision: Decision;
  };

/**
 * Rules on a case. `approvedHash` is the hash of the plan that the owner approved for this very call,
 * or null; it turns an `ask` for exactly that plan into a decision, and nothing else.
 */
export function decide(one: Case, approvedHash: string | null): Ruling {
  const { name: tool, network } = one.tool.manifest;
  const verdict = evaluate(one.set, { ...one, tool, network, label: one.caller.label });
  if (verdict.verdict === "deny") {
    return { ruling: "deny", code: verdict.code, grant: verdict.grant };
  }
  const plan = frozen(
    planOf(one.caller, one.tool, one.args, one.paths, verdict.grant, verdict.limits, one.defaults),
  );
  const hash = planHash(plan);
  if (verdict.verdict === "auto" || approvedHash === hash) {
    return { ruling: "allow", plan, hash, decision: new DecisionImpl(MINT, plan) };
  }
  return { ruling: "ask", plan, hash };
}

/** Spends a decision and gives the plan. Throws on anything that is not an unspent decision. */
export const takePlan: (decision: Decision) => Plan = DecisionImpl.take;

function frozen(plan: Plan): Plan {
  const copy = structuredClone(plan);
  freezeAll(copy);
  return copy;
}

function freezeAll(value: unknown): void {
  if (typeof value !== "object" || value === null) return;
  Object.freeze(value);
  for (const inner of Object.values(value)) freezeAll(inner);
}
