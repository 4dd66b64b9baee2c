// Reactions over REST.
import { bodyOf, textIn } from "./exchange.ts";
import { Refusal } from "./model.ts";
import { FORBIDDEN } from "./posts.ts";
import { react, reactionsOf, unreact } from "./reactions.ts";
import type { Route } from "./routes.ts";
import type { World } from "./world.ts";

export function reactionRoutes(world: World): Route[] {
  return [
    {
      method: "POST",
      path: "/reactions",
      run: (call) => {
        const body = bodyOf(call);
        if (textIn(body, "user_id") !== call.me.id) throw new Refusal(403, FORBIDDEN);
        const reaction = react(
          world,
          call.me.id,
          textIn(body, "post_id"),
          textIn(body, "emoji_name"),
        );
        return { status: 200, body: reaction };
      },
    },
    {
      method: "GET",
      path: "/posts/:post/reactions",
      run: (call) => {
        const reactions = reactionsOf(world, call.part("post"));
        const isNull = reactions.length === 0 && world.knobs().reactionsNull;
        return { status: 200, body: isNull ? null : reactions };
      },
    },
    {
      method: "DELETE",
      path: "/users/:user/posts/:post/reactions/:name",
      run: (call) => {
        if (call.part("user") !== call.me.id) throw new Refusal(403, FORBIDDEN);
        unreact(world, call.me.id, call.part("post"), call.part("name"));
        return { status: 200, body: { status: "OK" } };
      },
    },
  ];
}
