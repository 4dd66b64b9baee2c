// The server's WebSocket side: who is connected, who may come back, and what tests do to both. A
// connection outlives its line for a while; only one without a line can be resumed.
import type { Socket } from "node:net";
import {
  cancelAll,
  type Connection,
  freshConnection,
  isFor,
  queue,
  resume,
  sayHello,
  write,
} from "./connections.ts";
import { keepAlive } from "./keep_alive.ts";
import { createLine, type Line } from "./line.ts";
import type { SocketDrop } from "./knobs.ts";
import { answerAction } from "./socket_actions.ts";
import type { OutEvent, World } from "./world.ts";

const AUTH_MS = 5000;
const REAP_EVERY_MS = 300_000;
const REAP_AFTER_MS = 300_000;

export interface HubParts {
  readonly world: World;
  /** The user of a live token, or null. */
  readonly userOf: (token: string) => string | null;
  readonly onSocket: (what: string, userId: string, detail: string) => void;
}

export interface Hub {
  accept(socket: Socket, head: Uint8Array, query: URLSearchParams, token: string | null): void;
  emit(event: OutEvent): void;
  /** Ends or spoils every line of this user's (of all, when absent); the count of those. */
  drop(how: SocketDrop, userId?: string): number;
  /** Loses one event number on each connection. */
  skipSeq(): void;
  /** Sends one envelope as it is to everybody. */
  sendRaw(text: string): void;
  /** Cuts every line and forgets every connection. */
  forgetAll(): void;
  /** Forgets every connection that has no line, as the reaper would later. */
  reap(): void;
  /** Ends every line as an overflowing send queue does. */
  overflow(): void;
  lines(): number;
  /** API activity of this user keeps its connections from the reaper. */
  active(userId: string): void;
  stop(): void;
}

interface HubState extends HubParts {
  readonly known: Set<Connection>;
  readonly open: Set<Line>;
}

export function createHub(parts: HubParts): Hub {
  const state: HubState = { ...parts, known: new Set(), open: new Set() };
  const { world, known, open } = state;
  const live = () => [...known].filter((one) => one.line !== null);
  const reaper = setInterval(
    () => reapOlder(known, Date.now() - world.scaled(REAP_AFTER_MS)),
    Math.max(1, world.scaled(REAP_EVERY_MS)),
  );
  return {
    accept: (socket, head, query, token) => accept(state, { socket, head, query, token }),
    emit: (event) => {
      for (const connection of known) {
        if (!isFor(world, connection, event)) continue;
        give(state, connection, event);
        if (world.knobs().eventsTwice) give(state, connection, event);
      }
    },
    drop: (how, userId) => {
      const chosen = live().filter((one) => userId === undefined || one.userId === userId);
      chosen.forEach((one) => spoil(one, how));
      return chosen.length;
    },
    skipSeq: () => live().forEach((one) => one.seq++),
    sendRaw: (text) => live().forEach((one) => one.line?.sendText(text)),
    forgetAll: () => {
      live().forEach((one) => one.line?.fin());
      known.clear();
    },
    reap: () => reapOlder(known, Infinity),
    overflow: () => {
      for (const one of live()) {
        known.delete(one);
        one.line?.close(null);
      }
    },
    lines: () => live().length,
    active: (userId) => {
      for (const one of known) if (one.userId === userId) one.lastActivityMs = Date.now();
    },
    stop: () => {
      clearInterval(reaper);
      for (const line of open) line.rst();
      known.forEach(cancelAll);
      known.clear();
    },
  };
}

function reapOlder(known: Set<Connection>, thanMs: number): void {
  for (const one of known) if (one.line === null && one.lastActivityMs < thanMs) known.delete(one);
}

function give(state: HubState, connection: Connection, event: OutEvent): void {
  if (connection.isDeaf || state.userOf(connection.token) === null) return;
  if (connection.line !== null) return write(state.world, connection, event);
  if (!queue(connection, event)) state.known.delete(connection);
}

function spoil(connection: Connection, how: SocketDrop): void {
  const { line } = connection;
  if (line === null) return;
  switch (how) {
    case "fin":
      return line.fin();
    case "rst":
      return line.rst();
    case "empty-close":
      return line.close(null);
    case "oversize-close":
      return line.close(1009);
    case "half-open":
      return line.freeze();
    case "deaf":
      connection.isDeaf = true;
  }
}

function lost(state: HubState, connection: Connection): void {
  cancelAll(connection);
  connection.line = null;
  state.onSocket("lost", connection.userId, connection.id);
}

/** The remembered connection that this upgrade may go on with, and from which number. */
function resumable(state: HubState, query: URLSearchParams, userId: string) {
  const id = query.get("connection_id") ?? "";
  const seq = Number(query.get("sequence_number") ?? "");
  const found = [...state.known].find((one) =>
    one.id === id && one.userId === userId && one.line === null
  );
  if (found === undefined) return null;
  const oldest = found.written[0]?.seq ?? found.seq;
  return seq === 0 || (seq >= oldest && seq <= found.seq) ? { found, seq } : null;
}

interface Upgrade {
  readonly socket: Socket;
  readonly head: Uint8Array;
  readonly query: URLSearchParams;
  readonly token: string | null;
}

function accept(state: HubState, { socket, head, query, token }: Upgrade): void {
  const { world } = state;
  const userId = token === null ? null : state.userOf(token);
  const asked = query.get("connection_id") ?? "";
  const isBadResume = asked !== "" &&
    (!/^[a-z0-9]{26}$/.test(asked) || !/^-?\d+$/.test(query.get("sequence_number") ?? ""));
  const resumed = userId === null || isBadResume ? null : resumable(state, query, userId);
  const connection = resumed?.found ?? freshConnection();
  const identify = (given: string, found: string) => {
    connection.token = given;
    connection.userId = found;
    state.known.add(connection);
    state.onSocket("authenticated", found, connection.id);
  };
  let pong = () => {};
  const line = createLine(socket, head, {
    onText: (text) =>
      answerAction(text, {
        world,
        connection,
        userOf: state.userOf,
        authenticate: (given, found) => {
          clearTimeout(authTimer);
          identify(given, found);
          sayHello(world, connection);
        },
        record: (detail) => state.onSocket("message", connection.userId, detail),
      }),
    onBinary: () => connection.line?.fin(),
    onPong: () => pong(),
    onPing: (payload) => {
      if (!world.knobs().pongWithheld) connection.line?.sendPong(payload);
    },
    onGone: () => {
      clearTimeout(authTimer);
      state.open.delete(line);
      if (connection.line === line) lost(state, connection);
    },
  });
  const authTimer = setTimeout(() => {
    if (connection.userId === "") line.fin();
  }, world.scaled(AUTH_MS));
  state.open.add(line);
  connection.line = line;
  pong = keepAlive(world, connection, () => {
    state.onSocket("read-deadline", connection.userId, connection.id);
    line.fin();
    if (connection.line === line) lost(state, connection);
  });
  state.onSocket("upgraded", userId ?? "", query.toString());
  if (isBadResume || world.knobs().closesAfterUpgrade) return line.fin();
  if (userId === null || token === null) return;
  clearTimeout(authTimer);
  if (resumed !== null) {
    state.onSocket("resumed", userId, connection.id);
    connection.isDeaf = false;
    return resume(world, connection, resumed.seq);
  }
  identify(token, userId);
  sayHello(world, connection);
}
