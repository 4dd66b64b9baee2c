// What the double knows, kept on disk: one journal of rows, written before anything is answered, so
// that a killed double comes back with all it ever promised. Without a folder it lives in memory.
import type { Channel, FileInfo, Post, Reaction, Token, User } from "./model.ts";

export interface Table<T> {
  get(key: string): T | undefined;
  set(key: string, row: T): void;
  delete(key: string): void;
  all(): Iterable<T>;
}

export interface Store {
  readonly users: Table<User>;
  readonly tokens: Table<Token>;
  readonly channels: Table<Channel>;
  readonly posts: Table<Post>;
  readonly reactions: Table<Reaction>;
  readonly files: Table<FileInfo>;
  readonly facts: Table<number>;
  /** Ids of a channel's posts, oldest first; edit copies are kept apart. */
  postsOf(channelId: string): readonly string[];
  copiesOf(channelId: string): readonly string[];
  reactionKeysOf(postId: string): readonly string[];
  /** Ids of the replies to a root. */
  repliesOf(rootId: string): readonly string[];
  putBytes(fileId: string, bytes: Uint8Array): void;
  bytesOf(fileId: string): Uint8Array | null;
  close(): void;
}

interface Journal {
  write(line: readonly unknown[]): void;
  close(): void;
}

function openJournal(path: string | null): Journal {
  if (path === null) return { write: () => {}, close: () => {} };
  const file = Deno.openSync(path, { append: true, create: true });
  const encoder = new TextEncoder();
  return {
    write: (line) => {
      const bytes = encoder.encode(`${JSON.stringify(line)}\n`);
      for (let at = 0; at < bytes.length;) at += file.writeSync(bytes.subarray(at));
    },
    close: () => file.close(),
  };
}

function table<T>(
  name: string,
  rows: Map<string, T>,
  journal: Journal,
  onSet: (row: T, before: T | undefined) => void = () => {},
): Table<T> & { load(key: string, row: T | null): void } {
  const load = (key: string, row: T | null) => {
    const before = rows.get(key);
    if (row === null) rows.delete(key);
    else {
      rows.set(key, row);
      onSet(row, before);
    }
  };
  return {
    get: (key) => rows.get(key),
    all: () => rows.values(),
    set: (key, row) => {
      journal.write([name, key, row]);
      load(key, row);
    },
    delete: (key) => {
      journal.write([name, key, null]);
      load(key, null);
    },
    load,
  };
}

/** The journal's lines; a last line cut short by a kill is dropped, and with it an unanswered write. */
function linesOf(path: string): string[] {
  try {
    const text = Deno.readTextFileSync(path);
    const whole = text.slice(0, text.lastIndexOf("\n") + 1);
    if (whole.length < text.length) Deno.writeTextFileSync(path, whole);
    return whole.split("\n").slice(0, -1);
  } catch (thrown) {
    if (thrown instanceof Deno.errors.NotFound) return [];
    throw thrown;
  }
}

/** Moves the last id to its place by time, which is nearly always where it is. */
function sink(ids: string[], post: Post, posts: ReadonlyMap<string, Post>): void {
  let at = ids.length - 1;
  for (; at > 0; at--) {
    const before = posts.get(ids[at - 1] ?? "");
    if (before === undefined || before.create_at <= post.create_at) break;
    ids[at] = before.id;
  }
  ids[at] = post.id;
}

export function openStore(folder: string | null): Store {
  if (folder !== null) Deno.mkdirSync(`${folder}/files`, { recursive: true });
  const path = folder === null ? null : `${folder}/state.jsonl`;
  const lines = path === null ? [] : linesOf(path);
  const journal = openJournal(path);
  const byChannel = new Map<string, string[]>();
  const copies = new Map<string, string[]>();
  const byRoot = new Map<string, string[]>();
  const byPost = new Map<string, string[]>();
  const addTo = (map: Map<string, string[]>, key: string, id: string) => {
    const list = map.get(key);
    if (list === undefined) map.set(key, [id]);
    else list.push(id);
  };
  const posts = new Map<string, Post>();
  const bytes = new Map<string, Uint8Array>();
  const tables = {
    users: table<User>("users", new Map(), journal),
    tokens: table<Token>("tokens", new Map(), journal),
    channels: table<Channel>("channels", new Map(), journal),
    posts: table<Post>("posts", posts, journal, (post, before) => {
      if (before !== undefined) return;
      if (post.original_id !== "") return addTo(copies, post.channel_id, post.id);
      addTo(byChannel, post.channel_id, post.id);
      sink(byChannel.get(post.channel_id) ?? [], post, posts);
      if (post.root_id !== "") addTo(byRoot, post.root_id, post.id);
    }),
    reactions: table<Reaction>("reactions", new Map(), journal, (reaction, before) => {
      const { post_id, user_id, emoji_name } = reaction;
      if (before === undefined) addTo(byPost, post_id, `${post_id} ${user_id} ${emoji_name}`);
    }),
    files: table<FileInfo>("files", new Map(), journal),
    facts: table<number>("facts", new Map(), journal),
  };
  for (const line of lines) {
    const [name, key, row] = JSON.parse(line);
    const found = Object.entries(tables).find(([own]) => own === name);
    found?.[1].load(key, row);
  }
  return {
    ...tables,
    postsOf: (id) => byChannel.get(id) ?? [],
    copiesOf: (id) => copies.get(id) ?? [],
    reactionKeysOf: (id) => byPost.get(id) ?? [],
    repliesOf: (id) => byRoot.get(id) ?? [],
    putBytes: (id, content) => {
      if (folder === null) bytes.set(id, content);
      else Deno.writeFileSync(`${folder}/files/${id}`, content);
    },
    bytesOf: (id) => {
      if (folder === null) return bytes.get(id) ?? null;
      try {
        return Deno.readFileSync(`${folder}/files/${id}`);
      } catch (thrown) {
        if (thrown instanceof Deno.errors.NotFound) return null;
        throw thrown;
      }
    },
    close: () => journal.close(),
  };
}
