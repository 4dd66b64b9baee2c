// Every interval of the channel, in milliseconds. A test's configuration can shorten them all by one
// factor, and only for a server on this machine; what the server itself decides by is untouched.

import type { Random } from "../../shared/clock/random.ts";

export type Timers = ReturnType<typeof timersOf>;

export function timersOf(dividedBy: number, random: Random) {
  const of = (ms: number) => Math.max(1, Math.round(ms / dividedBy));
  return {
    // A machine that is busy with tests still has a moment for these.
    requestMs: Math.max(of(20_000), 1_000),
    helloMs: Math.max(of(10_000), 400),
    pingMs: of(30_000),
    /** A connection that lasted this long makes the next reconnection quick again. */
    stableMs: of(60_000),
    firstPauseMs: of(1_000),
    probeMs: of(60_000),
    catchUpMs: of(180_000),
    editMs: of(1_000),
    typingMs: of(5_000),
    /** While the server certainly remembers a pending post id. */
    sameKeyMs: of(25_000),
    /** How far behind its cursor a catch-up reads. */
    marginMs: Math.max(of(60_000), 2_000),
    /** The token bucket: one request each, and so many at once. */
    perRequestMs: of(125),
    burst: 20,
    /** An outage that the owner is told of afterwards. */
    outageMs: of(60_000),
    retryPeerMs: of(1_000),
    /** The n-th pause of a series, from 0: doubled each time, capped, with half of it left to chance. */
    pauseMs(n: number): number {
      const whole = Math.min(of(1_000) * 2 ** Math.min(n, 20), of(120_000));
      return Math.round(whole * (0.5 + (random.bytes(1)[0] ?? 0) / 510));
    },
  };
}
