// A channel's posts, read page by page from the newest back.
import { Post, PostList } from "./mattermost.ts";
import type { Answer, Rest } from "./rest.ts";

// A size that the server keeps no stale first page of.
const PER_PAGE = 128;
const MAX_POSTS = 2_048;

export interface Listing {
  /** Each once, though a page may shift while the next is read; in no order. */
  readonly posts: readonly Post[];
  /** What is there and cannot be read, by its id or place. */
  readonly unreadable: readonly string[];
  /** Whether everything from `fromMs` on is there. */
  readonly isAll: boolean;
}

/** The posts created at `fromMs` (the server's time) or later, and some before. */
export async function postsFrom(
  rest: Rest,
  channel: string,
  fromMs: number,
): Promise<Answer<Listing>> {
  const found = new Map<string, Post>();
  const unreadable: string[] = [];
  const listing = (isAll: boolean) =>
    ({ is: "ok", value: { posts: [...found.values()], unreadable, isAll } }) as const;
  let size = PER_PAGE;
  for (let at = 0; at < MAX_POSTS;) {
    const query = `page=${at / size}&per_page=${size}&skipFetchThreads=true`;
    const path = `/channels/${channel}/posts?${query}`;
    const list = await rest.ask({ method: "GET", path }, PostList);
    if (list.is === "refused" && list.status === 413) {
      // A page that is too large to read is read in halves, and one post that is too large not at all.
      if (size > 1) size /= 2;
      else unreadable.push(`number ${at++} from the newest of channel ${channel}`);
      continue;
    }
    if (list.is !== "ok") return list;
    at += size;
    const { order, posts } = list.value;
    let oldest = Infinity;
    for (const id of order) {
      const post = Post.safeParse(posts[id]);
      if (!post.success) {
        unreadable.push(id.slice(0, 64));
        continue;
      }
      found.set(id, post.data);
      oldest = Math.min(oldest, post.data.create_at);
    }
    if (order.length < size || oldest < fromMs) return listing(true);
    while (size < PER_PAGE && at % (2 * size) === 0) size *= 2;
  }
  return listing(false);
}
