// A call on its way: what is known of it, and the plain facts that follow from that. Pure.
import type { ApprovalId, CallId, SessionId, TurnId } from "../../shared/ids/ids.ts";
import { ToolName } from "../../shared/ids/ids.ts";
import { join } from "../../shared/labels/label.ts";
import { type Err, err } from "../../shared/results/result.ts";
import type { Approval } from "./approvals.ts";
import type { NewAuditRecord } from "./audit_records.ts";
import { emptyResult, type Output, type StoredResult } from "./call_results.ts";
import type { Tool } from "./catalog.ts";
import type { Ruling } from "./decision.ts";
import type { Effect } from "./executors.ts";
import { covers, folded, type JsonObject } from "./grant_match.ts";
import type { Plan } from "./plan.ts";
import { type Reason, REASONS } from "./reasons.ts";
import type { ResolvedPath } from "./real_paths.ts";
import type { SessionState } from "./taint.ts";

export type CallRequest = {
  readonly session: SessionId;
  readonly turn: TurnId;
  readonly call: CallId;
  readonly tool: string;
  /** JSON text. */
  readonly args: string;
};

type PendingCall = {
  readonly state: "queued" | "running" | "waiting_approval";
  readonly approval: ApprovalId | null;
  readonly expiresUnixMs: number | null;
};

export type Answer =
  | { readonly is: "ended"; readonly result: StoredResult }
  /** Decided; the caller runs it itself, and the result is empty. */
  | { readonly is: "run_local"; readonly result: StoredResult }
  | { readonly is: "pending"; readonly pending: PendingCall };

/** A call that has not ended. */
export type Live = {
  readonly request: CallRequest;
  readonly abort: AbortController;
  state: PendingCall["state"];
  approval: Approval | null;
  /** The call whose question and outcome this one shares. */
  leader: CallId | null;
  approvedHash: string | null;
  /** What runs, once it does. */
  plan: Plan | null;
  ending: Promise<void> | null;
};

export function liveOf(request: CallRequest, more: Partial<Live> = {}): Live {
  return {
    request,
    abort: new AbortController(),
    state: "queued",
    approval: null,
    leader: null,
    approvedHash: null,
    plan: null,
    ending: null,
    ...more,
  };
}

export type Examined = {
  readonly session: SessionState;
  readonly tool: Tool;
  readonly args: JsonObject;
  readonly paths: readonly ResolvedPath[];
};
export type Refused = {
  readonly outcome: "denied" | "failed";
  readonly code: string;
  readonly message: string;
};

export function anotherSession(call: CallId): Err {
  return err("request-invalid", `The call ${call} is one of another session`);
}

export function pendingOf(live: Live): PendingCall {
  const isAsked = live.state === "waiting_approval";
  return {
    state: live.state,
    approval: isAsked ? live.approval?.approval ?? null : null,
    expiresUnixMs: isAsked ? live.approval?.expires_unix_ms ?? null : null,
  };
}

export function refusal(reason: Reason): Refused {
  return { outcome: "denied", code: reason, message: REASONS[reason] };
}

export function invalid(failure: Err): Refused {
  const message = `${REASONS.arguments_invalid} ${failure.detail}`.slice(0, 2_000);
  return { outcome: "failed", code: "arguments_invalid", message };
}

export function broken(detail: string): Effect {
  const label = { class: "public", untrusted: false } as const;
  const rest = { label, isCut: false, container: null, log: detail };
  return { outcome: "unknown", code: "internal", message: REASONS.outcome_unknown, ...rest };
}

/** Whether `writer` may change something that `other` opens. */
export function clash(writer: Plan, other: Plan): boolean {
  const opened = other.mounts.map((its) => folded(its.path));
  return writer.mounts.filter((mine) => mine.write).map((mine) => folded(mine.path))
    .some((mine) => opened.some((its) => covers(mine, its) || covers(its, mine)));
}

export function storedOf(
  request: CallRequest,
  plan: Plan,
  effect: Effect,
  output: Output | null,
): StoredResult {
  return {
    ...emptyResult(request, effect.outcome, effect.code, effect.message),
    ...output,
    label: join(plan.result_label, effect.label),
    is_cut: effect.isCut || output === null,
    container: effect.container,
    image: plan.where === "container" ? plan.image : null,
  };
}

/** What the audit log is told of a ruling, or of a call that came to none. */
export function decisionRecord(
  request: CallRequest,
  examined: Examined | null,
  ruling: Ruling | null,
  code: string | null,
): Extract<NewAuditRecord, { kind: "decision" }> {
  const { session, turn, call, tool, args } = request;
  const passed = ruling === null || ruling.ruling === "deny" ? null : ruling;
  const grant = passed?.plan.grant ?? (ruling?.ruling === "deny" ? ruling.grant : null);
  const asked = { session, turn, call, args: args.toWellFormed() };
  return {
    kind: "decision",
    ...asked,
    tool: ToolName.safeParse(tool).success ? tool : "",
    verdict: passed === null ? "deny" : passed.ruling === "ask" ? "ask" : "auto",
    code,
    grant: grant === null ? null : { name: grant.name, sha256: grant.sha256 },
    label: examined?.session.label ?? null,
    plan: passed?.hash ?? null,
    tool_sha256: examined?.tool.sha256 ?? null,
    catalog: examined?.tool.catalog ?? null,
  };
}
