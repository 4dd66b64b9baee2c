// The double's wire, as a plain client sees it: REST shapes, events, and what each call refuses.
import { deepStrictEqual as assertEquals, ok as assert } from "node:assert";
import { isEvent, rest, startRig, wire } from "./rig.ts";

Deno.test("startMattermostDouble() carries a post from the owner to the bot and an answer back", async () => {
  const rig = await startRig();
  const { double, owner, bot, dm } = rig;
  const socket = wire(rig);
  const hello = await socket.find(isEvent("hello"));
  assertEquals(`${hello?.seq}`, "0");
  const post = double.postAs(owner.id, { channel_id: dm, message: "check the backups" });
  const posted = await socket.find(isEvent("posted"));
  assertEquals(`${posted?.data?.mentions}`, JSON.stringify([bot.id]));
  assertEquals(JSON.parse(`${posted?.data?.post}`).id, post.id);
  const made = await rest(rig, "POST", "/posts", {
    channel_id: dm,
    root_id: post.id,
    message: "All well.",
    props: { unsafe_links: "true" },
    pending_post_id: `${bot.id}:1`,
  });
  assertEquals(made.status, 201);
  const echo = await socket.find((one) => `${one.data?.post}`.includes(`${made.json.id}`));
  assertEquals(JSON.parse(`${echo?.data?.post}`).pending_post_id, `${bot.id}:1`);
  assert(echo?.data?.mentions === undefined);
  const edited = await rest(rig, "PUT", `/posts/${made.json.id}/patch`, {
    message: "All is well.",
  });
  assertEquals(`${edited.json.message}`, "All is well.");
  assert(await socket.find(isEvent("post_edited")) !== null);
  const list = await rest(rig, "GET", `/channels/${dm}/posts?since=1`);
  assertEquals(list.headers.get("content-type"), "application/json");
  await socket.end();
  await double.stop();
});
