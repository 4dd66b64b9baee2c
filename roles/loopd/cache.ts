// What the server should have reused of a request, against what it did. A loss is recorded, never an
// error: the server is shared and may unload the model.
import type { TurnId } from "../../shared/ids/ids.ts";
import type { SessionRecord, Timings } from "../../shared/session_log/records.ts";

/** Tokens of the end that a server may read anew without anything being wrong. */
const SLACK = 8;

/**
 * Tokens that the next request should find in the cache: all that was in it but the last sampled one.
 * Null when the last answer of the epoch did not end by itself, as its text may be cut otherwise.
 */
export function expectedReuse(records: readonly SessionRecord[]): number | null {
  const last = records.findLast((record) => record.kind === "assistant");
  if (last?.kind !== "assistant" || last.timings === null || last.finish === "length") return null;
  const { cache_n, prompt_n, predicted_n } = last.timings;
  return Math.max(0, cache_n + prompt_n + predicted_n - 1);
}

/** The record of a loss, or null when there was none. `records` do not hold the new answer yet. */
export function cacheLoss(
  turn: TurnId,
  timings: Timings | null,
  records: readonly SessionRecord[],
  now: { readonly nowUnixMs: number; readonly hasOtherUser: boolean },
): SessionRecord | null {
  const expected = expectedReuse(records);
  if (timings === null || expected === null || timings.cache_n >= expected - SLACK) return null;
  const guess = now.hasOtherUser
    ? "another session used the slot"
    : timings.cache_n === 0
    ? "the model was unloaded, or another client used the slot"
    : "the template renders earlier messages otherwise, or another client used the slot";
  return {
    kind: "cache_loss",
    time_unix_ms: now.nowUnixMs,
    turn,
    expected,
    reused: timings.cache_n,
    guess,
  };
}
