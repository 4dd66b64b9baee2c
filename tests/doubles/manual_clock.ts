// A clock that stands still until it is told to go on. Sleepers wake in the order of their time.
import type { Clock } from "../../shared/clock/clock.ts";

export interface ManualClock extends Clock {
  /** Moves both clocks on and lets everything that slept until then run. */
  advance(ms: number): Promise<void>;
  /** Sets the wall clock alone, in either direction. */
  setWall(unixMs: number): void;
  sleepers(): number;
}

type Sleeper = { readonly at: number; readonly wake: () => void };

export function manualClock(startUnixMs: number): ManualClock {
  let monotonic = 0;
  let wall = startUnixMs;
  const sleeping = new Set<Sleeper>();
  const next = (until: number) =>
    [...sleeping].filter((one) => one.at <= until).toSorted((a, b) => a.at - b.at)[0];
  return {
    nowUnixMs: () => wall,
    monotonicMs: () => monotonic,
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        if (signal?.aborted) return resolve();
        const wake = () => {
          sleeping.delete(sleeper);
          signal?.removeEventListener("abort", wake);
          resolve();
        };
        const sleeper = { at: monotonic + ms, wake };
        sleeping.add(sleeper);
        signal?.addEventListener("abort", wake);
      }),
    async advance(ms) {
      const until = monotonic + ms;
      for (;;) {
        const one = next(until);
        const step = (one?.at ?? until) - monotonic;
        monotonic += step;
        wall += step;
        if (one === undefined) break;
        one.wake();
        await settled();
      }
      await settled();
    },
    setWall: (unixMs) => void (wall = unixMs),
    sleepers: () => sleeping.size,
  };
}

/** Lets promises that are ready run, without any timer of their own. */
export async function settled(): Promise<void> {
  for (let i = 0; i < 30; i++) await Promise.resolve();
}
