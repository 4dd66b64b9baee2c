// Channels and who is in them, and the people themselves.
import { type Channel, type ChannelType, newId, Refusal, type User } from "./model.ts";
import type { World } from "./world.ts";

export function channelOf(world: World, id: string): Channel {
  const channel = world.store.channels.get(id);
  if (channel === undefined) throw new Refusal(404, "app.channel.get.existing.app_error");
  return channel;
}

export const isMember = (world: World, channelId: string, userId: string): boolean =>
  world.store.channels.get(channelId)?.members.includes(userId) === true;

export const otherMember = (world: World, channelId: string, userId: string): string =>
  world.store.channels.get(channelId)?.members.find((id) => id !== userId) ?? userId;

export function addChannel(
  world: World,
  channel: { readonly type: ChannelType; readonly name: string; readonly members: string[] },
): Channel {
  const at = world.tick();
  const isDirect = channel.type === "D" || channel.type === "G";
  const row: Channel = {
    id: newId(),
    type: channel.type,
    name: channel.name,
    display_name: isDirect ? "" : channel.name,
    team_id: isDirect ? "" : "team".padEnd(26, "x"),
    creator_id: channel.members[0] ?? "",
    create_at: at,
    update_at: at,
    delete_at: 0,
    last_post_at: 0,
    members: channel.members,
  };
  world.store.channels.set(row.id, row);
  return row;
}

/** The direct channel of two people; made when it is not there yet. */
export function directChannel(world: World, one: string, other: string): Channel {
  const name = [one, other].toSorted().join("__");
  for (const channel of world.store.channels.all()) if (channel.name === name) return channel;
  const channel = addChannel(world, { type: "D", name, members: [one, other] });
  world.emit({
    event: "direct_added",
    channelId: channel.id,
    data: { creator_id: one, teammate_id: other },
  });
  return channel;
}

export function addUser(
  world: World,
  user: { readonly username: string; readonly isBot: boolean; readonly roles?: string },
): User {
  for (const known of world.store.users.all()) {
    if (known.username === user.username) throw new Refusal(400, "app.user.save.username_exists");
  }
  const at = world.tick();
  const row: User = {
    id: newId(),
    username: user.username,
    first_name: "",
    roles: user.roles ?? "system_user",
    is_bot: user.isBot,
    bot_description: user.isBot ? "A bot of the double" : "",
    create_at: at,
    update_at: at,
    delete_at: 0,
  };
  world.store.users.set(row.id, row);
  return row;
}
