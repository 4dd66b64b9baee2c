// What is happening now, told to everybody who watches: states and pieces of text, which are lost
// with the connection, and outbox items, which are not.
//
// A watcher that does not keep up is ended, so that it can come back for what is durable; it never
// holds a turn up and never grows memory.
import type { SessionId, TurnId } from "../../shared/ids/ids.ts";
import type { Said } from "../../shared/wire/exchange.ts";
import type { OutboxItem, TurnDelta, TurnState } from "../../shared/wire/loop.ts";
import { encodeUtf8 } from "../../shared/wire/codec.ts";
import type { OutboxEntry } from "./outbox.ts";

export type HubEvent = Said<typeof TurnState> | Said<typeof TurnDelta> | Said<typeof OutboxItem>;
type StateBody = Said<typeof TurnState>["body"];

const MAX_QUEUED = 2_000;
const MAX_DELTA_UNITS = 4_000;
/** Whole characters, so at most twice as many units. */
const PIECES = /.{1,4000}/gsu;

/** An outbox entry as it is told of; its text is fetched by number. */
export function outboxItem(entry: OutboxEntry): Said<typeof OutboxItem> {
  const { n, session, turn, message_id, is, code, label, created_unix_ms, text } = entry;
  const bytes = encodeUtf8(text).length;
  const body = { n, session, turn, message_id, kind: is, code, label, created_unix_ms, bytes };
  return { kind: "outbox_item", body };
}

type Watcher = { readonly queue: HubEvent[]; wake(): void };

export type Hub = ReturnType<typeof makeHub>;

export function makeHub() {
  const watchers = new Set<Watcher>();
  const tell = (event: HubEvent) => {
    for (const watcher of watchers) {
      if (!joined(watcher.queue, event)) watcher.queue.push(event);
      watcher.wake();
    }
  };
  return {
    state(
      session: SessionId,
      turn: TurnId,
      state: StateBody["state"],
      more: Partial<Omit<StateBody, "session" | "turn" | "state">> = {},
    ): void {
      const none = { place: null, percent: null, tool: null, call: null, approval: null };
      tell({ kind: "turn_state", body: { session, turn, state, ...none, ...more } });
    },
    delta(session: SessionId, turn: TurnId, channel: "thinking" | "answer", text: string): void {
      for (const [piece] of text.matchAll(PIECES)) {
        tell({ kind: "turn_delta", body: { session, turn, channel, text: piece } });
      }
    },
    item: (entry: OutboxEntry) => tell(outboxItem(entry)),
    /** Events from now on; ends when the signal aborts or the watcher falls behind. */
    watch: (signal: AbortSignal) => watchEvents(watchers, signal),
  };
}

/** Adds a piece to the last event when that is a piece of the same text. */
function joined(queue: HubEvent[], event: HubEvent): boolean {
  const last = queue.at(-1);
  if (last?.kind !== "turn_delta" || event.kind !== "turn_delta") return false;
  const { turn, channel, text } = last.body;
  if (turn !== event.body.turn || channel !== event.body.channel) return false;
  if (text.length + event.body.text.length > MAX_DELTA_UNITS) return false;
  const body = { ...last.body, text: text + event.body.text };
  queue[queue.length - 1] = { kind: "turn_delta", body };
  return true;
}

async function* watchEvents(
  watchers: Set<Watcher>,
  signal: AbortSignal,
): AsyncGenerator<HubEvent, "gone" | "too slow"> {
  const watcher: Watcher = { queue: [], wake: () => {} };
  const onAbort = () => watcher.wake();
  watchers.add(watcher);
  signal.addEventListener("abort", onAbort);
  try {
    while (!signal.aborted) {
      if (watcher.queue.length > MAX_QUEUED) return "too slow";
      const next = watcher.queue.shift();
      if (next !== undefined) {
        yield next;
        continue;
      }
      await new Promise<void>((resolve) => {
        watcher.wake = resolve;
      });
    }
    return "gone";
  } finally {
    signal.removeEventListener("abort", onAbort);
    watchers.delete(watcher);
  }
}
