// Posts: making, changing and removing them, with the checks and side effects of the server.
import { newId, type Post, type Props, Refusal, type User } from "./model.ts";
import { mentionedNames } from "./mentions.ts";
import { channelOf, isMember, otherMember } from "./channels.ts";
import type { World } from "./world.ts";

export interface NewPost {
  readonly channel_id: string;
  readonly message: string;
  readonly root_id?: string;
  readonly props?: Props;
  readonly file_ids?: readonly string[];
  readonly pending_post_id?: string;
  readonly type?: string;
  readonly message_source?: string;
  readonly remote_id?: string;
}

/** What vouches for a post's props: an ordinary sender, or the server itself (webhooks and tests). */
export type Authority = "sender" | "server";

export const INVALID_BODY = "api.context.invalid_body_param.app_error";
export const FORBIDDEN = "api.context.permissions.app_error";

/** The post as JSON carries it; what it has of files and reactions is its metadata. */
export function wirePost(world: World, post: Post): Record<string, unknown> {
  const files = (post.file_ids ?? []).map((id) => world.store.files.get(id))
    .filter((file) => file !== undefined);
  const metadata: Record<string, unknown> = {};
  if (files.length > 0) metadata.files = files;
  const reactions = world.store.reactionKeysOf(post.id)
    .map((key) => world.store.reactions.get(key)).filter((one) => one?.delete_at === 0);
  if (reactions.length > 0) metadata.reactions = reactions;
  const extra = world.knobs().unknownFields ? { some_new_field: { deep: [1, null] } } : {};
  return { ...post, participants: null, metadata, ...extra };
}

function checkLength(world: World, message: string): void {
  if ([...message].length > world.knobs().maxPostSize) {
    throw new Refusal(400, "model.post.is_valid.message_length.app_error");
  }
}

function checkRoot(world: World, post: NewPost): void {
  if (post.root_id === undefined || post.root_id === "") return;
  const root = world.store.posts.get(post.root_id);
  if (root === undefined || root.delete_at > 0 || root.root_id !== "" || root.original_id !== "") {
    throw new Refusal(
      400,
      "api.post.create_post.root_id.app_error",
      "Invalid RootId parameter.",
    );
  }
  if (root.channel_id !== post.channel_id) {
    throw new Refusal(400, "api.post.create_post.channel_root_id.app_error");
  }
}

function checkChannel(world: World, author: User, channelId: string): void {
  const channel = world.store.channels.get(channelId);
  if (channel === undefined) throw new Refusal(400, INVALID_BODY);
  if (channel.delete_at > 0) {
    throw new Refusal(400, "api.post.create_post.can_not_post_to_deleted.error");
  }
  const isPoster = /\bpost:(?:all|channels)\b/.test(author.roles);
  if (!isPoster && !channel.members.includes(author.id)) throw new Refusal(403, FORBIDDEN);
  const { dmRestricted, profile } = world.knobs();
  if (dmRestricted && channel.type === "D" && profile !== "v10.11") {
    throw new Refusal(400, "api.post.create_post.can_not_post_in_restricted_dm.error");
  }
}

const FORGEABLE = /^(?:from_(?:webhook|bot|plugin|oauth_app)|override_.*|webhook_display_name)$/;

function propsFor(world: World, author: User, props: Props, authority: Authority): Props {
  const isStripping = world.knobs().profile === "v12" && authority === "sender";
  const kept = Object.entries(props).filter(([key]) => !isStripping || !FORGEABLE.test(key));
  return { ...Object.fromEntries(kept), ...(author.is_bot ? { from_bot: "true" } : {}) };
}

const hashtagsOf = (message: string) =>
  [...message.matchAll(/(?<!\S)#\p{L}[\p{L}\p{N}_-]+/gu)].map((found) => found[0]).join(" ");

/** Makes the post and tells the members; `Refusal` when the server would refuse. */
export function createPost(
  world: World,
  author: User,
  draft: NewPost,
  authority: Authority = "sender",
): Post {
  checkChannel(world, author, draft.channel_id);
  if (authority === "sender" && draft.type?.startsWith("system_") === true) {
    throw new Refusal(400, INVALID_BODY);
  }
  checkLength(world, draft.message);
  checkRoot(world, draft);
  if (draft.message === "" && (draft.file_ids ?? []).length === 0) {
    throw new Refusal(400, INVALID_BODY);
  }
  const at = world.tick();
  const id = newId();
  const files = attach(world, author, draft, id);
  const post: Post = {
    id,
    create_at: at,
    update_at: at,
    edit_at: 0,
    delete_at: 0,
    is_pinned: false,
    user_id: author.id,
    channel_id: draft.channel_id,
    root_id: draft.root_id ?? "",
    original_id: "",
    message: draft.message,
    type: draft.type ?? "",
    props: propsFor(world, author, draft.props ?? {}, authority),
    hashtags: hashtagsOf(draft.message),
    pending_post_id: "",
    reply_count: 0,
    last_reply_at: 0,
    ...(files.length > 0 ? { file_ids: files } : {}),
    ...(draft.message_source === undefined ? {} : { message_source: draft.message_source }),
    ...(draft.remote_id === undefined ? {} : { remote_id: draft.remote_id }),
  };
  world.store.posts.set(id, post);
  bumpRoot(world, post);
  const sent = { ...post, pending_post_id: draft.pending_post_id ?? "" };
  announce(world, author, sent);
  return sent;
}

function attach(world: World, author: User, draft: NewPost, postId: string): string[] {
  if (world.knobs().filesDropped) return [];
  const kept: string[] = [];
  for (const id of (draft.file_ids ?? []).slice(0, 10)) {
    const file = world.store.files.get(id);
    const fits = file?.post_id === "" && file.user_id === author.id &&
      file.channel_id === draft.channel_id;
    if (file === undefined || !fits) continue;
    world.store.files.set(id, { ...file, post_id: postId });
    kept.push(id);
  }
  return kept;
}

function bumpRoot(world: World, post: Post): void {
  const channel = channelOf(world, post.channel_id);
  world.store.channels.set(channel.id, { ...channel, last_post_at: post.create_at });
  const root = world.store.posts.get(post.root_id);
  if (root === undefined) return;
  world.store.posts.set(root.id, {
    ...root,
    reply_count: root.reply_count + 1,
    last_reply_at: post.create_at,
    update_at: post.create_at,
  });
}

function announce(world: World, author: User, post: Post): void {
  const channel = channelOf(world, post.channel_id);
  if (channel.delete_at > 0) return;
  const names = mentionedNames(post.message);
  const isWide = names.some((name) => ["all", "channel", "here"].includes(name));
  const files = post.file_ids ?? [];
  world.emit({
    event: "posted",
    channelId: channel.id,
    data: {
      channel_display_name: channel.type === "D" ? `@${author.username}` : channel.display_name,
      channel_name: channel.name,
      channel_type: channel.type,
      ...(files.length > 0 ? { otherFile: "true" } : {}),
      post: JSON.stringify(wirePost(world, post)),
      sender_name: `@${author.username}`,
      set_online: true,
      team_id: channel.team_id,
    },
    own: (userId) => {
      const name = world.store.users.get(userId)?.username ?? "";
      const isMeant = userId !== author.id &&
        (channel.type === "D" || isWide || names.includes(name));
      return isMeant ? { mentions: JSON.stringify([userId]) } : {};
    },
  });
}

export interface PostChange {
  readonly message?: string;
  readonly props?: Props;
  readonly is_pinned?: boolean;
  readonly file_ids?: readonly string[];
}

function changeable(world: World, author: User, postId: string): Post {
  const post = world.store.posts.get(postId);
  if (post === undefined || post.original_id !== "") throw new Refusal(403, FORBIDDEN);
  if (!isMember(world, post.channel_id, author.id)) throw new Refusal(403, FORBIDDEN);
  if (post.delete_at > 0 || post.type.startsWith("system_")) throw new Refusal(400, INVALID_BODY);
  return post;
}

/** Changes a post: an edit copy of the old one stays behind, members hear `post_edited`. */
export function patchPost(
  world: World,
  author: User,
  postId: string,
  change: PostChange,
  authority: Authority = "sender",
): Post {
  const post = changeable(world, author, postId);
  if (post.user_id !== author.id && change.message !== undefined) throw new Refusal(403, FORBIDDEN);
  const limit = world.knobs().postEditTimeLimitS;
  if (limit >= 0 && world.now() > post.create_at + world.scaled(limit * 1000)) {
    throw new Refusal(400, "api.post.update_post.permissions_time_limit.app_error");
  }
  if (change.message !== undefined) checkLength(world, change.message);
  const at = world.tick();
  const isEdit = change.message !== undefined || change.props !== undefined;
  const next: Post = {
    ...post,
    ...(change.message === undefined
      ? {}
      : { message: change.message, hashtags: hashtagsOf(change.message) }),
    ...(change.props === undefined
      ? {}
      : { props: patchedProps(world, author, post, change.props, authority) }),
    ...(change.is_pinned === undefined ? {} : { is_pinned: change.is_pinned }),
    update_at: at,
    edit_at: isEdit ? at : post.edit_at,
  };
  if (isEdit) keepHistory(world, post, at);
  world.store.posts.set(post.id, next);
  const channel = channelOf(world, post.channel_id);
  world.store.channels.set(channel.id, { ...channel, last_post_at: at });
  tell(world, "post_edited", next);
  return next;
}

/** Before v11 the new map stands alone; later the identity marks of the post come back. */
function patchedProps(
  world: World,
  author: User,
  post: Post,
  props: Props,
  authority: Authority,
): Props {
  const { profile } = world.knobs();
  if (profile === "v10.11" || authority === "server") return props;
  const marks = Object.entries(post.props).filter(([key]) => /^(?:from_.*|silent)$/.test(key));
  const given = profile === "v12" ? propsFor(world, author, props, "sender") : props;
  return { ...given, ...Object.fromEntries(marks) };
}

function keepHistory(world: World, post: Post, at: number): void {
  const id = newId();
  world.store.posts.set(id, { ...post, id, original_id: post.id, delete_at: at, update_at: at });
}

function tell(world: World, event: string, post: Post): void {
  const data = { post: JSON.stringify(wirePost(world, post)) };
  world.emit({ event, channelId: post.channel_id, data });
}

/** Removes a post, a root with its thread; one event per root. */
export function deletePost(world: World, by: User, postId: string): void {
  const post = world.store.posts.get(postId);
  if (post === undefined || post.delete_at > 0 || post.original_id !== "") {
    throw new Refusal(404, "app.post.get.app_error");
  }
  if (post.user_id !== by.id && !by.roles.includes("system_admin")) {
    throw new Refusal(403, FORBIDDEN);
  }
  const at = world.tick();
  const gone = post.root_id === "" ? [post.id, ...world.store.repliesOf(post.id)] : [post.id];
  for (const id of gone) {
    const one = world.store.posts.get(id);
    if (one === undefined || one.delete_at > 0) continue;
    world.store.posts.set(id, { ...one, delete_at: at, update_at: at });
  }
  tell(world, "post_deleted", post);
}

/** The name of the other side of a direct channel, for its display. */
export const directName = (world: World, channelId: string, userId: string): string =>
  world.store.users.get(otherMember(world, channelId, userId))?.username ?? "";
