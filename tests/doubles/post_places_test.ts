// Guards: a post in another thread than its message's is seen by every test of the channel.
import { match, strictEqual } from "node:assert";
import { startRig } from "./mattermost/rig.ts";
import { unsafePosts } from "./mattermost/safe_posts.ts";
import { rest } from "./mattermost/rig.ts";
import { placeByKey } from "./post_places.ts";

Deno.test("placeByKey() tells where answers, drafts, files and notices stand, and sees them elsewhere", async () => {
  const rig = await startRig();
  const { double, owner, bot, dm } = rig;
  try {
    const root = double.postAs(owner.id, { channel_id: dm, message: "one" }).id;
    const reply = double.postAs(owner.id, { channel_id: dm, message: "two", root_id: root }).id;
    const other = double.postAs(owner.id, { channel_id: dm, message: "three" }).id;
    const threadOf = placeByKey(double.post, (n) => n === 7 ? `mm-${root}` : undefined);
    for (
      const [key, at] of [
        [`d${root}`, root],
        [`d${reply}`, root],
        [`a${reply}`, root],
        [`e${reply}-5`, root],
        [`xa${reply}-0`, root],
        ["o7-5-0", root],
        ["o8-5-0", undefined],
        ["h5", ""],
        ["n5", undefined],
      ] as const
    ) strictEqual(threadOf("x", key), at, key);
    const send = (root_id: string, key: string) =>
      rest(rig, "POST", "/posts", {
        channel_id: dm,
        message: "x",
        root_id,
        pending_post_id: `${bot.id}:${key}`,
        props: { unsafe_links: "true", boxmaker_out: key },
      });
    await send(root, `d${reply}`);
    const faults = () => unsafePosts(double.traffic(), { botId: bot.id, threadOf }).join("\n");
    strictEqual(faults(), "");
    await send(other, `d${root}`);
    match(faults(), /stands under ".*" instead of ".*"/);
    double.deleteAs(owner.id, root);
    strictEqual(threadOf("x", `d${reply}`), undefined);
  } finally {
    await double.stop();
  }
});
