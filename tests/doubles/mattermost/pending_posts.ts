// The idempotency cache of new posts: for thirty seconds a pending id names the post it made. It is
// kept in memory only, as the server keeps it: a restart forgets it.
import { Refusal } from "./model.ts";
import type { World } from "./world.ts";

const TTL_MS = 30_000;
const MOST = 25_000;

export interface PendingPosts {
  /** The id of the post made under this key, or null when the caller now holds the key. */
  claim(key: string): string | null;
  finish(key: string, postId: string): void;
  /** The post was not made; the key is free again. */
  release(key: string): void;
  /** A restart: nothing is pending. */
  forget(): void;
}

export function createPendingPosts(world: World): PendingPosts {
  const known = new Map<string, { postId: string; atMs: number }>();
  return {
    claim: (key) => {
      if (key === "") return null;
      const entry = known.get(key);
      const isFresh = entry !== undefined && Date.now() - entry.atMs < world.scaled(TTL_MS);
      if (isFresh && entry.postId === "") {
        throw new Refusal(500, "api.post.deduplicate_create_post.pending");
      }
      if (isFresh) return entry.postId;
      known.set(key, { postId: "", atMs: Date.now() });
      if (known.size > MOST) {
        const oldest = known.keys().next().value;
        if (oldest !== undefined) known.delete(oldest);
      }
      return null;
    },
    finish: (key, postId) => {
      if (key !== "") known.set(key, { postId, atMs: Date.now() });
    },
    release: (key) => {
      known.delete(key);
    },
    forget: () => known.clear(),
  };
}
