// Posts over REST.
import { delay } from "./delay.ts";
import { ownChannel } from "./channel_routes.ts";
import {
  bodyOf,
  count,
  flag,
  isRecord,
  listBody,
  type RestAnswer,
  type RouteCall,
  textIn,
  textsIn,
} from "./exchange.ts";
import { listChannel, type ListQuery, listThread } from "./listing.ts";
import { isMember, otherMember } from "./channels.ts";
import { type Post, Refusal } from "./model.ts";
import type { PendingPosts } from "./pending_posts.ts";
import { createPost, deletePost, FORBIDDEN, INVALID_BODY, patchPost, wirePost } from "./posts.ts";
import type { Route } from "./routes.ts";
import type { World } from "./world.ts";

function propsIn(body: Record<string, unknown>) {
  if (body.props === undefined || body.props === null) return undefined;
  if (!isRecord(body.props)) throw new Refusal(400, INVALID_BODY);
  return body.props;
}

function readable(world: World, call: RouteCall): Post {
  const post = world.store.posts.get(call.part("post"));
  if (post === undefined || post.delete_at > 0) throw new Refusal(404, "app.post.get.app_error");
  if (!isMember(world, post.channel_id, call.me.id)) throw new Refusal(403, FORBIDDEN);
  return post;
}

async function create(world: World, pending: PendingPosts, call: RouteCall): Promise<RestAnswer> {
  const body = bodyOf(call);
  if (textIn(body, "id") !== "") throw new Refusal(400, INVALID_BODY);
  if (body.silent === true || flag(call, "silent")) throw new Refusal(403, FORBIDDEN);
  const key = textIn(body, "pending_post_id");
  const madeId = pending.claim(key);
  const made = madeId === null ? undefined : world.store.posts.get(madeId);
  if (made !== undefined) return { status: 201, body: made, post: made, isEcho: true };
  try {
    await delay(world.knobs().createDelayMs);
    const post = createPost(world, call.me, {
      channel_id: textIn(body, "channel_id"),
      message: textIn(body, "message"),
      root_id: textIn(body, "root_id"),
      props: propsIn(body) ?? {},
      file_ids: textsIn(body, "file_ids"),
      pending_post_id: key,
      type: textIn(body, "type"),
    });
    pending.finish(key, post.id);
    await delay(world.knobs().echoLeadMs);
    return { status: 201, body: wirePost(world, post), post };
  } catch (thrown) {
    pending.release(key);
    throw thrown;
  }
}

function change(world: World, call: RouteCall, isWhole: boolean): RestAnswer {
  const body = bodyOf(call);
  const props = propsIn(body);
  const hasMessage = isWhole || typeof body.message === "string";
  const post = patchPost(world, call.me, call.part("post"), {
    ...(hasMessage ? { message: textIn(body, "message") } : {}),
    ...(props !== undefined || isWhole ? { props: props ?? {} } : {}),
    ...(typeof body.is_pinned === "boolean" ? { is_pinned: body.is_pinned } : {}),
  });
  return { status: 200, body: wirePost(world, post), post };
}

function list(world: World, call: RouteCall): RestAnswer {
  const channel = ownChannel(world, call, call.part("channel"));
  const since = call.request.query.get("since") ?? "";
  const query: ListQuery = {
    since: /^\d+$/.test(since) ? Number(since) : 0,
    after: call.request.query.get("after") ?? "",
    before: call.request.query.get("before") ?? "",
    page: count(call, "page", 0),
    perPage: count(call, "per_page", 60),
    skipThreads: flag(call, "skipFetchThreads"),
    rootsOnly: flag(call, "collapsedThreads"),
  };
  const answer = { status: 200, body: listChannel(world, channel.id, query) };
  if (world.knobs().pagesDrift && query.since === 0) drift(world, channel.id, call.me.id);
  return answer;
}

/** Somebody posts between two pages, so that the next page begins one later. */
function drift(world: World, channelId: string, readerId: string): void {
  const other = world.store.users.get(otherMember(world, channelId, readerId));
  if (other === undefined) return;
  createPost(world, other, { channel_id: channelId, message: "drift", type: "me" }, "server");
}

export function postRoutes(world: World, pending: PendingPosts): Route[] {
  return [
    { method: "POST", path: "/posts", run: (call) => create(world, pending, call) },
    {
      method: "POST",
      path: "/posts/ids",
      run: (call) => {
        const ids = listBody(call);
        if (ids.length === 0 || ids.length > 1000) throw new Refusal(400, INVALID_BODY);
        const posts = ids.map((id) => world.store.posts.get(id))
          .filter((post) => post !== undefined)
          .filter((post) => isMember(world, post.channel_id, call.me.id));
        return { status: 200, body: posts.map((post) => wirePost(world, post)) };
      },
    },
    {
      method: "GET",
      path: "/posts/:post",
      run: (call) => ({ status: 200, body: wirePost(world, readable(world, call)) }),
    },
    {
      method: "GET",
      path: "/posts/:post/thread",
      run: (call) => {
        if (count(call, "perPage", 0) > 200) {
          throw new Refusal(400, "api.context.invalid_url_param.app_error");
        }
        const post = readable(world, call);
        const isOrdered = call.request.query.get("direction") === "down";
        return { status: 200, body: listThread(world, post.root_id || post.id, isOrdered) };
      },
    },
    { method: "GET", path: "/channels/:channel/posts", run: (call) => list(world, call) },
    { method: "PUT", path: "/posts/:post", run: (call) => change(world, call, true) },
    { method: "PUT", path: "/posts/:post/patch", run: (call) => change(world, call, false) },
    {
      method: "DELETE",
      path: "/posts/:post",
      run: (call) => {
        deletePost(world, call.me, call.part("post"));
        return { status: 200, body: { status: "OK" } };
      },
    },
  ];
}
