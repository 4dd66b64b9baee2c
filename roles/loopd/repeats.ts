// How often the calls of a turn ask for the same. Two calls are the same when they ask for one thing
// in whatever words, and also when they differ only in something made up for the occasion (a number
// drawn by lot, a time, an attempt) and the tool kept answering the same. Pure.
import type { CallId } from "../../shared/ids/ids.ts";
import type { SessionRecord } from "../../shared/session_log/records.ts";
import { callKey } from "./tool_calls.ts";

/** The line under a result that tells the model of its repetition; not a part of what was answered. */
export function repeatWarning(times: number): string {
  return `This same call was made ${times} times in this turn; it will not answer otherwise`;
}
const WARNING = /\n\[This same call was made \d+ times[^\]]*\]$/;

const NONCE_MEMBER =
  /"(?:nonce|salt|seed|rand(?:om)?|time(?:stamp)?|ts|now|attempt|retry|try|(?:request|trace)_?id|uuid|guid)":(?:"[^"]*"|-?[\d.]+)/gi;
const NONCE_VALUE =
  /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\b(?=[a-f]*\d)[0-9a-f]{8,}\b|\b[0-9A-HJKMNP-TV-Z]{26}\b|\d{6,}/gi;

function withoutNonce(key: string): string {
  return key.replace(NONCE_MEMBER, '"":0').replace(NONCE_VALUE, "0");
}

/** For each call of the turn: how many, up to and including it, were the same. */
export function repeatCounts(records: readonly SessionRecord[]): Map<CallId, number> {
  const answers = new Map(
    records.flatMap((record) =>
      record.kind === "tool_result"
        ? [[record.call, record.artifact ?? record.content.replace(WARNING, "")] as const]
        : []
    ),
  );
  const exact = new Map<string, number>();
  const alike = new Map<string, { readonly answer: string; readonly times: number }>();
  const counts = new Map<CallId, number>();
  for (const record of records) {
    for (const call of record.kind === "assistant" ? record.tool_calls : []) {
      const key = callKey(call);
      exact.set(key, (exact.get(key) ?? 0) + 1);
      const loose = withoutNonce(key);
      const before = alike.get(loose);
      // A call without its answer may yet turn out to be like the one before it.
      const answer = answers.get(call.call) ?? before?.answer ?? "";
      const times = before?.answer === answer ? before.times + 1 : 1;
      alike.set(loose, { answer, times });
      counts.set(call.call, Math.max(exact.get(key) ?? 0, times));
    }
  }
  return counts;
}
