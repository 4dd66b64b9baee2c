// Users, the server's configuration and its pulse.
import { FORBIDDEN } from "./posts.ts";
import { listBody, type RouteCall } from "./exchange.ts";
import { Refusal, type User } from "./model.ts";
import type { Route } from "./routes.ts";
import type { World } from "./world.ts";

/** A user as JSON carries it: the bot marks only where they belong. */
function wireUser(user: User): Record<string, unknown> {
  const { bot_description, is_bot, ...rest } = user;
  return {
    ...rest,
    nickname: "",
    last_name: "",
    email: "",
    locale: "en",
    props: {},
    notify_props: { first_name: "false" },
    timezone: {},
    ...(is_bot ? { is_bot, bot_description } : {}),
  };
}

function config(world: World, call: RouteCall, isSignedIn: boolean): Record<string, string> {
  const knobs = world.knobs();
  if (knobs.profile === "v10.11" && call.request.query.get("format") !== "old") {
    throw new Refusal(501, "api.config.client.old_format.app_error");
  }
  const limited = { Version: knobs.version, BuildNumber: "1786900000", BuildHash: "7c2f9e" };
  if (!isSignedIn) return limited;
  return {
    ...limited,
    MaxPostSize: `${knobs.maxPostSize}`,
    PostEditTimeLimit: `${knobs.postEditTimeLimitS}`,
    EnableLinkPreviews: `${knobs.linkPreviews}`,
    TimeBetweenUserTypingUpdatesMilliseconds: `${knobs.typingIntervalMs}`,
    EnableUserTypingMessages: "true",
    MaxFileSize: `${knobs.maxFileSize}`,
    EnableFileAttachments: `${knobs.filesAllowed}`,
    CollapsedThreads: "always_on",
  };
}

export function userRoutes(world: World): Route[] {
  const found = (id: string) => {
    const user = world.store.users.get(id);
    if (user === undefined) throw new Refusal(404, "app.user.missing_account.const");
    return { status: 200, body: wireUser(user) };
  };
  return [
    {
      method: "GET",
      path: "/system/ping",
      isOpen: true,
      run: () => ({ status: 200, body: { status: "OK", ActiveSearchBackend: "database" } }),
    },
    {
      method: "GET",
      path: "/config/client",
      isOpen: true,
      run: (call) => ({ status: 200, body: config(world, call, call.me.id !== "") }),
    },
    {
      method: "GET",
      path: "/users/username/:name",
      run: (call) => {
        const name = call.part("name");
        const user = [...world.store.users.all()].find((one) => one.username === name);
        return found(user?.id ?? "");
      },
    },
    {
      method: "POST",
      path: "/users/ids",
      run: (call) => {
        const users = listBody(call).map((id) => world.store.users.get(id))
          .filter((user) => user !== undefined);
        return { status: 200, body: users.map(wireUser) };
      },
    },
    {
      method: "POST",
      path: "/users/:user/typing",
      run: (call) => {
        if (call.part("user") !== call.me.id) throw new Refusal(403, FORBIDDEN);
        if (world.knobs().isBusy) throw new Refusal(503, "api.context.server_busy.app_error");
        typing(world, call);
        return { status: 200, body: { status: "OK" } };
      },
    },
    { method: "GET", path: "/users/:user", run: (call) => found(call.part("user")) },
  ];
}

function typing(world: World, call: RouteCall): void {
  const body = call.request.body;
  const read = (key: string) => {
    const value = typeof body === "object" && body !== null
      ? Object.entries(body).find(([own]) => own === key)?.[1]
      : "";
    return typeof value === "string" ? value : "";
  };
  const channelId = read("channel_id");
  const isIn = world.store.channels.get(channelId)?.members.includes(call.me.id) === true;
  if (!isIn) throw new Refusal(403, FORBIDDEN);
  world.emit({
    event: "typing",
    channelId,
    data: { parent_id: read("parent_id"), user_id: call.me.id },
  });
}
