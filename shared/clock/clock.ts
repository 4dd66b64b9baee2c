// Time as a port: logic takes a Clock, so tests can stop it, jump it and step it back.

export interface Clock {
  /** Wall time in milliseconds since 1970; may jump in either direction. */
  nowUnixMs(): number;
  /** Milliseconds of a clock that never steps back; only differences mean anything. */
  monotonicMs(): number;
  /** Resolves after `ms`, or at once when `signal` aborts; never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

export const systemClock: Clock = {
  nowUnixMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const done = () => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", done);
        resolve();
      };
      const timer = setTimeout(done, ms);
      signal?.addEventListener("abort", done);
    }),
};

/** Resolves when the signal has aborted. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

/** What `work` comes to, or `late` after `ms`; the work goes on all the same. */
export async function inTime<T>(clock: Clock, work: Promise<T>, ms: number, late: T): Promise<T> {
  const done = new AbortController();
  const result = await Promise.race([work, clock.sleep(ms, done.signal).then(() => late)]);
  done.abort();
  return result;
}

/** `2026-11-30T07:40:33.120Z` for a wall time in milliseconds. */
export function isoTime(unixMs: number): string {
  return new Date(unixMs).toISOString();
}
