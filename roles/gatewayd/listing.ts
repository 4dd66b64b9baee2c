// A channel's posts, read page by page from the newest back.
import { Post, PostList } from "./mattermost.ts";
import type { Answer, Rest } from "./rest.ts";

// A size that the server keeps no stale first page of.
const PER_PAGE = 100;
const MAX_PAGES = 20;

export interface Listing {
  /** Each once, though a page may shift while the next is read; in no order. */
  readonly posts: readonly Post[];
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
  for (let page = 0; page < MAX_PAGES; page++) {
    const query = `page=${page}&per_page=${PER_PAGE}&skipFetchThreads=true`;
    const path = `/channels/${channel}/posts?${query}`;
    const list = await rest.ask({ method: "GET", path }, PostList);
    if (list.is !== "ok") return list;
    const { order, posts } = list.value;
    let oldest = Infinity;
    for (const id of order) {
      const post = Post.safeParse(posts[id]);
      if (!post.success) continue;
      found.set(id, post.data);
      oldest = Math.min(oldest, post.data.create_at);
    }
    if (order.length < PER_PAGE || oldest < fromMs) {
      return { is: "ok", value: { posts: [...found.values()], isAll: true } };
    }
  }
  return { is: "ok", value: { posts: [...found.values()], isAll: false } };
}
