// The one connection that events come by, supervised: it is asked every half minute whether it still
// listens, and whatever ends it, it is opened again for ever, ever more slowly, never twice at once.
//
// 1. The token goes into the header of the upgrade; only so can a connection be resumed.
// 2. A connection counts when it said hello, or answered the first ping without one: then it is the
//    old one, and what the server had kept has been replayed. What a deaf server never kept is not
//    among that, so whoever listens reads back after every opening.
// 3. A reply that is not OK is a deaf server. How a connection ended means nothing.
import type { Clock } from "../../shared/clock/clock.ts";
import type { Random } from "../../shared/clock/random.ts";
import type { Secret } from "../../shared/secrets/secret_store.ts";
import { canonicalText, parseJson } from "../../shared/wire/codec.ts";
import type { Health } from "./health.ts";
import { SocketMessage } from "./mattermost.ts";
import { pauseMs, type Timers } from "./timers.ts";

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

export interface ConnectionOptions {
  readonly base: string;
  readonly token: Secret;
  readonly clock: Clock;
  readonly random: Random;
  readonly timers: Timers;
  readonly health: Health;
  readonly signal: AbortSignal;
  readonly open: OpenWire;
  /** A connection is open; what it brings before `onUp` may come after something that is missing. */
  readonly onOpen: () => void;
  /** Events carry on from where they ended (`resumed`), or some may be missing (`new`, `gap`). */
  readonly onUp: (how: "resumed" | "new" | "gap") => void;
  readonly onEvent: (event: string, data: Readonly<Record<string, unknown>>) => void;
  /** The server's version as hello tells it. */
  readonly onVersion: (version: string) => void;
  /** Asks the server whether the bot is still itself; resolves when it is worth connecting again. */
  readonly check: () => Promise<void>;
}

type State = { id: string; seq: number; action: number };
type Message = ReturnType<typeof readMessage>;

/** Keeps the connection until the signal aborts. */
export async function keepConnected(options: ConnectionOptions): Promise<void> {
  const { clock, timers, health, signal, random } = options;
  const state: State = { id: "", seq: 0, action: 1 };
  let failures = 0;
  while (!signal.aborted) {
    const began = clock.monotonicMs();
    const wasUp = await oneConnection(options, state);
    health.down();
    if (signal.aborted) return;
    const lastedMs = clock.monotonicMs() - began;
    failures = wasUp && lastedMs >= timers.stableMs ? 0 : failures + 1;
    await options.check();
    const chance = (random.bytes(1)[0] ?? 0) / 255;
    await clock.sleep(pauseMs(timers, failures, chance), signal);
  }
}

/** One connection from its opening to its end; whether it ever carried events. */
async function oneConnection(options: ConnectionOptions, state: State): Promise<boolean> {
  const { clock, timers, health, signal } = options;
  const ended = new AbortController();
  let isUp = false;
  let waitsFor: number | null = null;
  const end = () => ended.abort();
  const ping = () => {
    waitsFor = state.action++;
    wire.send(canonicalText({ seq: waitsFor, action: "ping" }));
  };
  const up = (how: "resumed" | "new") => {
    isUp = true;
    options.onUp(how);
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
      const time = message.data?.server_time;
      health.pinged(typeof time === "number" ? time : null);
      // An answer before any hello: the connection that was there before goes on.
      if (!isUp && state.id !== "") up("resumed");
      return;
    }
    if (message.event === "hello") {
      const { connection_id: id, server_version: version } = message.data ?? {};
      const isOld = typeof id === "string" && id !== "" && id === state.id;
      state.id = typeof id === "string" ? id : "";
      if (!isOld) state.seq = 0;
      if (typeof version === "string") options.onVersion(version);
      return up(isOld ? "resumed" : "new");
    }
    if (message.event === undefined) return;
    // Events of a resumed connection are replayed before the ping's answer tells that it is resumed.
    if (!takeSeq(state, message.seq)) options.onUp("gap");
    options.onEvent(message.event, message.data ?? {});
  };
  const wire = options.open(addressOf(options.base, state), authorization(options.token), {
    open: () => {
      options.onOpen();
      ping();
    },
    message: (text) => {
      if (!ended.signal.aborted) onMessage(readMessage(text));
    },
    end,
  });
  signal.addEventListener("abort", end);
  clock.sleep(timers.helloMs, ended.signal).then(() => {
    if (isUp || ended.signal.aborted) return;
    // Perhaps the id is one that the server answers with silence.
    state.id = "";
    end();
  });
  while (!ended.signal.aborted) {
    await clock.sleep(timers.pingMs, ended.signal);
    if (ended.signal.aborted) break;
    if (waitsFor !== null) break;
    ping();
  }
  ended.abort();
  signal.removeEventListener("abort", end);
  wire.close();
  return isUp;
}

/** Notes an event's number; false when it is not the next, as then some may be missing. */
function takeSeq(state: State, seq: number | undefined): boolean {
  if (seq === undefined) return true;
  const isNext = seq === state.seq + 1;
  state.seq = seq;
  return isNext;
}

function addressOf(base: string, state: State): string {
  const address = `${base.replace(/^http/, "ws")}/api/v4/websocket`;
  const { id, seq } = state;
  return id === ""
    ? address
    : `${address}?connection_id=${encodeURIComponent(id)}&sequence_number=${seq + 1}`;
}

function authorization(token: Secret): Record<string, string> {
  return { Authorization: `Bearer ${token.reveal()}` };
}

/** A message of the server, or null for something that is none. */
function readMessage(text: string) {
  const value = parseJson(text);
  const parsed = SocketMessage.safeParse(value.ok ? value.value : null);
  return parsed.success ? parsed.data : null;
}
