// The server's rate limiter: one bucket per address that refills steadily, with its headers.
import type { Knobs } from "./knobs.ts";

export interface RateVerdict {
  readonly isLimited: boolean;
  readonly headers: Readonly<Record<string, string>>;
}

/** Counts one request or upgrade. */
export type RateLimiter = (limit: Knobs["rateLimit"]) => RateVerdict;

export function createRateLimiter(): RateLimiter {
  let used = 0;
  let atMs = Date.now();
  return (limit) => {
    if (limit === null) return { isLimited: false, headers: {} };
    const nowMs = Date.now();
    used = Math.max(0, used - ((nowMs - atMs) / 1000) * limit.perSecond);
    atMs = nowMs;
    const isLimited = used + 1 > limit.burst;
    if (!isLimited) used += 1;
    const resetS = Math.ceil(used / limit.perSecond);
    const waitS = Math.ceil((used + 1 - limit.burst) / limit.perSecond);
    return {
      isLimited,
      headers: {
        "X-RateLimit-Limit": `${limit.burst}`,
        "X-RateLimit-Remaining": `${Math.max(0, Math.floor(limit.burst - used))}`,
        "X-RateLimit-Reset": `${resetS}`,
        ...(isLimited ? { "Retry-After": `${Math.max(1, waitS)}` } : {}),
      },
    };
  };
}
