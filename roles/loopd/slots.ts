// Who may use a slot of the model server now. A slot is held for one request, not for a turn, so a
// turn that waits for a tool or for the owner never keeps the others from theirs.
//
// 1. One holder a slot; the rest wait, those who come back from a tool before those who begin.
// 2. Within each of the two, oldest first.

/** Gives the slot back; called once. */
export type Release = () => void;

export interface SlotWait {
  readonly slot: number;
  /** `back` for a turn that has already had the slot. */
  readonly as: "fresh" | "back";
  readonly signal: AbortSignal;
  /** Told the place in the queue, from 1, when it changes. */
  readonly onPlace: (place: number) => void;
}

type Waiter = SlotWait & { grant(release: Release | null): void };
type Lane = { held: boolean; queue: Waiter[] };

export type Slots = ReturnType<typeof makeSlots>;

export function makeSlots() {
  const lanes = new Map<number, Lane>();
  const laneOf = (slot: number): Lane => {
    const lane = lanes.get(slot) ?? { held: false, queue: [] };
    lanes.set(slot, lane);
    return lane;
  };
  const tellPlaces = (lane: Lane) => lane.queue.forEach((waiter, i) => waiter.onPlace(i + 1));
  const hold = (lane: Lane): Release => {
    lane.held = true;
    return () => {
      lane.held = false;
      const next = lane.queue.shift();
      if (next === undefined) return;
      next.grant(hold(lane));
      tellPlaces(lane);
    };
  };
  return {
    /** Resolves with the slot held, or null when the signal aborts first. */
    acquire(wait: SlotWait): Promise<Release | null> {
      const lane = laneOf(wait.slot);
      if (wait.signal.aborted) return Promise.resolve(null);
      if (!lane.held) return Promise.resolve(hold(lane));
      return new Promise((resolve) => {
        const leave = () => {
          lane.queue = lane.queue.filter((other) => other !== waiter);
          resolve(null);
          tellPlaces(lane);
        };
        const waiter: Waiter = {
          ...wait,
          grant(release) {
            wait.signal.removeEventListener("abort", leave);
            resolve(release);
          },
        };
        const firstFresh = lane.queue.findIndex((other) => other.as === "fresh");
        const at = wait.as === "fresh" || firstFresh < 0 ? lane.queue.length : firstFresh;
        lane.queue.splice(at, 0, waiter);
        wait.signal.addEventListener("abort", leave);
        tellPlaces(lane);
      });
    },
    /** Turns in all queues together. */
    waiting: () => [...lanes.values()].reduce((sum, lane) => sum + lane.queue.length, 0),
  };
}
