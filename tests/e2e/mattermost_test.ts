// Journeys 1 and 3 through Mattermost: the whole house under its real flags, with the double in the
// server's place and the owner on a phone.
import { match, ok as isTrue, strictEqual } from "node:assert";
import { type E2eHouse, e2eHouse, houseTest } from "../doubles/e2e_house.ts";
import type { Post } from "../doubles/mattermost/model.ts";
import { type Rig, startRig } from "../doubles/mattermost/rig.ts";
import { placeByKey } from "../doubles/post_places.ts";
import { assertSafePosts } from "../doubles/mattermost/safe_posts.ts";

interface Phone extends AsyncDisposable {
  /** An allowed channel in which a stranger is too. */
  readonly den: { readonly id: string; readonly stranger: string };
  readonly house: E2eHouse;
  readonly rig: Rig;
  write(message: string, root?: string): Post;
  thread(root: string): Post[];
  /** The first post of the bot in the thread that matches; waits for it. */
  see(root: string, what: RegExp): Promise<Post>;
  /** The code of the question in the thread. */
  code(root: string): Promise<string>;
}

async function phone(more = "", brokerd = ""): Promise<Phone> {
  const rig = await startRig();
  const { owner, bot } = rig;
  const stranger = rig.double.addUser({ username: "stranger", isBot: false });
  const members = [owner.id, bot.id, stranger.id];
  const den = rig.double.addChannel({ type: "P", name: "den", members });
  const folder = await Deno.makeTempDir({ prefix: "bxm" });
  await Deno.writeTextFile(`${folder}/token`, `${rig.bot.token}\n`, { mode: 0o600 });
  const gatewayd = `[mattermost]\nurl = "${rig.double.url}"\nowner_id = "${rig.owner.id}"\n` +
    `channels = ["${den.id}"]\n` +
    `token = { file = "${folder}/token" }\n[test]\ntimers_divided_by = 20\n${more}`;
  const house = await e2eHouse({ extra: { gatewayd, brokerd } });
  const thread = (root: string) =>
    [rig.dm, den.id].flatMap((channel) => rig.double.postsIn(channel)).filter((post) =>
      post.root_id === root && post.user_id === rig.bot.id
    );
  const made: Phone = {
    house,
    rig,
    den: { id: den.id, stranger: stranger.id },
    write: (message, root = "") =>
      rig.double.postAs(rig.owner.id, { channel_id: rig.dm, message, root_id: root }),
    thread,
    async see(root, what) {
      for (let i = 0; i < 1_200; i++) {
        const found = thread(root).find((post) => what.test(post.message));
        if (found !== undefined) return found;
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      const words = thread(root).map((post) => post.message).join("\n---\n");
      const log = await Deno.readTextFile(`${house.house.home}/logs/gatewayd.log`);
      throw new Error(`No ${what} in the thread:\n${words}\n${log}`);
    },
    async code(root) {
      const question = await made.see(root, /!approve [0-9a-z]{6} /);
      return /!approve ([0-9a-z]{6})/.exec(question.message)?.[1] ?? "";
    },
    async [Symbol.asyncDispose]() {
      const log = await Deno.readTextFile(`${house.house.home}/logs/gatewayd.log`);
      await house[Symbol.asyncDispose]();
      await rig.double.stop();
      await Deno.remove(folder, { recursive: true });
      strictEqual(log.includes(rig.bot.token), false, "the token is in gatewayd's log");
      const threadOf = placeByKey(rig.double.post);
      assertSafePosts(rig.double.traffic(), { botId: rig.bot.id, threadOf });
    },
  };
  await connected(made);
  return made;
}

async function connected({ house }: Phone): Promise<void> {
  for (let i = 0; i < 200; i++) {
    const { gatewayd } = await house.json("status");
    if (Object(gatewayd).channel === "connected") return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error("The channel did not connect");
}

houseTest(
  "mattermost, journey 1: a message is answered in its thread, over kills of the roles",
  async () => {
    await using one = await phone();
    const { house } = one;
    const first = one.write("hello");
    await one.see(first.id, /rehearsal model/);
    const second = one.write("hello again", first.id);
    await house.kill("gatewayd");
    await house.kill("loopd");
    for (let i = 0; i < 600 && one.thread(first.id).length < 2; i++) {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    await one.see(first.id, /rehearsal model/);
    const other = one.write("hello from another thread");
    await one.see(other.id, /rehearsal model/);
    const records = await house.records(`mm-${first.id}`);
    strictEqual(records.filter((record) => record.kind === "user").length, 2);
    strictEqual(one.thread(first.id).length, 2);
    strictEqual(one.thread(other.id).length, 1);
    isTrue(second.root_id === first.id);
    const { is_healthy } = await house.json("status");
    strictEqual(is_healthy, true);
  },
);

houseTest(
  "mattermost, journey 3: a question is answered from its thread and nowhere else",
  async () => {
    await using one = await phone();
    const { house, rig } = one;
    const asked = one.write(`read ${house.papers}/plan.txt`);
    const code = await one.code(asked.id);
    const elsewhere = one.write(`!approve ${code}`);
    await one.see(elsewhere.id, /another thread/);
    const root = { channel_id: rig.dm, root_id: asked.id };
    rig.double.webhookPost(rig.owner.id, {
      ...root,
      message: `!approve ${code}`,
      username: "owner",
    });
    rig.double.postAs(rig.owner.id, { ...root, message: `> !approve ${code}` });
    const edited = rig.double.postAs(rig.owner.id, { ...root, message: "a moment" });
    rig.double.editAs(rig.owner.id, edited.id, { message: `!approve ${code}` });
    one.write("!approve zzzzzz", asked.id);
    await one.see(asked.id, /no question with this code/);
    strictEqual((await house.json("approvals")).approvals instanceof Array, true);
    strictEqual(Object((await house.json("approvals")).approvals).length, 1);
    one.write(`!approve ${code.toUpperCase()}`, asked.id);
    await one.see(asked.id, /^Approved\.$/);
    await one.see(asked.id, /fill the tanks/);
    one.write(`!approve ${code}`, asked.id);
    await one.see(asked.id, /answered before/);
  },
);

houseTest("mattermost, journey 3: a question expires, and is denied, in its thread", async () => {
  await using one = await phone("", "[approvals]\nexpires_s = 10\n");
  const { house } = one;
  const first = one.write(`read ${house.papers}/plan.txt`);
  const denied = await one.code(first.id);
  one.write(`!deny ${denied}`, first.id);
  await one.see(first.id, /^Denied/);
  const second = one.write(`read ${house.papers}/plan.txt`);
  await one.code(second.id);
  await one.see(second.id, /^Expired/);
});

houseTest(
  "mattermost, journey 3: a question of bxctl's own chat gets a thread, and a reaction answers",
  async () => {
    await using one = await phone("[approvals]\nreactions = true\n");
    const { house, rig } = one;
    const asked = house.chat(`read ${house.papers}/plan.txt`);
    const question = await house.question();
    let post: Post | undefined;
    for (let i = 0; i < 600 && post === undefined; i++) {
      post = rig.double.postsIn(rig.dm).find((one) => one.message.includes(question.code));
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    isTrue(post !== undefined, "the question was not posted");
    strictEqual(post.root_id, "");
    rig.double.reactAs(rig.owner.id, post.id, "white_check_mark");
    await one.see(post.id, /^Approved\.$/);
    match((await asked).text, /fill the tanks/);
  },
);

houseTest(
  "mattermost, journey 3: nobody but the owner answers in a channel, and no reaction while they are off",
  async () => {
    await using one = await phone();
    const { house, rig, den } = one;
    const { double, owner } = rig;
    const write = (by: string, message: string, root = "") =>
      double.postAs(by, { channel_id: den.id, message, root_id: root });
    const asked = write(owner.id, `read ${house.papers}/plan.txt`);
    const code = await one.code(asked.id);
    write(den.stranger, `!approve ${code}`, asked.id);
    write(den.stranger, `read ${house.papers}/plan.txt`);
    double.webhookPost(den.stranger, {
      channel_id: den.id,
      root_id: asked.id,
      message: `!approve ${code}`,
      username: "owner",
    });
    for (const post of one.thread(asked.id)) {
      for (const by of [owner.id, den.stranger]) double.reactAs(by, post.id, "white_check_mark");
    }
    // What the owner writes after all of it is answered, so all of it has been seen.
    write(owner.id, "!jobs", asked.id);
    await one.see(asked.id, /^There are no jobs/);
    strictEqual(Object((await house.json("approvals")).approvals).length, 1);
    const records = await house.records(`mm-${asked.id}`);
    strictEqual(records.filter((record) => record.kind === "tool_result").length, 0);
    write(owner.id, `!deny ${code}`, asked.id);
    await one.see(asked.id, /^Denied; nothing was run\.$/);
    const roots = double.postsIn(den.id).filter((post) => post.user_id === rig.bot.id)
      .map((post) => post.root_id);
    strictEqual([...new Set(roots)].join(), asked.id);
  },
);
