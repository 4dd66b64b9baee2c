// The owner's messages on their way to loopd, and what loopd has for the owner on its way back.
//
// 1. In one thread one message is with loopd at a time; those behind it can still be edited or deleted.
// 2. loopd takes a message once, by its post's id, so it is submitted until it is accepted, also again
//    after a restart.
// 3. An outbox item becomes posts in one step with the end of its message, and is acknowledged when
//    the last of them is known to be there.
import { type ErrorCode, ERRORS } from "../../shared/results/codes.ts";
import type { Err } from "../../shared/results/result.ts";
import type { Said } from "../../shared/wire/exchange.ts";
import { type OutboxItem, stateText } from "../../shared/wire/loop.ts";
import { commandOf } from "./commands.ts";
import type { Attachments } from "./attachments.ts";
import { capital, points, postsOf, safeBlocks } from "./outgoing_text.ts";
import type { Parts } from "./parts.ts";
import type { LoopEvent } from "./peers.ts";
import type { Inbound, Outbound, Store } from "./store.ts";

const MAX_POSTS = 10;
/** Refusals that asking again would not change. */
const FINAL: readonly ErrorCode[] = ["request-invalid", "session-damaged", "frame-too-large"];
const WAITING_EMOJI = "hourglass_flowing_sand";

type TurnsOptions =
  & Pick<Parts, "store" | "sender" | "peers" | "clock" | "timers" | "signal" | "direct" | "limit">
  & {
    readonly attachments: Attachments;
  };

export type Turns = ReturnType<typeof makeTurns>;

export function makeTurns(options: TurnsOptions) {
  const { store, sender, peers, clock, timers, signal } = options;
  const pump = (): void => {
    if (signal.aborted) return;
    const seen = new Set<string>();
    for (const row of store.turns(null)) {
      if (seen.has(row.session)) markWaiting(desk, row);
      else if (!desk.submitting.has(row.post)) desk.submitting.set(row.post, run(desk, row));
      seen.add(row.session);
    }
    sender.wakeAll();
  };
  const none = { submitting: new Map(), marked: new Set<string>(), cancelling: new Set<string>() };
  const desk: Desk = { ...options, ...none, pump };
  let items = Promise.resolve();
  const onEvent = ({ kind, body }: LoopEvent): void => {
    if (kind === "turn_state") sender.say(body.session, capital(stateText(body)));
    // One after another, as they were written.
    else if (kind === "outbox_item") items = items.then(() => takeItem(desk, body));
  };
  return {
    /** Looks for messages that can go to loopd now. */
    pump,
    /** Ends what a thread does since before `at`, the server's time; false when it does nothing. */
    cancel(session: string, at: number): boolean {
      const [row] = store.turns(session);
      if (row === undefined || row.at > at) return false;
      store.wishCancel(row.post);
      if (row.state === "sent") cancelling(desk, row);
      return true;
    },
    /** A post of an item is there, or never will be. */
    async rowEnded(row: Outbound): Promise<void> {
      if (row.item >= 0 && !store.isItemOpen(row.item)) await peers.ack(row.item);
    },
    /** Follows loopd until the signal aborts. */
    async follow(): Promise<void> {
      while (!signal.aborted) {
        await peers.watch(onEvent, signal);
        await clock.sleep(timers.retryPeerMs, signal);
      }
      await Promise.all([items, ...desk.submitting.values()]);
    },
  };
}

type Desk = TurnsOptions & {
  readonly pump: () => void;
  /** Messages that this process has submitted or is submitting, by post id. */
  readonly submitting: Map<string, Promise<void>>;
  /** Messages that wait behind another and are known to say so. */
  readonly marked: Set<string>;
  readonly cancelling: Set<string>;
};

function draftOf(row: Pick<Inbound, "post" | "channel" | "root">) {
  return { channel: row.channel, root: row.root, draft: `d${row.post}` };
}

function markWaiting({ store, marked }: Desk, row: Inbound): void {
  if (marked.has(row.post)) return;
  marked.add(row.post);
  const mark = { key: `r${row.post}`, is_what: "react" as const, text: WAITING_EMOJI };
  store.put({ ...mark, channel: row.channel, root: row.post });
}

/** Gives one message to loopd, for as long as that takes. */
async function run(desk: Desk, first: Inbound): Promise<void> {
  const { store, sender, peers, attachments, clock, timers, signal } = desk;
  const { post: messageId, session, channel, root } = first;
  const text = "Taking it up";
  desk.marked.delete(messageId);
  store.step(() => {
    store.setInbox(messageId, "sent");
    store.put({ key: `d${messageId}`, channel, root, text });
    unmark(store, first);
  });
  sender.progress(session, draftOf(first), text);
  for (let n = 0; !signal.aborted; n++) {
    const row = store.inboxRow(messageId);
    if (row === undefined || row.state === "done") return;
    if (commandOf(row.text) !== null) {
      return finish(desk, row, "An edited message is no order. Write it anew.");
    }
    const read = await attachments.read(row);
    if (read.is === "again") sender.say(session, "Waiting for the attached files");
    else {
      const notes = read.declined.join("\n");
      if (read.text.trim() === "") return finish(desk, row, notes);
      if (notes !== "") store.put({ key: `f${messageId}`, channel, root, text: notes });
      const reply = await peers.submit({ session, messageId, text: read.text, label: read.label });
      if (reply.ok) {
        // The wish may have come while nobody could be told of it.
        if (store.inboxRow(messageId)?.cancel === 1) cancelling(desk, row);
        return;
      }
      if (FINAL.includes(reply.code)) return finish(desk, row, refusalText(reply));
      sender.say(session, `Waiting: ${ERRORS[reply.code].what}`);
    }
    await clock.sleep(timers.retryPeerMs * Math.min(2 ** n, 30), signal);
  }
}

function unmark(store: Store, row: Inbound): void {
  if (store.outboxRow(`r${row.post}`) === undefined) return;
  const mark = { key: `u${row.post}`, is_what: "unreact" as const, text: WAITING_EMOJI };
  store.put({ ...mark, channel: row.channel, root: row.post });
}

function refusalText(failure: Err): string {
  const { what, todo } = ERRORS[failure.code];
  return `${what} ${todo} (${failure.code}: ${failure.detail.slice(0, 500)})`;
}

/** Ends a message that never was loopd's. */
function finish(desk: Desk, row: Inbound, text: string): void {
  desk.store.step(() => {
    desk.store.setInbox(row.post, "done");
    putText(desk, { ...draftOf(row), key: `a${row.post}`, item: -1 }, text);
  });
  ended(desk, row);
}

function ended(desk: Desk, row: Inbound): void {
  desk.sender.endProgress(row.session);
  desk.submitting.delete(row.post);
  desk.pump();
}

/** Asks loopd to end the turn until the message has ended; survives restarts of either. */
async function cancelling(desk: Desk, row: Inbound): Promise<void> {
  const { store, peers, clock, timers, signal } = desk;
  if (desk.cancelling.has(row.post)) return;
  desk.cancelling.add(row.post);
  while (!signal.aborted && store.inboxRow(row.post)?.state === "sent") {
    await peers.cancel(row.session);
    await clock.sleep(timers.retryPeerMs, signal);
  }
  desk.cancelling.delete(row.post);
}

async function takeItem(desk: Desk, item: Said<typeof OutboxItem>["body"]): Promise<void> {
  const { store, peers, clock, timers, signal } = desk;
  const key = `o${item.n}-${item.created_unix_ms}`;
  if (store.outboxRow(`${key}-0`) !== undefined) {
    if (!signal.aborted && !store.isItemOpen(item.n)) await peers.ack(item.n);
    return;
  }
  let text = await peers.fetch(item.n);
  for (; !text.ok && text.code !== "not-found"; text = await peers.fetch(item.n)) {
    await clock.sleep(timers.retryPeerMs, signal);
    if (signal.aborted) return;
  }
  if (!text.ok || signal.aborted) return;
  const { value } = text;
  const row = item.message_id === null ? undefined : store.inboxRow(item.message_id);
  store.step(() => {
    if (row !== undefined) store.setInbox(row.post, "done");
    putText(desk, { ...placeOf(desk, item, row), key, item: item.n }, value);
  });
  if (row === undefined) desk.pump();
  else ended(desk, row);
}

/** Where an item belongs: its message's thread, its session's, or one that is made for the session. */
function placeOf(
  { store, direct }: Desk,
  item: Said<typeof OutboxItem>["body"],
  row: Inbound | undefined,
) {
  if (row !== undefined && row.state !== "done") return draftOf(row);
  const known = store.thread(item.session);
  if (known !== undefined) return { channel: known.channel, root: known.root, draft: "" };
  const [, root] = /^mm-(.*)$/.exec(item.session) ?? [];
  if (root !== undefined) return { channel: direct, root, draft: "" };
  // The first post of a session without a thread begins one for all that follow.
  store.bindThread(item.session, direct, `=o${item.n}-${item.created_unix_ms}-0`);
  return { channel: direct, root: "", draft: "" };
}

type Where = Pick<Outbound, "key" | "channel" | "root" | "draft" | "item">;

function putText({ store, limit }: Desk, where: Where, text: string): void {
  const posts = postsOf(safeBlocks(text), limit());
  const put = (i: number, part: string, file = "") =>
    store.put({
      ...where,
      key: `${where.key}-${i}`,
      draft: i === 0 ? where.draft : "",
      root: where.root === "" && i > 0 ? `=${where.key}-0` : where.root,
      text: part,
      file,
    });
  if (posts.length <= MAX_POSTS) return void posts.forEach((part, i) => put(i, part));
  const size = `${points(text)} characters, more than ${MAX_POSTS} posts hold`;
  put(0, `The answer has ${size}. It follows as a file.`);
  put(1, "The whole answer:", text);
}
