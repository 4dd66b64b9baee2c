// What is wrong with the channel now, and since when. Health is the time of the last good answer to a
// ping, never a flag that somebody forgot to clear.
import type { Clock } from "../../shared/clock/clock.ts";
import type { ErrorCode } from "../../shared/results/codes.ts";
import type { Log } from "../../shared/log/log.ts";

type Problem = { readonly code: ErrorCode; readonly detail: string };

const SKEW_MS = 60_000;
/** A connection is good for three pings. */
const GOOD_PINGS = 3;
/** Posts named in the log, at most. */
const MAX_NAMED = 1_000;

export type Health = ReturnType<typeof makeHealth>;

export function makeHealth(clock: Clock, log: Log, pingMs: number) {
  const problems = new Map<ErrorCode, Problem>();
  let lastPingMs: number | null = null;
  let isUp = false;
  let skewMs = 0;
  let downSince: { readonly unixMs: number; readonly ms: number } | null = null;
  let ignored = 0;
  const passedOver = new Set<string>();
  const health = {
    set(code: ErrorCode, detail: string): void {
      if (problems.get(code)?.detail !== detail) log.warn(`${code}: ${detail}`);
      problems.set(code, { code, detail: detail.slice(0, 1_000) });
    },
    clear(...codes: ErrorCode[]): void {
      for (const code of codes) if (problems.delete(code)) log.info(`${code}: over`);
    },
    /** A ping was answered well; `serverUnixMs` is what the server takes for now. */
    pinged(serverUnixMs: number | null): void {
      lastPingMs = clock.monotonicMs();
      if (serverUnixMs === null) return;
      skewMs = serverUnixMs - clock.nowUnixMs();
      if (Math.abs(skewMs) < SKEW_MS) return health.clear("channel-clock-skew");
      const seconds = Math.abs(Math.round(skewMs / 1_000));
      const side = skewMs > 0 ? "ahead of" : "behind";
      const detail = `The server's clock is ${seconds} s ${side} this machine's`;
      health.set("channel-clock-skew", detail);
    },
    /** The connection carries events. Returns how long it did not, and since when; null the first time. */
    up(): { readonly sinceUnixMs: number; readonly lastedMs: number } | null {
      isUp = true;
      health.clear("channel-unreachable", "channel-deaf");
      const before = downSince;
      downSince = null;
      if (before === null) return null;
      return { sinceUnixMs: before.unixMs, lastedMs: clock.monotonicMs() - before.ms };
    },
    down(): void {
      isUp = false;
      downSince ??= { unixMs: clock.nowUnixMs(), ms: clock.monotonicMs() };
    },
    ignore: () => void ignored++,
    ignored: () => ignored,
    /** A post that cannot be read costs itself alone; it is named once. */
    passOver(post: string): void {
      if (passedOver.has(post) || passedOver.size >= MAX_NAMED) return;
      passedOver.add(post);
      log.warn(`A post that cannot be read is passed over: ${post}`);
    },
    serverUnixMs: () => clock.nowUnixMs() + skewMs,
    /** Whether a time of the server's lies in its own future: it was wrong, or set back since. */
    isAhead: (at: number) => lastPingMs !== null && at > health.serverUnixMs() + SKEW_MS,
    isRefused: () => problems.has("channel-token-refused"),
    state(): "connecting" | "connected" | "lost" {
      if (lastPingMs === null) return "connecting";
      const isFresh = clock.monotonicMs() - lastPingMs < GOOD_PINGS * pingMs;
      return isUp && isFresh && !problems.has("channel-token-refused") ? "connected" : "lost";
    },
    problems: () => [...problems.values()],
  };
  return health;
}
