// The owner's phone, as far as a conversation needs it: a signed-in client of a Mattermost server
// that speaks in one direct channel and sees what the bot posts and edits there. It works against the
// double and against a real server alike.

/** A post as the phone shows it. */
export interface Shown {
  readonly id: string;
  readonly root: string;
  readonly isOwn: boolean;
  readonly text: string;
  readonly props: Readonly<Record<string, unknown>>;
  readonly isEdited: boolean;
  readonly isDeleted: boolean;
}

export interface Phone {
  /** Every post seen, oldest first, as it last was. */
  readonly posts: ReadonlyMap<string, Shown>;
  /** Top level without a root; the new post's id. */
  say(text: string, root?: string): Promise<string>;
  edit(postId: string, text: string): Promise<void>;
  remove(postId: string): Promise<void>;
  react(postId: string, emoji: string): Promise<void>;
  /** Told of each new, edited or deleted post; the phone's own as well. */
  onShown(listener: (post: Shown) => void): void;
  /** The first post, seen or to come, that holds; rejects after `withinMs`. */
  until(what: string, test: (post: Shown) => boolean, withinMs?: number): Promise<Shown>;
  close(): Promise<void>;
}

export interface PhoneOptions {
  /** `http://host:port`. */
  readonly url: string;
  readonly token: string;
  /** Id of the direct channel with the bot. */
  readonly channel: string;
}

type Row = Record<string, unknown>;

export async function openPhone(options: PhoneOptions): Promise<Phone> {
  const { url, token, channel } = options;
  const headers = { authorization: `Bearer ${token}` };
  const call = async (method: string, path: string, body?: unknown): Promise<Row> => {
    const reply = await fetch(`${url}/api/v4${path}`, {
      method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const json = await reply.json();
    if (!reply.ok) throw new Error(`The server refused ${method} ${path}: ${json.id}`);
    return json;
  };
  const me = `${(await call("GET", "/users/me")).id}`;
  const posts = new Map<string, Shown>();
  const listeners = new Set<(post: Shown) => void>();
  const show = (row: Row, isDeleted: boolean) => {
    if (row.channel_id !== channel) return;
    const post: Shown = {
      id: `${row.id}`,
      root: `${row.root_id}`,
      isOwn: row.user_id === me,
      text: `${row.message}`,
      props: Object(row.props),
      isEdited: Number(row.edit_at) > 0,
      isDeleted,
    };
    posts.set(post.id, post);
    for (const listener of listeners) listener(post);
  };
  const socket = new WebSocket(`${url.replace(/^http/, "ws")}/api/v4/websocket`, { headers });
  const opened = Promise.withResolvers<void>();
  const closed = Promise.withResolvers<void>();
  socket.onopen = () => opened.resolve();
  socket.onerror = () => opened.reject(new Error(`No WebSocket at ${url}`));
  socket.onclose = () => closed.resolve();
  socket.onmessage = (message) => {
    const { event, data } = JSON.parse(message.data);
    if (event === "posted" || event === "post_edited") show(JSON.parse(data.post), false);
    else if (event === "post_deleted") show(JSON.parse(data.post), true);
  };
  await opened.promise;
  return {
    posts,
    say: async (text, root = "") => {
      const pending_post_id = `${me}:${crypto.randomUUID()}`;
      const made = { channel_id: channel, message: text, root_id: root, pending_post_id };
      return `${(await call("POST", "/posts", made)).id}`;
    },
    edit: async (id, message) => void await call("PUT", `/posts/${id}/patch`, { message }),
    remove: async (id) => void await call("DELETE", `/posts/${id}`),
    react: async (post_id, emoji_name) =>
      void await call("POST", "/reactions", { user_id: me, post_id, emoji_name }),
    onShown: (listener) => void listeners.add(listener),
    until: (what, test, withinMs = 60_000) =>
      untilShown({ posts, listeners, what, test, withinMs }),
    close: async () => {
      socket.close();
      await closed.promise;
    },
  };
}

function untilShown(wait: {
  readonly posts: ReadonlyMap<string, Shown>;
  readonly listeners: Set<(post: Shown) => void>;
  readonly what: string;
  readonly test: (post: Shown) => boolean;
  readonly withinMs: number;
}): Promise<Shown> {
  const { posts, listeners, what, test, withinMs } = wait;
  const seen = [...posts.values()].find(test);
  if (seen !== undefined) return Promise.resolve(seen);
  return new Promise((resolve, reject) => {
    const end = () => {
      clearTimeout(timer);
      listeners.delete(look);
    };
    const look = (post: Shown) => {
      if (!test(post)) return;
      end();
      resolve(post);
    };
    const timer = setTimeout(() => {
      end();
      reject(new Error(`Never shown within ${withinMs} ms: ${what}`));
    }, withinMs);
    listeners.add(look);
  });
}
