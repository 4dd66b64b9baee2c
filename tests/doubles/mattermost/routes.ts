// The REST routes of the double, as a table: method, path, whether a session is needed, and what is
// done. Paths are after `/api/v4`; `:name` is one segment.
import { channelRoutes } from "./channel_routes.ts";
import type { RestAnswer, RouteCall } from "./exchange.ts";
import { fileRoutes } from "./file_routes.ts";
import { postRoutes } from "./post_routes.ts";
import type { PendingPosts } from "./pending_posts.ts";
import { reactionRoutes } from "./reaction_routes.ts";
import { userRoutes } from "./user_routes.ts";
import type { World } from "./world.ts";

export interface Route {
  readonly method: string;
  readonly path: string;
  readonly isOpen?: boolean;
  readonly run: (call: RouteCall) => RestAnswer | Promise<RestAnswer>;
}

export interface FoundRoute {
  readonly route: Route;
  readonly parts: ReadonlyMap<string, string>;
}

export function allRoutes(world: World, pending: PendingPosts): readonly Route[] {
  return [
    ...userRoutes(world),
    ...channelRoutes(world),
    ...postRoutes(world, pending),
    ...reactionRoutes(world),
    ...fileRoutes(world),
  ];
}

export function findRoute(
  routes: readonly Route[],
  method: string,
  path: string,
): FoundRoute | null {
  const segments = path.split("/");
  for (const route of routes) {
    if (route.method !== method) continue;
    const parts = matched(route.path.split("/"), segments);
    if (parts !== null) return { route, parts };
  }
  return null;
}

function matched(pattern: readonly string[], segments: readonly string[]) {
  if (pattern.length !== segments.length) return null;
  const parts = new Map<string, string>();
  for (const [at, want] of pattern.entries()) {
    const got = segments[at] ?? "";
    if (want.startsWith(":") && got !== "") parts.set(want.slice(1), decodeURIComponent(got));
    else if (want !== got) return null;
  }
  return parts;
}
