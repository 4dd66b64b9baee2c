// The one connection that events come by, supervised: it is asked every half minute whether it still
// listens, and whatever ends it, it is opened again for ever, ever more slowly, never twice at once.
//
// 1. The token goes into the header of the upgrade and nowhere else.
// 2. A connection counts when it said hello. None is ever resumed: what a deaf server never kept, a
//    resumed one would not bring, and no number would tell.
// 3. A reply that is not OK is a deaf server. How a connection ended means nothing.
import { canonicalText } from "../../shared/wire/codec.ts";
import { parseSaid, SocketMessage, Time } from "./mattermost.ts";
import type { Parts } from "./parts.ts";

export interface Wire {
  send(text: string): void;
  close(): void;
}

/** Opens a WebSocket; `on.end` is called once, whatever happens, and nothing after it. */
export type OpenWire = (url: string, headers: Record<string, string>, on: {
  open(): void;
  message(text: string): void;
  end(): void;
}) => Wire;

type ConnectionOptions =
  & Pick<Parts, "base" | "token" | "clock" | "timers" | "health" | "signal">
  & {
    readonly open: OpenWire;
    /** Some events may be missing before those that follow. */
    readonly onUp: (how: "new" | "gap") => void;
    readonly onEvent: (event: string, data: Readonly<Record<string, unknown>>) => void;
    /** The server's version as hello tells it. */
    readonly onVersion: (version: string) => void;
    /** Asks the server whether the bot is still itself; resolves when it is worth connecting again. */
    readonly check: () => Promise<void>;
  };

type Message = ReturnType<typeof readMessage>;

/** Keeps the connection until the signal aborts. */
export async function keepConnected(options: ConnectionOptions): Promise<void> {
  const { clock, timers, health, signal } = options;
  // Numbers of actions never come twice.
  const actions = { next: 1 };
  let failures = 0;
  while (!signal.aborted) {
    const began = clock.monotonicMs();
    const wasUp = await oneConnection(options, actions);
    health.down();
    if (signal.aborted) return;
    const lastedMs = clock.monotonicMs() - began;
    failures = wasUp && lastedMs >= timers.stableMs ? 0 : failures + 1;
    await options.check();
    await clock.sleep(timers.pauseMs(failures), signal);
  }
}

/** One connection from its opening to its end; whether it ever carried events. */
async function oneConnection(
  options: ConnectionOptions,
  actions: { next: number },
): Promise<boolean> {
  const { clock, timers, health, signal } = options;
  const ended = new AbortController();
  let isUp = false;
  let seq = 0;
  let waitsFor: number | null = null;
  const end = () => ended.abort();
  const ping = () => {
    waitsFor = actions.next++;
    wire.send(canonicalText({ seq: waitsFor, action: "ping" }));
  };
  const onMessage = (message: Message): void => {
    if (message === null) return end();
    if (message.seq_reply !== undefined) {
      if (message.seq_reply !== waitsFor) return;
      if (message.status !== "OK") {
        health.set("channel-deaf", "The server no longer takes this connection for the bot's");
        return end();
      }
      waitsFor = null;
      health.pinged(Time.safeParse(message.data?.server_time).data ?? null);
      return;
    }
    const number = message.seq ?? seq;
    const isGap = number !== seq;
    seq = number + 1;
    if (message.event === "hello") {
      const version = message.data?.server_version;
      if (typeof version === "string") options.onVersion(version);
      isUp = true;
      return options.onUp("new");
    }
    // Before hello nothing counts: what comes is read back after it.
    if (message.event === undefined || !isUp) return;
    if (isGap) options.onUp("gap");
    options.onEvent(message.event, message.data ?? {});
  };
  const address = `${options.base.replace(/^http/, "ws")}/api/v4/websocket`;
  const wire = options.open(address, { Authorization: `Bearer ${options.token.reveal()}` }, {
    open: ping,
    message: (text) => {
      if (!ended.signal.aborted) onMessage(readMessage(text));
    },
    end,
  });
  signal.addEventListener("abort", end);
  clock.sleep(timers.helloMs, ended.signal).then(() => {
    if (!isUp) end();
  });
  for (;;) {
    await clock.sleep(timers.pingMs, ended.signal);
    if (ended.signal.aborted || waitsFor !== null) break;
    ping();
  }
  end();
  signal.removeEventListener("abort", end);
  wire.close();
  return isUp;
}

/** A message of the server, or null for something that is none. */
function readMessage(text: string) {
  const parsed = SocketMessage.safeParse(parseSaid(text));
  return parsed.success ? parsed.data : null;
}
