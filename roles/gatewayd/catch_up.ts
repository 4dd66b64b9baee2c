// Reads from the server what events may have missed. Events are held back meanwhile, so that posts are
// taken in the order in which they were written.
//
// 1. The cursor is the server's time of the newest post that was seen; it moves only when everything
//    up to there has been taken, and reading begins a minute before it.
// 2. The first time there is nothing to catch up with: what is older is never answered.
// 3. What is too old or too much is not answered, and the owner is told.
import type { Intake } from "./intake.ts";
import { postsFrom } from "./listing.ts";
import { Items, Post } from "./mattermost.ts";
import type { Parts } from "./parts.ts";

const MAX_REPLAYED = 500;
const MAX_AGE_MS = 7 * 86_400_000;
const MAX_IDS = 1_000;

export type CatchUpOptions = Pick<Parts, "rest" | "store" | "health" | "place" | "timers"> & {
  readonly intake: Intake;
  /** Posts whose reactions may be an answer. */
  readonly watched: () => readonly string[];
};

/** One whole round; false when the server did not answer all of it. */
export async function catchUp(options: CatchUpOptions): Promise<boolean> {
  for (const channel of options.place.channels) {
    if (!await readChannel(options, channel)) return false;
  }
  return await lookAgain(options) && await lookAtReactions(options);
}

/** Sets the cursors of channels that have none, before anything that comes is listened to. */
export async function firstLook(options: CatchUpOptions): Promise<boolean> {
  for (const channel of options.place.channels) {
    const isNew = options.store.cursor(channel) === undefined;
    if (isNew && !await readChannel(options, channel)) return false;
  }
  return true;
}

async function readChannel(options: CatchUpOptions, channel: string): Promise<boolean> {
  const { store, timers, health, intake } = options;
  const cursor = store.cursor(channel);
  const isAhead = cursor !== undefined && health.isAhead(cursor.at);
  const at = isAhead ? health.serverUnixMs() : cursor?.at ?? Infinity;
  const from = at - timers.marginMs;
  const list = await postsFrom(options.rest, channel, from);
  if (list.is !== "ok") return list.is === "refused" && list.status !== 401;
  const { posts, unreadable, isAll } = list.value;
  unreadable.forEach(health.passOver);
  const newest = posts.reduce((at, post) => Math.max(at, post.create_at), 0);
  store.step(() => {
    if (cursor !== undefined) take(options, posts.filter((post) => post.create_at >= from));
    if (cursor !== undefined && !isAll) {
      const text =
        "More was written while I was away than I read back; older messages are not answered.";
      store.put({ key: `m${newest}`, channel, root: "", text });
    }
    // Never back to nothing: what lies behind the floor of a clock that was set back would be new.
    store.setCursor(channel, isAhead ? at : Math.max(newest, cursor?.at ?? 0));
  });
  if (!isAll) intake.onWork();
  return true;
}

function take(options: CatchUpOptions, posts: readonly Post[]): void {
  const { store, intake, health } = options;
  const sorted = posts.toSorted((a, b) => a.create_at - b.create_at || (a.id < b.id ? -1 : 1));
  const news = sorted.filter(intake.isNews);
  const tooOld = health.serverUnixMs() - MAX_AGE_MS;
  const skipped = new Set(
    news.filter((post, i) => post.create_at < tooOld || i < news.length - MAX_REPLAYED),
  );
  for (const post of sorted) intake.created(post, skipped.has(post) ? "skipped" : "turn");
  const [first] = skipped;
  if (first === undefined) return;
  const text = `${skipped.size} older messages came while I was away and are not answered. ` +
    "Send again what still matters.";
  store.put({ key: `s${first.id}`, channel: first.channel_id, root: "", text });
}

/** Edits and deletions of what still waits. */
async function lookAgain({ rest, store, intake }: CatchUpOptions): Promise<boolean> {
  const ids = store.turns(null).filter((row) => row.state === "new").map((row) => row.post);
  if (ids.length === 0) return true;
  const asked = ids.slice(0, MAX_IDS);
  const posts = await rest.ask({ method: "POST", path: "/posts/ids", json: asked }, Items);
  if (posts.is !== "ok") return posts.is === "refused";
  for (const one of posts.value ?? []) {
    const post = Post.safeParse(one);
    if (!post.success) continue;
    if (post.data.delete_at > 0) intake.deleted(post.data.id);
    else intake.edited(post.data);
  }
  return true;
}

async function lookAtReactions(options: CatchUpOptions): Promise<boolean> {
  for (const post of options.watched()) {
    const path = `/posts/${post}/reactions`;
    const reactions = await options.rest.ask({ method: "GET", path }, Items);
    if (reactions.is === "unknown") return false;
    if (reactions.is === "ok") reactions.value?.forEach(options.intake.reaction);
  }
  return true;
}
