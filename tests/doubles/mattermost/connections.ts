// One connection as the server remembers it, with or without a line: its numbering, its two queues,
// and the envelopes it is sent. Filtered events get no number.
import type { Line } from "./line.ts";
import { newId } from "./model.ts";
import type { OutEvent, World } from "./world.ts";

const DEAD_QUEUE = 128;
const SEND_QUEUE = 256;
const DROPPABLE_FROM = 128;
const DROPPABLE = ["typing", "status_change", "multiple_channels_viewed"];

export type Timer = ReturnType<typeof setTimeout>;

export interface Connection {
  readonly id: string;
  /** "" until it has signed in. */
  userId: string;
  token: string;
  line: Line | null;
  /** The number of the next event. */
  seq: number;
  readonly written: { readonly seq: number; readonly text: string }[];
  readonly waiting: OutEvent[];
  lastActivityMs: number;
  isDeaf: boolean;
  hasPresence: boolean;
  readonly timers: Set<Timer>;
}

export function freshConnection(): Connection {
  return {
    id: newId(),
    userId: "",
    token: "",
    line: null,
    seq: 0,
    written: [],
    waiting: [],
    lastActivityMs: Date.now(),
    isDeaf: false,
    hasPresence: false,
    timers: new Set(),
  };
}

export function later(connection: Connection, ms: number, work: () => void): Timer {
  const id = setTimeout(() => {
    connection.timers.delete(id);
    work();
  }, ms);
  connection.timers.add(id);
  return id;
}

export function cancel(connection: Connection, timer: Timer): void {
  clearTimeout(timer);
  connection.timers.delete(timer);
}

export function cancelAll(connection: Connection): void {
  connection.timers.forEach((id) => clearTimeout(id));
  connection.timers.clear();
}

function envelope(world: World, connection: Connection, event: OutEvent): string {
  return JSON.stringify({
    event: event.event,
    data: { ...event.data, ...event.own?.(connection.userId) },
    broadcast: {
      omit_users: null,
      user_id: event.channelId === undefined ? event.userId ?? "" : "",
      channel_id: event.channelId ?? "",
      team_id: "",
      connection_id: event.event === "hello" ? connection.id : "",
      omit_connection_id: "",
    },
    seq: connection.seq,
    ...(world.knobs().unknownFields ? { a_new_envelope_field: [null] } : {}),
  });
}

/** Numbers the event, keeps it for a resume, and sends it. */
export function write(world: World, connection: Connection, event: OutEvent): void {
  const text = envelope(world, connection, event);
  connection.written.push({ seq: connection.seq, text });
  if (connection.written.length > DEAD_QUEUE) connection.written.shift();
  connection.seq++;
  connection.line?.sendText(text);
}

/** Keeps the event for a connection without a line; false when that was one too many. */
export function queue(connection: Connection, event: OutEvent): boolean {
  const { waiting } = connection;
  if (waiting.length >= DROPPABLE_FROM && DROPPABLE.includes(event.event)) return true;
  waiting.push(event);
  return waiting.length <= SEND_QUEUE;
}

export function isFor(world: World, connection: Connection, event: OutEvent): boolean {
  if (connection.userId === "") return false;
  if (connection.hasPresence && event.event.startsWith("reaction_")) return false;
  if (event.channelId === undefined) {
    return event.userId === undefined || event.userId === connection.userId;
  }
  const channel = world.store.channels.get(event.channelId);
  return channel?.members.includes(connection.userId) === true;
}

export function sayHello(world: World, connection: Connection): void {
  const { helloWithheld, helloDelayMs, version } = world.knobs();
  if (helloWithheld) return;
  const say = () =>
    write(world, connection, {
      event: "hello",
      userId: connection.userId,
      data: {
        connection_id: connection.id,
        server_version: `${version}.1786900000.7c2f9e.false`,
        server_hostname: "double",
      },
    });
  if (helloDelayMs === 0) say();
  else later(connection, helloDelayMs, say);
}

/** Goes on with a connection: what was written from `seq` on, then what waited; 0 renumbers it all. */
export function resume(world: World, connection: Connection, seq: number): void {
  connection.lastActivityMs = Date.now();
  if (seq === 0) connection.seq = 0;
  else {
    for (const one of connection.written) if (one.seq >= seq) connection.line?.sendText(one.text);
  }
  for (const event of connection.waiting.splice(0)) write(world, connection, event);
}
