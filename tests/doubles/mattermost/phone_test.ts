// Guards the phone of the rehearsal: it shows what the bot posts and edits, and knows a failed step
// from one that was shown.
import { ok as assert, rejects, strictEqual } from "node:assert";
import { openPhone } from "./phone.ts";
import { rehearse } from "./phone_script.ts";
import { startRig } from "./rig.ts";

Deno.test("openPhone() speaks as the owner and shows posts, edits and removals", async () => {
  const { double, owner, bot, dm } = await startRig();
  await rejects(() => openPhone({ url: double.url, token: "wrong", channel: dm }), /refused/);
  const phone = await openPhone({ url: double.url, token: owner.token, channel: dm });
  try {
    const root = await phone.say("hello");
    strictEqual(double.post(root)?.user_id, owner.id);
    const draft = double.postAs(bot.id, { channel_id: dm, message: "Thinking", root_id: root });
    strictEqual((await phone.until("the draft", (post) => post.id === draft.id)).isEdited, false);
    double.editAs(bot.id, draft.id, { message: "Hello." });
    const answer = await phone.until("the answer", (post) => post.text === "Hello.");
    strictEqual(`${answer.id} ${answer.root} ${answer.isEdited}`, `${draft.id} ${root} true`);
    await phone.react(draft.id, "white_check_mark");
    strictEqual(double.reactionsOf(draft.id).length, 1);
    await phone.edit(root, "hello again");
    await phone.remove(root);
    assert(await phone.until("the removal", (post) => post.isDeleted) !== undefined);
    await rejects(() => phone.until("nothing", () => false, 10), /Never shown/);
  } finally {
    await phone.close();
    await double.stop();
  }
});

Deno.test("rehearse() is false when the bot answers wrongly, and true when all is shown", async () => {
  for (const isGood of [false, true]) {
    const { double, owner, bot, dm } = await startRig();
    const phone = await openPhone({ url: double.url, token: owner.token, channel: dm });
    const reply = (root: string, message: string, key = "c1") =>
      double.postAs(bot.id, {
        channel_id: dm,
        message,
        root_id: root,
        props: { boxmaker_out: key },
      });
    let asked = "";
    phone.onShown((post) => {
      if (!post.isOwn) return;
      const root = post.root === "" ? post.id : post.root;
      if (post.text === "hello") reply(root, "Hello.", "o1");
      if (post.text === "!help") reply(root, "!help, !approve CODE");
      if (post.text.startsWith("read ")) {
        asked = root;
        reply(root, "Answer: !approve abc123 or !deny abc123");
      }
      if (post.text === "!approve abc123" && root === asked) reply(root, "the file", "o2");
      if (post.text === "!approve abc123" && root !== asked) reply(root, "Another thread.");
      if (post.text === "!deny abc123") {
        reply(root, isGood ? "Denied; nothing was run." : "It ran.");
        reply(root, "It was denied.", "o3");
      }
    });
    try {
      const lines: string[] = [];
      strictEqual(await rehearse(phone, "/x", (line) => lines.push(line), 150), isGood);
      strictEqual(lines.filter((line) => line.startsWith("  NO ")).length, isGood ? 0 : 1);
    } finally {
      await phone.close();
      await double.stop();
    }
  }
});
