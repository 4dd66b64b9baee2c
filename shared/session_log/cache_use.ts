// What the model server reused of each request of a session, from its log alone: for loopd, which
// notices a loss, and for the owner, who sees it per request. Pure; counts are tokens.
import type { TurnId } from "../ids/ids.ts";
import type { SessionRecord } from "./records.ts";

export interface CacheUse {
  readonly turn: TurnId;
  readonly time_unix_ms: number;
  /** Found in the cache, read anew, and written by the model. */
  readonly reused: number;
  readonly read: number;
  readonly written: number;
  /** What should have been found; null when nobody can say. */
  readonly expected: number | null;
  /** Why it was otherwise, as far as loopd could guess; empty when all was as expected. */
  readonly cause: string;
}

/**
 * Tokens that the next request should find: all that was in the cache but the last sampled one. Null
 * when the last answer did not end by itself, as its text may be cut otherwise.
 */
export function expectedReuse(records: readonly SessionRecord[]): number | null {
  const last = records.findLast((record) => record.kind === "assistant");
  if (last?.kind !== "assistant" || last.timings === null || last.finish === "length") return null;
  const { cache_n, prompt_n, predicted_n } = last.timings;
  return Math.max(0, cache_n + prompt_n + predicted_n - 1);
}

/** One row for each answer that came with measurements, in order. */
export function cacheUses(records: readonly SessionRecord[]): CacheUse[] {
  const uses: CacheUse[] = [];
  let expected: number | null = null;
  for (const record of records) {
    const last = uses.at(-1);
    if (record.kind === "cache_loss" && last !== undefined) {
      uses[uses.length - 1] = { ...last, cause: record.guess };
    }
    if (record.kind !== "assistant") continue;
    if (record.timings !== null) {
      const { cache_n, prompt_n, predicted_n } = record.timings;
      const place = { turn: record.turn, time_unix_ms: record.time_unix_ms };
      const counts = { reused: cache_n, read: prompt_n, written: predicted_n };
      uses.push({ ...place, ...counts, expected, cause: "" });
    }
    expected = expectedReuse([record]);
  }
  return uses;
}
