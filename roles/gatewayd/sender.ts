// Everything that is posted: row after row of the durable outbox, one at a time in each channel, each
// waiting for its 201. When no row waits, the drafts of running turns show how far they are.
//
// 1. A row is posted exactly once. What may be there already is searched for by the row's key first;
//    while the server surely remembers the pending id, the same one is sent again.
// 2. An answer replaces its draft; when that cannot be, it becomes a post of its own.
// 3. A row that is too long for a limit that was lowered is cut anew, in its place.
// 4. Every post says `unsafe_links`, so that servers and clients that know it fetch nothing.
import type { Random } from "../../shared/clock/random.ts";
import { encodeUtf8 } from "../../shared/wire/codec.ts";
import { postsFrom } from "./listing.ts";
import { Anything, Post, Uploaded } from "./mattermost.ts";
import { cutAgain, points } from "./outgoing_text.ts";
import type { Parts } from "./parts.ts";
import type { Answer } from "./rest.ts";
import type { Outbound, Store } from "./store.ts";

/** A channel with nothing to do looks again anyway. */
const IDLE_MS = 600_000;
const TOO_LONG = "model.post.is_valid.message_length.app_error";
/** Shorter texts, in code points, are not cut again. */
const LEAST_CUT = 200;
const BAD_ROOT = [
  "api.post.create_post.root_id.app_error",
  "api.post.create_post.channel_root_id.app_error",
];

type SenderOptions =
  & Pick<Parts, "rest" | "store" | "clock" | "random" | "timers" | "health" | "signal" | "place">
  & {
    /** Reads anew how many code points a post may have. */
    readonly readLimit: () => Promise<number>;
    /** A row has ended, posted or not. */
    readonly onEnded: (row: Outbound) => void;
  };

/** What a running turn shows. */
interface Live {
  readonly channel: string;
  readonly root: string;
  readonly draft: string;
  text: string;
  shown: string;
  editedMs: number;
}

interface Worker {
  /** What the channel's last typing event was sent at. */
  typedMs: number;
  wake(): void;
  /** Resolves when it has ended. */
  ended: Promise<void>;
}

export type Sender = ReturnType<typeof makeSender>;

export function makeSender(options: SenderOptions) {
  const { store, clock, signal } = options;
  const live = new Map<string, Live>();
  const workers = new Map<string, Worker>();
  const desk = { ...options, live, tried: new Map<number, number>() };
  const wake = (channel: string) => {
    const known = workers.get(channel);
    if (known !== undefined) return known.wake();
    const worker: Worker = { typedMs: -Infinity, wake: () => {}, ended: Promise.resolve() };
    workers.set(channel, worker);
    worker.ended = work(desk, channel, worker);
  };
  return {
    /** Looks at what is to be posted; called after every put. */
    wakeAll: () => store.outChannels().forEach(wake),
    /** What the session's draft shows from now on. */
    progress(session: string, where: Pick<Live, "channel" | "root" | "draft">, text: string): void {
      live.set(session, { ...where, text, shown: text, editedMs: clock.monotonicMs() });
      wake(where.channel);
    },
    /** Changes the words of a draft that is shown already. */
    say(session: string, text: string): void {
      const one = live.get(session);
      if (one === undefined || one.text === text) return;
      one.text = text;
      wake(one.channel);
    },
    endProgress: (session: string) => void live.delete(session),
    /** Resolves when every worker has ended, which they do when the signal aborts. */
    async stopped(): Promise<void> {
      if (!signal.aborted) throw new TypeError("Workers end when the signal aborts");
      for (const worker of workers.values()) worker.wake();
      await Promise.all([...workers.values()].map((worker) => worker.ended));
    },
  };
}

type Desk = SenderOptions & {
  readonly live: Map<string, Live>;
  /** When this process first sent a row under its present pending id. */
  readonly tried: Map<number, number>;
};

async function work(desk: Desk, channel: string, worker: Worker): Promise<void> {
  const { clock, timers, signal, store, health } = desk;
  let failures = 0;
  while (!signal.aborted) {
    if (health.isRefused()) {
      await clock.sleep(Math.min(timers.probeMs, timers.firstPauseMs * 5), signal);
      continue;
    }
    const woken = new AbortController();
    worker.wake = () => woken.abort();
    const row = store.nextOut(channel);
    if (row !== undefined) {
      const isDone = await deliver(desk, row);
      failures = isDone ? 0 : failures + 1;
      if (!isDone) await clock.sleep(timers.pauseMs(failures - 1), signal);
    } else {
      await clock.sleep(await showProgress(desk, channel, worker), woken.signal);
    }
  }
}

/** Sends one row; false when it has to be tried again. */
async function deliver(desk: Desk, row: Outbound): Promise<boolean> {
  const { store } = desk;
  if (row.is_what !== "post") return await react(desk, row);
  const root = rootFor(store, row.root);
  if (row.draft !== "") {
    const draft = store.outboxRow(row.draft);
    if (draft?.state !== "done" || draft.post === "") store.redirect(row.id, root);
    else return await replaceDraft(desk, row, draft.post, root);
  }
  return await post(desk, row, root);
}

/** The post id that a row's root stands for; nothing when the post it names was never made. */
export function rootFor(store: Store, root: string): string {
  return root.startsWith("=") ? store.outboxRow(root.slice(1))?.post ?? "" : root;
}

function ended(desk: Desk, row: Outbound, postId: string | null): true {
  const { store, tried, onEnded } = desk;
  if (postId === null) store.failed(row.id);
  else store.posted(row.key, postId);
  tried.delete(row.id);
  onEnded(row);
  return true;
}

async function react(desk: Desk, row: Outbound): Promise<boolean> {
  const { place: { self }, rest } = desk;
  const json = { user_id: self, post_id: row.root, emoji_name: row.text };
  const path = `/users/${self}/posts/${row.root}/reactions/${row.text}`;
  const answer = row.is_what === "react"
    ? await rest.ask({ method: "POST", path: "/reactions", json }, Anything)
    : await rest.ask({ method: "DELETE", path }, Anything);
  if (answer.is === "unknown" || isRefusedToken(answer)) return false;
  // A reaction is a courtesy; one that cannot be is no news.
  return ended(desk, row, answer.is === "ok" ? row.root : null);
}

function isRefusedToken(answer: Answer<unknown>): boolean {
  return answer.is === "refused" && answer.status === 401;
}

function propsOf(key: string) {
  return { unsafe_links: "true", boxmaker_out: key };
}

async function replaceDraft(
  desk: Desk,
  row: Outbound,
  draft: string,
  root: string,
): Promise<boolean> {
  const json = { message: row.text, props: propsOf(row.key) };
  const path = `/posts/${draft}/patch`;
  const answer = await desk.rest.ask({ method: "PUT", path, json }, Post);
  if (answer.is === "ok") return ended(desk, row, draft);
  if (isTooLong(answer, row)) return await cutRow(desk, row);
  if (answer.is === "refused" && answer.status !== 401) {
    desk.store.redirect(row.id, root);
    return true;
  }
  return false;
}

async function post(desk: Desk, row: Outbound, root: string): Promise<boolean> {
  const { store, clock, timers, tried, rest } = desk;
  const since = tried.get(row.id);
  let { pending } = row;
  if (row.state === "tried") {
    // The server may have restarted since, so its memory of pending ids is never relied on alone.
    const found = await searchFor(desk, row);
    if (found.is !== "ok") return false;
    if (found.value !== null) return ended(desk, row, found.value);
    if (since !== undefined && clock.monotonicMs() - since >= timers.sameKeyMs) pending = "";
  }
  const files = row.file === "" ? [] : await upload(desk, row);
  if (files === null) return false;
  if (pending === "" || since === undefined) {
    pending = `${desk.place.self}:${uuid(desk.random)}`;
    store.trying(row.id, pending);
    tried.set(row.id, clock.monotonicMs());
  }
  const json = {
    channel_id: row.channel,
    message: row.text,
    root_id: root,
    pending_post_id: pending,
    props: propsOf(row.key),
    ...(files.length === 0 ? {} : { file_ids: files }),
  };
  const answer = await rest.ask({ method: "POST", path: "/posts?set_online=false", json }, Post);
  if (answer.is === "unknown" || isRefusedToken(answer)) return false;
  if (isTooLong(answer, row)) return await cutRow(desk, row);
  if (answer.is === "refused") return refused(desk, row, root, answer);
  const kept = answer.value.file_ids ?? [];
  if (files.some((id) => !kept.includes(id))) {
    report(desk, row, "The server did not keep the attached file. Ask again for a shorter answer.");
  }
  return ended(desk, row, answer.value.id);
}

function isTooLong(answer: Answer<unknown>, row: Outbound): boolean {
  return answer.is === "refused" && answer.id === TOO_LONG && points(row.text) >= LEAST_CUT;
}

/** Cuts a row that was made under a higher limit; where the server says no lower one, into halves. */
async function cutRow(desk: Desk, row: Outbound): Promise<true> {
  const { store, tried, readLimit } = desk;
  const size = points(row.text);
  const limit = await readLimit();
  store.step(() => store.cut(row, cutAgain(row.text, limit < size ? limit : size >> 1)));
  tried.delete(row.id);
  return true;
}

function refused(
  desk: Desk,
  row: Outbound,
  root: string,
  answer: { readonly id: string; readonly detail: string },
): boolean {
  if (root !== "" && BAD_ROOT.includes(answer.id)) {
    desk.tried.delete(row.id);
    desk.store.redirect(row.id, "");
    return true;
  }
  desk.health.set("channel-post-refused", `The server refused a post: ${answer.detail}`);
  report(desk, row, `A part of this could not be posted: ${answer.detail.replace(/[^\w. ]/g, "")}`);
  return ended(desk, row, null);
}

/** Says in the thread that something is missing there; a report that fails is not reported. */
function report(desk: Desk, row: Outbound, text: string): void {
  if (row.key.startsWith("x")) return;
  desk.store.put({ key: `x${row.key}`, channel: row.channel, root: row.root, text });
}

/** The file's id in a list, an empty list when the server takes none, null to try again. */
async function upload(desk: Desk, row: Outbound): Promise<string[] | null> {
  const path = `/files?channel_id=${row.channel}&filename=answer.txt`;
  const bytes = encodeUtf8(row.file);
  const answer = await desk.rest.ask({ method: "POST", path, bytes }, Uploaded);
  if (answer.is === "unknown" || isRefusedToken(answer)) return null;
  if (answer.is === "ok") return answer.value.file_infos.map((file) => file.id);
  report(desk, row, "The server took no file. Ask again for a shorter answer.");
  return [];
}

/** The post that carries the row's key, among those since it was first sent; null for none. */
async function searchFor(desk: Desk, row: Outbound): Promise<Answer<string | null>> {
  const { health, clock, timers, rest, place } = desk;
  const skewMs = health.serverUnixMs() - clock.nowUnixMs();
  const from = row.tried_unix_ms + skewMs - timers.marginMs;
  const list = await postsFrom(rest, row.channel, from);
  if (list.is === "unknown") return list;
  const posts = list.is === "ok" ? list.value.posts : [];
  const own = posts.find((one) =>
    one.user_id === place.self && one.props?.boxmaker_out === row.key
  );
  return { is: "ok", value: own?.id ?? null };
}

function uuid(random: Random): string {
  const hex = random.bytes(16).toHex();
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)]
    .join("-");
}

/** Brings one draft of the channel up to date. Returns in how many milliseconds to look again. */
async function showProgress(desk: Desk, channel: string, worker: Worker): Promise<number> {
  const { clock, timers, store, rest } = desk;
  const here = [...desk.live.values()].filter((one) => one.channel === channel);
  if (here.length === 0) return IDLE_MS;
  const now = clock.monotonicMs();
  if (now - worker.typedMs >= timers.typingMs) {
    worker.typedMs = now;
    const parent_id = rootFor(store, here[0]?.root ?? "");
    const json = { channel_id: channel, parent_id };
    await rest.ask({ method: "POST", path: "/users/me/typing", json }, Anything);
    return 0;
  }
  let next = worker.typedMs + timers.typingMs - now;
  for (const one of here) {
    const draft = store.outboxRow(one.draft);
    if (one.text === one.shown || draft?.state !== "done" || draft.post === "") continue;
    const due = one.editedMs + timers.editMs - now;
    if (due > 0) {
      next = Math.min(next, due);
      continue;
    }
    one.editedMs = now;
    one.shown = one.text;
    const path = `/posts/${draft.post}/patch`;
    // The props stay as they are; what an edit that fails would have shown is shown by the next one.
    await rest.ask({ method: "PUT", path, json: { message: one.text } }, Anything);
    return 0;
  }
  return Math.max(1, next);
}
