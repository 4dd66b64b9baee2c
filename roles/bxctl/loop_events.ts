// What loopd tells while a conversation goes on, as one queue that survives loopd's restart: the
// watch is dialled again and asks for every durable item after the last one seen.
import type { Result } from "../../shared/results/result.ts";
import type { Said } from "../../shared/wire/exchange.ts";
import { LOOP_WATCH } from "../../shared/wire/loop.ts";
import { ask, type Context } from "./context.ts";

export type LoopEvent = Said<typeof LOOP_WATCH["events"][number]>;

export interface LoopEvents {
  /** The next event; a failure once loopd has been away for too long. */
  next(): Promise<Result<LoopEvent>>;
  close(): void;
}

const RETRY_MS = 300;
/** How long loopd may be away before the conversation is given up. */
const PATIENCE_MS = 120_000;

/** Starts watching; `onAway` is told once each time loopd goes away. */
export function watchLoop(context: Context, onAway: () => void): LoopEvents {
  const stop = new AbortController();
  const queue: Result<LoopEvent>[] = [];
  let wake = () => {};
  const push = (item: Result<LoopEvent>) => {
    queue.push(item);
    wake();
  };
  follow(context, stop.signal, push, onAway);
  return {
    async next() {
      for (;;) {
        const item = queue.shift();
        if (item !== undefined) return item;
        await new Promise<void>((resolve) => wake = resolve);
      }
    },
    close: () => stop.abort(),
  };
}

async function follow(
  context: Context,
  signal: AbortSignal,
  push: (item: Result<LoopEvent>) => void,
  onAway: () => void,
): Promise<void> {
  let after = -1;
  let awaySince: number | null = null;
  while (!signal.aborted) {
    const ended = await ask(context, "owner-loop/admin", LOOP_WATCH, { after }, {
      signal,
      onEvent: (event) => {
        awaySince = null;
        if (event.kind === "outbox_item") after = Math.max(after, event.body.n);
        push({ ok: true, value: event });
      },
    });
    if (signal.aborted) return;
    const now = context.clock.monotonicMs();
    if (awaySince === null) {
      awaySince = now;
      onAway();
    }
    if (!ended.ok && now - awaySince > PATIENCE_MS) return push(ended);
    await context.clock.sleep(RETRY_MS, signal);
  }
}
