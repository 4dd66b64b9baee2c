// What a test may do to the double, in the words of a test: people, posts, faults, and what was seen.
// The same operations serve a double in this process and, over its control address, one in another.
import { addChannel, addUser, directChannel } from "./channels.ts";
import { addFile } from "./file_routes.ts";
import type { Hub } from "./hub.ts";
import { AT_REST, type Knobs, type RestFault, type SocketDrop } from "./knobs.ts";
import {
  type Channel,
  newId,
  type Post,
  type Props,
  type Reaction,
  Refusal,
  type User,
} from "./model.ts";
import { createPost, deletePost, type NewPost, patchPost, type PostChange } from "./posts.ts";
import { react, reactionsOf, unreact } from "./reactions.ts";
import type { TrafficEntry, TrafficRecord } from "./record.ts";
import type { FaultQueue } from "./rest_faults.ts";
import type { World } from "./world.ts";

export interface Operations {
  /** Makes a person or a bot; the roles default to an ordinary user's. */
  addUser(user: { username: string; isBot: boolean; roles?: string }): User;
  userNamed(username: string): User | null;
  /** A token for the user: the given text, or a fresh one. */
  addToken(userId: string, token?: string, expiresAtMs?: number): string;
  revokeToken(token: string): void;
  /** Disables (or enables) a user: all its sessions end. */
  setDisabled(userId: string, how: "disabled" | "enabled"): void;
  directChannel(one: string, other: string): Channel;
  addChannel(channel: { type: "O" | "P"; name: string; members: string[] }): Channel;
  setMembers(channelId: string, members: string[]): void;
  archiveChannel(channelId: string): void;

  /** Posts as this user, typed by hand; what the server vouches for may be set as well. */
  postAs(userId: string, post: NewPost): Post;
  /** A webhook that this user owns: posts as the user, under another name. */
  webhookPost(userId: string, post: NewPost & { username?: string }): Post;
  editAs(userId: string, postId: string, change: PostChange): Post;
  deleteAs(userId: string, postId: string): void;
  reactAs(userId: string, postId: string, emoji: string): Reaction;
  unreactAs(userId: string, postId: string, emoji: string): void;
  /** A file of this user's, ready to be named in `file_ids`; text is stored as UTF-8. */
  uploadAs(
    userId: string,
    file: { channelId: string; name: string; type: string; text: string },
  ): string;
  /** Removes a post without a trace or an event, as retention does. */
  purgePost(postId: string): void;

  /** The channel's posts as they now stand, oldest first; neither edit copies nor deleted ones. */
  postsIn(channelId: string): Post[];
  post(postId: string): Post | null;
  reactionsOf(postId: string): Reaction[];
  fileText(fileId: string): string | null;

  set(knobs: Partial<Knobs>): void;
  /** Puts every knob at rest (the profile and version as well) and forgets waiting faults. */
  calm(): void;
  fault(fault: RestFault): void;
  faultsLeft(): number;
  drop(how: SocketDrop, userId?: string): number;
  skipSeq(): void;
  /** An event of this name, numbered as all are: to the channel's members, to a user, or to all. */
  announce(
    event: string,
    data: Record<string, unknown>,
    to?: { channelId?: string; userId?: string },
  ): void;
  /** An event nobody knows, or any other envelope, to every socket. */
  sendRaw(text: string): void;
  forgetConnections(): void;
  reap(): void;
  overflow(): void;
  /** Live sockets that have signed in. */
  sockets(): number;
  /** A restart as clients see it: lines cut, connections and pending ids forgotten. */
  bounce(version?: string): void;
  traffic(from?: number): readonly TrafficEntry[];
}

export interface OperationParts {
  readonly world: World;
  readonly hub: Hub;
  readonly record: TrafficRecord;
  readonly faults: FaultQueue;
  readonly setKnobs: (knobs: Knobs) => void;
  readonly cutRequests: () => void;
  readonly forgetPending: () => void;
}

export function createOperations(parts: OperationParts): Operations {
  return { ...peopleOperations(parts), ...postOperations(parts), ...faultOperations(parts) };
}

function userIn(world: World, id: string): User {
  const user = world.store.users.get(id);
  if (user === undefined) throw new Refusal(404, "app.user.missing_account.const");
  return user;
}

function channelIn(world: World, id: string): Channel {
  const channel = world.store.channels.get(id);
  if (channel === undefined) throw new Refusal(404, "app.channel.get.existing.app_error");
  return channel;
}

function peopleOperations({ world }: OperationParts) {
  const { store } = world;
  return {
    addUser: (user: { username: string; isBot: boolean; roles?: string }) => addUser(world, user),
    userNamed: (name: string) =>
      [...store.users.all()].find((user) => user.username === name) ?? null,
    addToken: (userId: string, token = newId(), expiresAtMs = 0) => {
      const row = { token, user_id: userId, expires_at: expiresAtMs, isOauth: false };
      store.tokens.set(token, row);
      return token;
    },
    revokeToken: (token: string) => store.tokens.delete(token),
    setDisabled: (userId: string, how: "disabled" | "enabled") => {
      const at = world.tick();
      const delete_at = how === "disabled" ? at : 0;
      store.users.set(userId, { ...userIn(world, userId), update_at: at, delete_at });
    },
    directChannel: (one: string, other: string) => directChannel(world, one, other),
    addChannel: (channel: { type: "O" | "P"; name: string; members: string[] }) =>
      addChannel(world, channel),
    setMembers: (channelId: string, members: string[]) => {
      const channel = channelIn(world, channelId);
      store.channels.set(channelId, { ...channel, members });
      const tell = (event: string, user_id: string) =>
        world.emit({ event, data: { user_id, team_id: channel.team_id }, channelId });
      for (const id of members) if (!channel.members.includes(id)) tell("user_added", id);
      for (const userId of channel.members.filter((id) => !members.includes(id))) {
        tell("user_removed", userId);
        world.emit({ event: "user_removed", data: { channel_id: channelId }, userId });
      }
    },
    archiveChannel: (channelId: string) => {
      const channel = channelIn(world, channelId);
      const delete_at = world.tick();
      store.channels.set(channelId, { ...channel, delete_at });
      world.emit({
        event: "channel_deleted",
        data: { channel_id: channelId, delete_at },
        channelId,
      });
    },
  };
}

function postOperations({ world }: OperationParts) {
  const { store } = world;
  return {
    postAs: (userId: string, post: NewPost) =>
      createPost(world, userIn(world, userId), post, "server"),
    webhookPost: (userId: string, post: NewPost & { username?: string }) => {
      const { username, ...rest } = post;
      const shown: Props = username === undefined ? {} : { override_username: username };
      const props = { ...rest.props, from_webhook: "true", webhook_display_name: "hook", ...shown };
      return createPost(world, userIn(world, userId), { ...rest, props }, "server");
    },
    editAs: (userId: string, postId: string, change: PostChange) =>
      patchPost(world, userIn(world, userId), postId, change, "server"),
    deleteAs: (userId: string, postId: string) => deletePost(world, userIn(world, userId), postId),
    reactAs: (userId: string, postId: string, emoji: string) => react(world, userId, postId, emoji),
    unreactAs: (userId: string, postId: string, emoji: string) =>
      unreact(world, userId, postId, emoji),
    uploadAs: (
      userId: string,
      file: { channelId: string; name: string; type: string; text: string },
    ) => {
      const { text, ...rest } = file;
      return addFile(world, { ...rest, userId, bytes: new TextEncoder().encode(text) }).id;
    },
    purgePost: (postId: string) => store.posts.delete(postId),
    postsIn: (channelId: string) =>
      store.postsOf(channelId).map((id) => store.posts.get(id))
        .filter((post) => post !== undefined)
        .filter((post) => post.delete_at === 0 && post.original_id === ""),
    post: (postId: string) => store.posts.get(postId) ?? null,
    reactionsOf: (postId: string) => reactionsOf(world, postId),
    fileText: (fileId: string) => {
      const bytes = store.bytesOf(fileId);
      return bytes === null ? null : new TextDecoder().decode(bytes);
    },
  };
}

/** Knobs that are the server's own settings, of which it tells everybody. */
const CONFIGURED = ["maxPostSize", "postEditTimeLimitS", "linkPreviews", "typingIntervalMs"];

function faultOperations(parts: OperationParts) {
  const { world, hub, record, faults } = parts;
  const set = (knobs: Partial<Knobs>) => {
    parts.setKnobs({ ...world.knobs(), ...knobs });
    if (CONFIGURED.some((key) => key in knobs)) world.emit({ event: "config_changed", data: {} });
  };
  return {
    set,
    calm: () => {
      parts.setKnobs(AT_REST);
      faults.clear();
    },
    fault: (fault: RestFault) => faults.add(fault),
    faultsLeft: () => faults.count(),
    drop: (how: SocketDrop, userId?: string) => hub.drop(how, userId),
    skipSeq: () => hub.skipSeq(),
    announce: (
      event: string,
      data: Record<string, unknown>,
      to: { channelId?: string; userId?: string } = {},
    ) => world.emit({ event, data, ...to }),
    sendRaw: (text: string) => hub.sendRaw(text),
    forgetConnections: () => hub.forgetAll(),
    reap: () => hub.reap(),
    overflow: () => hub.overflow(),
    sockets: () => hub.lines(),
    bounce: (version?: string) => {
      if (version !== undefined) set({ version });
      hub.forgetAll();
      parts.forgetPending();
      parts.cutRequests();
    },
    traffic: (from = 0) => record.since(from),
  };
}
