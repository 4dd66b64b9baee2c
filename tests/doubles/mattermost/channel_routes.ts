// Channels as a bot sees them: direct channels, membership, and "I have seen this".
import { directChannel, isMember } from "./channels.ts";
import { listBody, type RouteCall } from "./exchange.ts";
import { type Channel, Refusal } from "./model.ts";
import { FORBIDDEN, INVALID_BODY } from "./posts.ts";
import type { Route } from "./routes.ts";
import type { World } from "./world.ts";

const wireChannel = ({ members: _members, ...channel }: Channel) => ({
  ...channel,
  header: "",
  purpose: "",
  total_msg_count: 0,
  scheme_id: null,
  props: null,
});

/** The channel, for a member of it; unknown and foreign channels look alike. */
export function ownChannel(world: World, call: RouteCall, id: string): Channel {
  const channel = world.store.channels.get(id);
  if (channel === undefined) throw new Refusal(404, "app.channel.get.existing.app_error");
  if (!isMember(world, id, call.me.id)) throw new Refusal(403, FORBIDDEN);
  return channel;
}

const memberRow = (channelId: string, userId: string) => ({
  channel_id: channelId,
  user_id: userId,
  roles: "channel_user",
  last_viewed_at: 0,
  msg_count: 0,
  mention_count: 0,
  notify_props: {},
  last_update_at: 0,
});

export function channelRoutes(world: World): Route[] {
  return [
    {
      method: "POST",
      path: "/channels/direct",
      run: (call) => {
        const ids = listBody(call);
        const users = ids.map((id) => world.store.users.get(id));
        if (ids.length !== 2 || users.includes(undefined)) throw new Refusal(400, INVALID_BODY);
        if (!ids.includes(call.me.id)) throw new Refusal(403, FORBIDDEN);
        const channel = directChannel(world, ids[0] ?? "", ids[1] ?? "");
        return { status: 201, body: wireChannel(channel) };
      },
    },
    {
      method: "POST",
      path: "/channels/members/:user/view",
      run: () => ({ status: 200, body: { status: "OK", last_viewed_at_times: {} } }),
    },
    {
      method: "GET",
      path: "/channels/:channel",
      run: (call) => ({
        status: 200,
        body: wireChannel(ownChannel(world, call, call.part("channel"))),
      }),
    },
    {
      method: "GET",
      path: "/channels/:channel/members/:user",
      run: (call) => {
        const channel = ownChannel(world, call, call.part("channel"));
        if (!channel.members.includes(call.part("user"))) {
          throw new Refusal(404, "app.channel.get_member.missing.app_error");
        }
        return { status: 200, body: memberRow(channel.id, call.part("user")) };
      },
    },
    {
      method: "GET",
      path: "/users/:user/channels",
      run: (call) => {
        const own = [...world.store.channels.all()].filter((one) =>
          one.members.includes(call.me.id)
        );
        return { status: 200, body: own.map(wireChannel) };
      },
    },
    { method: "GET", path: "/users/:user/teams", run: () => ({ status: 200, body: [] }) },
  ];
}
