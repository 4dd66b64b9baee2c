// The server behind the wire: its rows, its clock, its knobs, and the events that leave it. Every
// change goes through here, whoever asks for it: a request, a test, a webhook.
import type { Knobs } from "./knobs.ts";
import type { Store } from "./store.ts";

export interface OutEvent {
  readonly event: string;
  readonly data: Readonly<Record<string, unknown>>;
  /** Reaches all members of this channel; else only `userId`. */
  readonly channelId?: string;
  readonly userId?: string;
  /** Fields that only this recipient gets. */
  readonly own?: (userId: string) => Readonly<Record<string, unknown>>;
}

export interface World {
  readonly store: Store;
  knobs(): Knobs;
  /** The server's next millisecond: later than all before, unless the clock knob says otherwise. */
  tick(): number;
  /** The server's present time, which nothing is stamped with. */
  now(): number;
  emit(event: OutEvent): void;
  /** A server-side duration in this double's own time. */
  scaled(ms: number): number;
}

export function createClock(store: Store, knobs: () => Knobs): Pick<World, "tick" | "now"> {
  const now = () => Date.now() + knobs().aheadMs;
  return {
    now,
    tick: () => {
      const last = store.facts.get("clock") ?? 0;
      const mode = knobs().clock;
      const next = mode === "strict"
        ? Math.max(last + 1, now())
        : mode === "wall"
        ? now()
        : mode === "same"
        ? (last === 0 ? now() : last)
        : (last === 0 ? now() : last - 1);
      store.facts.set("clock", next);
      return next;
    },
  };
}
