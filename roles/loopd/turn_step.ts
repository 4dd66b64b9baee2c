// What a turn needs next, from its records alone: the same answer in a turn that is running and in
// one that a crash has left, which is why a restart simply goes on. Pure.
import type { ErrorCode } from "../../shared/results/codes.ts";
import { type Err, err } from "../../shared/results/result.ts";
import type { LoggedCall, SessionRecord } from "../../shared/session_log/records.ts";
import { repeatCounts } from "./repeats.ts";

/** The same call so many times within a turn: the model is told, the turn is ended. */
export const REPEATS_TOLD = 3;
export const REPEATS_ENDED = 6;

export type Step =
  | { readonly is: "ask" }
  | { readonly is: "call"; readonly call: LoggedCall; readonly repeats: number }
  | { readonly is: "reply"; readonly text: string }
  | { readonly is: "stop"; readonly why: Err; readonly unanswered: readonly LoggedCall[] }
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
  const repeats = repeatCounts(records);
  const stop = (code: ErrorCode, detail: string): Step => ({
    is: "stop",
    why: err(code, detail),
    unanswered,
  });
  if (records.some((one) => one.kind === "notice" && one.code === "turn-cancelled")) {
    return stop("turn-cancelled", "");
  }
  const looped = calls.find((call) => (repeats.get(call.call) ?? 0) >= REPEATS_ENDED);
  if (looped !== undefined) {
    return stop("repeated-call", `${REPEATS_ENDED} times ${looped.name} ${looped.arguments}`);
  }
  if (calls.length > maxCalls) {
    return stop("tool-calls-limit", `the model wanted call ${calls.length} of ${maxCalls}`);
  }
  const [call] = unanswered;
  if (call !== undefined) return { is: "call", call, repeats: repeats.get(call.call) ?? 1 };
  const last = records.findLast((record): record is Assistant => record.kind === "assistant");
  if (last === undefined || last.tool_calls.length > 0) return { is: "ask" };
  if (last.content.trim() !== "") {
    const cut = last.finish === "length" ? "\n\n[cut off here: the context is used up]" : "";
    return { is: "reply", text: last.content + cut };
  }
  return stop("answer-empty", last.finish === "length" ? "thinking used up the limit" : "");
}
