// Reactions: set once per person and name, told to the channel, and a bump of their post.
import { isMember } from "./channels.ts";
import { type Reaction, Refusal } from "./model.ts";
import { FORBIDDEN, INVALID_BODY } from "./posts.ts";
import type { World } from "./world.ts";

const keyOf = (userId: string, postId: string, name: string) => `${postId} ${userId} ${name}`;

export const reactionsOf = (world: World, postId: string): Reaction[] =>
  world.store.reactionKeysOf(postId).map((key) => world.store.reactions.get(key))
    .filter((one) => one !== undefined).filter((one) => one.delete_at === 0);

function tell(world: World, event: string, reaction: Reaction): void {
  world.emit({
    event,
    channelId: reaction.channel_id,
    data: { reaction: JSON.stringify(reaction) },
  });
  const post = world.store.posts.get(reaction.post_id);
  if (post !== undefined) world.store.posts.set(post.id, { ...post, update_at: world.tick() });
}

export function react(world: World, userId: string, postId: string, emoji: string): Reaction {
  const name = world.knobs().profile === "v10.11" ? emoji : emoji.toLowerCase();
  if (!/^[A-Za-z0-9_+-]{1,64}$/.test(name)) throw new Refusal(400, INVALID_BODY);
  const post = world.store.posts.get(postId);
  if (post === undefined || post.delete_at > 0) throw new Refusal(404, "app.post.get.app_error");
  if (!isMember(world, post.channel_id, userId)) throw new Refusal(403, FORBIDDEN);
  if (name.startsWith("no_such")) throw new Refusal(404, "app.emoji.get_by_name.no_result");
  const key = keyOf(userId, postId, name);
  const before = world.store.reactions.get(key);
  if (before !== undefined && before.delete_at === 0) return before;
  const names = new Set(reactionsOf(world, postId).map((one) => one.emoji_name));
  if (!names.has(name) && names.size >= world.knobs().reactionLimit) {
    throw new Refusal(400, "app.reaction.save.save.too_many_reactions");
  }
  const at = world.tick();
  const reaction: Reaction = {
    user_id: userId,
    post_id: postId,
    emoji_name: name,
    create_at: at,
    update_at: at,
    delete_at: 0,
    remote_id: "",
    channel_id: post.channel_id,
  };
  world.store.reactions.set(key, reaction);
  tell(world, "reaction_added", reaction);
  return reaction;
}

export function unreact(world: World, userId: string, postId: string, name: string): void {
  const key = keyOf(userId, postId, name);
  const before = world.store.reactions.get(key);
  if (before === undefined || before.delete_at > 0) return;
  const at = world.tick();
  const gone = { ...before, delete_at: at, update_at: at };
  world.store.reactions.set(key, gone);
  tell(world, "reaction_removed", gone);
}
