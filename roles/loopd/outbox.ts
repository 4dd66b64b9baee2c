// What the owner has still to hear: `sessions/outbox.jsonl`, one line an item or an acknowledgement.
//
// 1. An item is durable before anybody is told of it, and stays until it is acknowledged.
// 2. Numbers only go up, also over restarts and over the removal of acknowledged items.
// 3. A last line without its end was never told of and is cut; any other odd line is damage.
import { z } from "zod";
import { type Appender, openAppender, readWhole, replaceFile } from "../../shared/disk/durable.ts";
import { MessageId, SessionId, TurnId } from "../../shared/ids/ids.ts";
import { Label } from "../../shared/labels/label.ts";
import { err, ok, type Result } from "../../shared/results/result.ts";
import {
  canonicalText,
  decodeUtf8,
  encodeUtf8,
  parseCanonicalText,
} from "../../shared/wire/codec.ts";
import { MAX_MESSAGE_BYTES } from "../../shared/wire/limits.ts";
import { durable, type Ports } from "./ports.ts";

const Item = z.strictObject({
  kind: z.literal("item"),
  n: z.int().min(0),
  session: SessionId,
  turn: TurnId.nullable(),
  message_id: MessageId.nullable(),
  is: z.enum(["reply", "notice"]),
  code: z.string().max(64).nullable(),
  label: Label,
  created_unix_ms: z.int().min(0),
  text: z.string(),
});
export type OutboxEntry = z.output<typeof Item>;

const Line = z.discriminatedUnion("kind", [
  Item,
  z.strictObject({ kind: z.literal("ack"), n: z.int().min(0) }),
  /** What a compaction leaves in front: the number of the next item, and turns that had one. */
  z.strictObject({ kind: z.literal("next"), n: z.int().min(0), turns: z.array(TurnId).max(1_000) }),
]);

export type Outbox = ReturnType<typeof outboxOf>;

type State = {
  readonly items: Map<number, OutboxEntry>;
  readonly turns: Set<TurnId>;
  next: number;
  file: Appender;
};

const COMPACT_BYTES = 1_048_576;
const TURNS_KEPT = 1_000;

/** Opens or makes the outbox. Fails with `session-damaged` when a line is not one of its own. */
export function openOutbox(ports: Ports, path: string): Result<Outbox> {
  const file = openAppender(ports.disk, path);
  if (!file.ok) return durable(ports, file);
  const state: State = { items: new Map(), turns: new Set(), next: 0, file: file.value };
  const loaded = load(ports, path, state);
  if (!loaded.ok) {
    state.file.close();
    return durable(ports, loaded);
  }
  shorten(ports, path, state);
  return ok(outboxOf(ports, path, state));
}

/** Rewrites a long file without what is acknowledged; what cannot be done now is done another time. */
function shorten(ports: Ports, path: string, state: State): void {
  if (state.file.size() <= COMPACT_BYTES) return;
  const lines = [
    { kind: "next", n: state.next, turns: [...state.turns].slice(-TURNS_KEPT) },
    ...state.items.values(),
  ];
  const bytes = encodeUtf8(lines.map((line) => canonicalText(line) + "\n").join(""));
  if (!durable(ports, replaceFile(ports.disk, path, bytes)).ok) return;
  const fresh = openAppender(ports.disk, path);
  // What went into the old file now, which has no name any more, would be lost.
  if (!fresh.ok) return ports.fatal(fresh.detail);
  state.file.close();
  state.file = fresh.value;
}

function load(ports: Ports, path: string, state: State): Result<null> {
  const bytes = readWhole(ports.disk, path, state.file.size());
  if (!bytes.ok) return bytes;
  const whole = bytes.value.lastIndexOf(10) + 1;
  if (whole < bytes.value.length) {
    ports.log(`outbox: cut ${bytes.value.length - whole} unfinished bytes`);
    const cut = state.file.cutTo(whole);
    if (!cut.ok) return cut;
  }
  const text = decodeUtf8(bytes.value.subarray(0, whole));
  if (!text.ok) return err("session-damaged", `${path}: ${text.detail}`);
  for (const [at, line] of text.value.split("\n").slice(0, -1).entries()) {
    const value = parseCanonicalText(line);
    const parsed = value.ok ? Line.safeParse(value.value) : null;
    if (!parsed?.success) return err("session-damaged", `${path} line ${at + 1} is no outbox line`);
    take(state, parsed.data);
  }
  return ok(null);
}

function take(state: State, line: z.output<typeof Line>): void {
  if (line.kind === "ack") state.items.delete(line.n);
  else if (line.kind === "next") {
    state.next = line.n;
    for (const turn of line.turns) state.turns.add(turn);
  } else {
    state.items.set(line.n, line);
    if (line.turn !== null) state.turns.add(line.turn);
    // An item may be older than what a shortened file begins with.
    state.next = Math.max(state.next, line.n + 1);
  }
}

function outboxOf(ports: Ports, path: string, state: State) {
  const listeners: ((entry: OutboxEntry) => void)[] = [];
  const write = (line: z.output<typeof Line>): Result<null> => {
    const written = durable(ports, state.file.append(encodeUtf8(canonicalText(line) + "\n")));
    if (!written.ok) return written;
    take(state, line);
    return ok(null);
  };
  return {
    /** Makes an item durable and tells the listeners. A text over 1 MiB is cut, and says so. */
    put(entry: Omit<OutboxEntry, "kind" | "n" | "created_unix_ms">): Result<OutboxEntry> {
      const item: OutboxEntry = {
        kind: "item",
        n: state.next,
        ...entry,
        created_unix_ms: ports.clock.nowUnixMs(),
        text: withinLimit(entry.text),
      };
      const written = write(item);
      if (!written.ok) return written;
      for (const listener of listeners) listener(item);
      return ok(item);
    },
    /** Unacknowledged items above `n`, oldest first. */
    after: (n: number) => [...state.items.values()].filter((item) => item.n > n),
    /** An item that is not acknowledged yet. */
    get: (n: number) => state.items.get(n),
    /** Forgets an item; one that is unknown or already acknowledged is a success. */
    ack(n: number): Result<null> {
      const written = state.items.has(n) ? write({ kind: "ack", n }) : ok(null);
      if (written.ok && state.items.size === 0) shorten(ports, path, state);
      return written;
    },
    /** Whether this turn has put an item, acknowledged or not. */
    hasFor: (turn: TurnId) => state.turns.has(turn),
    pending: () => state.items.size,
    onItem: (listener: (entry: OutboxEntry) => void) => void listeners.push(listener),
    close: () => state.file.close(),
  };
}

function withinLimit(text: string): string {
  const bytes = encodeUtf8(text).length;
  if (bytes <= MAX_MESSAGE_BYTES) return text;
  const mark = `\n[cut here; the whole text of ${bytes} bytes is in the session's log]`;
  // Four bytes is the most that one code point takes.
  return [...text].slice(0, Math.floor((MAX_MESSAGE_BYTES - mark.length) / 4)).join("") + mark;
}
