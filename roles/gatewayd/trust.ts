// Whose words a post is. Every condition must hold; names and texts prove nothing, and a property
// that says that something else wrote the post counts by being present, whatever its value.
import type { Post } from "./mattermost.ts";

/** The people and places of this channel, all by id. */
export interface Place {
  readonly owner: string;
  readonly self: string;
  /** The direct channel of the owner and the bot, made by the server, and the allowed channels. */
  readonly channels: readonly string[];
}

const FOREIGN = [
  "from_webhook",
  "from_bot",
  "from_plugin",
  "from_oauth_app",
  "override_username",
  "override_icon_url",
  "override_icon_emoji",
  "webhook_display_name",
];

/** Whether the owner typed the post, in a place that counts. */
export function isOwners(post: Post, place: Place): boolean {
  const props = post.props ?? {};
  return post.user_id === place.owner && place.owner !== place.self &&
    post.type === "" && post.delete_at === 0 && post.original_id === "" &&
    (post.remote_id ?? "") === "" &&
    !FOREIGN.some((key) => Object.hasOwn(props, key)) &&
    place.channels.includes(post.channel_id);
}

/** The name that the server gives to the direct channel of two people. */
export function directName(a: string, b: string): string {
  return [a, b].toSorted().join("__");
}

/** The text as it was typed: with an image proxy, `message` has its addresses instead. */
export function typedText(post: Post): string {
  return post.message_source ?? post.message;
}

/** The post that begins the thread. */
export function rootOf(post: Post): string {
  return post.root_id === "" ? post.id : post.root_id;
}
