// What a turn needs next, from its records alone: the same answer in a turn that is running and in
// one that a crash has left, which is why a restart simply goes on. Pure.
import type { ErrorCode } from "../../shared/results/codes.ts";
import type { LoggedCall, SessionRecord } from "../../shared/session_log/records.ts";
import { callKey } from "./tool_calls.ts";

/** The same call so many times within a turn: the model is told, the turn is ended. */
export const REPEATS_TOLD = 3;
export const REPEATS_ENDED = 6;

export type Step =
  | { readonly is: "ask" }
  | { readonly is: "call"; readonly call: LoggedCall; readonly repeats: number }
  | { readonly is: "reply"; readonly text: string }
  | { readonly is: "stop"; readonly code: ErrorCode; readonly unanswered: readonly LoggedCall[] }
  | { readonly is: "ended" };

type Assistant = Extract<SessionRecord, { kind: "assistant" }>;

/** `records` are those of one turn, in order; `maxCalls` is what one turn may make. */
export function nextStep(records: readonly SessionRecord[], maxCalls: number): Step {
  if (records.some((record) => record.kind === "turn_end")) return { is: "ended" };
  const calls = records.flatMap((record) => record.kind === "assistant" ? record.tool_calls : []);
  const answered = new Set(
    records.flatMap((record) => record.kind === "tool_result" ? [record.call] : []),
  );
  const unanswered = calls.filter((call) => !answered.has(call.call));
  const code = stopCode(records, calls, maxCalls);
  if (code !== null) return { is: "stop", code, unanswered };
  const [call] = unanswered;
  if (call !== undefined) return { is: "call", call, repeats: repeatsOf(call, calls) };
  const last = records.findLast((record): record is Assistant => record.kind === "assistant");
  if (last === undefined || last.tool_calls.length > 0) return { is: "ask" };
  return last.content.trim() === ""
    ? { is: "stop", code: "answer-empty", unanswered: [] }
    : { is: "reply", text: last.content };
}

/** How many calls up to and including `call` ask for the same as it does. */
function repeatsOf(call: LoggedCall, calls: readonly LoggedCall[]): number {
  const key = callKey(call);
  const upTo = calls.findIndex((other) => other.call === call.call) + 1;
  return calls.slice(0, upTo).filter((other) => callKey(other) === key).length;
}

function stopCode(
  records: readonly SessionRecord[],
  calls: readonly LoggedCall[],
  maxCalls: number,
): ErrorCode | null {
  const isCancelled = records.some((r) => r.kind === "notice" && r.code === "turn-cancelled");
  if (isCancelled) return "turn-cancelled";
  if (calls.some((call) => repeatsOf(call, calls) >= REPEATS_ENDED)) return "repeated-call";
  return calls.length > maxCalls ? "tool-calls-limit" : null;
}
