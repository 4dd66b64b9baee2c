// What the server should have reused of a request, against what it did. A loss is recorded, never an
// error: the server is shared and may unload the model. More than this session ever sent is another
// conversation's text in the slot.
import type { TurnId } from "../../shared/ids/ids.ts";
import { expectedReuse } from "../../shared/session_log/cache_use.ts";
import type { SessionRecord, Timings } from "../../shared/session_log/records.ts";

/** Tokens of the end that a server may read anew without anything being wrong. */
const SLACK = 8;

type CacheLoss = Extract<SessionRecord, { kind: "cache_loss" }>;

export interface CacheFacts {
  readonly nowUnixMs: number;
  /** Whether another session used the slot since the last answer. */
  readonly hasOtherUser: boolean;
  /** Whether the server saw nothing of this session since its last answer but this one request. */
  readonly isFirstSight: boolean;
}

export type CacheTally = ReturnType<typeof makeCacheTally>;

/** What the owner's status says of the requests since the process began. */
export function makeCacheTally() {
  let measured = 0;
  let losses = 0;
  let last: Omit<CacheLoss, "kind" | "turn"> | null = null;
  return {
    take(loss: CacheLoss | null): void {
      measured++;
      if (loss === null) return;
      const { kind: _kind, turn: _turn, ...rest } = loss;
      losses++;
      last = rest;
    },
    report: () => ({ measured, losses, last }),
  };
}

/** Whether more was reused than the session had ever sent. */
export function isForeign(loss: CacheLoss): boolean {
  return loss.reused > loss.expected;
}

/** The record of a difference, or null when there was none. `records` do not hold the new answer yet. */
export function cacheLoss(
  turn: TurnId,
  timings: Timings | null,
  records: readonly SessionRecord[],
  facts: CacheFacts,
): CacheLoss | null {
  const expected = expectedReuse(records);
  if (timings === null || expected === null) return null;
  const reused = timings.cache_n;
  const isMore = reused > expected + SLACK && facts.isFirstSight && !facts.hasOtherUser;
  if (reused >= expected - SLACK && !isMore) return null;
  const lastAnswer = records.findLast((record) => record.kind === "assistant");
  const guess = isMore
    ? "a foreign cache entry: more was reused than this session ever sent"
    : facts.hasOtherUser
    ? "another session used the slot"
    : lastAnswer?.tool_calls.some((call) => call.artifact !== null)
    ? "arguments that were no JSON are replayed as {}"
    : reused === 0
    ? "the model was unloaded, or another client used the slot"
    : "the template renders earlier messages otherwise, or another client used the slot";
  return { kind: "cache_loss", time_unix_ms: facts.nowUnixMs, turn, expected, reused, guess };
}
