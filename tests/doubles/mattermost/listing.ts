// Lists of posts, with the server's uneven rules: `since` finds what changed (edit copies, deleted
// posts, bumped roots), pages find what stands, and `posts` holds more than `order` names.
import type { Post } from "./model.ts";
import { wirePost } from "./posts.ts";
import type { World } from "./world.ts";

export interface ListQuery {
  readonly since: number;
  readonly after: string;
  readonly before: string;
  readonly page: number;
  readonly perPage: number;
  readonly skipThreads: boolean;
  readonly rootsOnly: boolean;
}

const MOST_PER_PAGE = 200;
const MOST_SINCE = 1000;

const newestFirst = (a: Post, b: Post) => b.create_at - a.create_at || (a.id < b.id ? -1 : 1);

const stands = (post: Post) => post.delete_at === 0 && post.original_id === "";

/** A deleted post keeps its place in `since` but not its text. */
const asChanged = (post: Post): Post =>
  post.delete_at > 0 && post.original_id === "" ? { ...post, message: "", file_ids: [] } : post;

function changedSince(world: World, channelId: string, query: ListQuery): Post[] {
  if (world.knobs().sinceEmpty) return [];
  const ids = [...world.store.postsOf(channelId), ...world.store.copiesOf(channelId)];
  const changed = ids.map((id) => world.store.posts.get(id)).filter((post) => post !== undefined)
    .filter((post) => post.update_at > query.since)
    .filter((post) => !query.rootsOnly || post.root_id === "");
  return changed.slice(0, MOST_SINCE).map(asChanged).toSorted(newestFirst);
}

/** Standing posts, newest first, as long as somebody asks for more. */
function* newest(world: World, channelId: string, rootsOnly: boolean): Generator<Post> {
  const ids = world.store.postsOf(channelId);
  for (let at = ids.length - 1; at >= 0; at--) {
    const post = world.store.posts.get(ids[at] ?? "");
    if (post !== undefined && stands(post) && (!rootsOnly || post.root_id === "")) yield post;
  }
}

function pick(world: World, channelId: string, query: ListQuery): Post[] {
  if (query.since > 0) return changedSince(world, channelId, query);
  const size = Math.min(query.perPage, MOST_PER_PAGE);
  const from = query.page * size;
  const standing = newest(world, channelId, query.rootsOnly);
  if (query.after !== "") {
    const anchor = world.store.posts.get(query.after)?.create_at ?? Infinity;
    const later: Post[] = [];
    for (const post of standing) {
      if (post.create_at <= anchor) break;
      later.push(post);
    }
    const end = later.length - from;
    return later.slice(Math.max(0, end - size), Math.max(0, end));
  }
  const before = query.before === ""
    ? Infinity
    : world.store.posts.get(query.before)?.create_at ?? 0;
  return standing.filter((post) => post.create_at < before).drop(from).take(size).toArray();
}

/** `{order, posts, ...}` of these posts, with the roots and threads they belong to beside them. */
export function postList(
  world: World,
  ordered: readonly Post[],
  withThreads: boolean,
): Record<string, unknown> {
  const posts = new Map(ordered.map((post) => [post.id, post]));
  const add = (id: string) => {
    const post = world.store.posts.get(id);
    if (post !== undefined && post.delete_at === 0 && !posts.has(id)) posts.set(id, post);
  };
  for (const post of ordered) {
    if (post.root_id !== "") add(post.root_id);
    if (withThreads) world.store.repliesOf(post.root_id || post.id).forEach(add);
  }
  return {
    order: ordered.map((post) => post.id),
    posts: Object.fromEntries([...posts].map(([id, post]) => [id, wirePost(world, post)])),
    next_post_id: "",
    prev_post_id: "",
    has_next: false,
    first_inaccessible_post_time: 0,
    ...(world.knobs().unknownFields ? { a_new_list_field: true } : {}),
  };
}

export function listChannel(
  world: World,
  channelId: string,
  query: ListQuery,
): Record<string, unknown> {
  return postList(world, pick(world, channelId, query), !query.skipThreads && query.since === 0);
}

/** A root and its replies; oldest first when a direction was asked for, else in no useful order. */
export function listThread(world: World, rootId: string, isOrdered: boolean) {
  const ids = [rootId, ...world.store.repliesOf(rootId)];
  const posts = ids.map((id) => world.store.posts.get(id))
    .filter((post) => post !== undefined).filter(stands);
  const ordered = isOrdered
    ? posts.toSorted((a, b) => newestFirst(b, a))
    : posts.toSorted((a, b) => (a.id < b.id ? -1 : 1));
  return postList(world, ordered, false);
}
