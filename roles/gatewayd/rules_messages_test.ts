// The client rules 15 to 19 of the Mattermost contract: whose words count, what an edit and a deletion
// can do, and what it takes to answer a question.
import { deepStrictEqual, match, ok as isTrue, strictEqual } from "node:assert";
import { ApprovalId, SessionId, ulid } from "../../shared/ids/ids.ts";
import { systemRandom } from "../../shared/clock/random.ts";
import { gatewayHouse } from "../../tests/doubles/gatewayd.ts";
import type { NewPost } from "../../tests/doubles/mattermost/posts.ts";

type House = Awaited<ReturnType<typeof gatewayHouse>>;

const newApproval = () => ApprovalId.parse(`a-${ulid(1, systemRandom)}`);

function countOf(house: House, text: string | RegExp): number {
  return house.answers().filter(({ message }) =>
    typeof text === "string" ? message === text : text.test(message)
  ).length;
}

/** A house whose turns stay open until the test ends them. */
async function slowHouse(config: Record<string, unknown> = {}): Promise<House> {
  const house = await gatewayHouse({ config });
  house.loop.reply = () => null;
  return house;
}

/** Asks a question in a session; gives the ids of its posts. */
async function asked(
  house: House,
  session: string,
  lines = ["What?", "Answer: !approve abc123 or !deny abc123"],
) {
  const approval = newApproval();
  house.gateway().questions()?.ask({
    approval,
    session: SessionId.parse(session),
    expiresUnixMs: Date.now() + 60_000,
    lines,
  });
  const key = (i: number) => house.store().outboxRow(`q${approval}-${i}`);
  await house.until("asked", () => key(0)?.state === "done");
  return { approval, post: key(0)?.post ?? "" };
}

Deno.test("rule 15: only the owner's own words, typed in an allowed place, are taken", async () => {
  await using house = await gatewayHouse({ isSilent: true });
  await house.ready();
  const { double, owner, bot, dm } = house.rig;
  const stranger = double.addUser({ username: "stranger", isBot: false });
  const open = double.addChannel({
    type: "O",
    name: "town",
    members: [owner.id, bot.id, stranger.id],
  });
  const forged: NewPost[] = [
    ...[
      "from_webhook",
      "from_bot",
      "from_plugin",
      "from_oauth_app",
      "override_username",
      "override_icon_url",
      "override_icon_emoji",
      "webhook_display_name",
    ].map((key) => ({ channel_id: dm, message: `by ${key}`, props: { [key]: "" } })),
    { channel_id: dm, message: "/me waves", type: "me" },
    { channel_id: dm, message: "joined", type: "system_join_channel" },
    { channel_id: dm, message: "from afar", remote_id: "r".repeat(26) },
    { channel_id: open.id, message: "in a channel that is not allowed" },
  ];
  for (const post of forged) double.postAs(owner.id, post);
  double.webhookPost(owner.id, { channel_id: dm, message: "!stop", username: "owner" });
  double.postAs(stranger.id, { channel_id: open.id, message: "@owner says: !stop" });
  await house.until("counted", () => house.gateway().health.ignored() >= forged.length);
  deepStrictEqual(house.loop.taken, []);
  deepStrictEqual(house.loop.stops, []);
  match(house.gateway().summary(), /messages? of others ignored/);
  strictEqual(house.answers().length, 0);
});

Deno.test("rule 15: an allowed channel counts by its id, for the owner alone", async () => {
  const ids: string[] = [];
  await using house = await gatewayHouse({
    mattermost: { channels: ids },
    before: ({ double, owner, bot }) => {
      const members = [owner.id, bot.id, double.addUser({ username: "stranger", isBot: false }).id];
      ids.push(double.addChannel({ type: "P", name: "den", members }).id);
    },
  });
  await house.ready();
  const [den = ""] = ids;
  const { double, owner } = house.rig;
  const stranger = double.userNamed("stranger")?.id ?? "";
  double.postAs(stranger, { channel_id: den, message: "let me in" });
  const post = double.postAs(owner.id, { channel_id: den, message: "in the den" });
  await house.until(
    "answered",
    () =>
      double.postsIn(den).some((one) =>
        one.root_id === post.id && one.message === "Answer to: in the den"
      ),
  );
  strictEqual(house.loop.taken.length, 1);
});

Deno.test("rule 16: its own posts confirm delivery and are never taken", async () => {
  await using house = await gatewayHouse({ knobs: { echoLeadMs: 50 } });
  await house.ready();
  house.loop.reply = () => "!stop";
  const post = house.write("say it");
  await house.until("answered", () => house.thread(post.id).some((one) => one.message === "!stop"));
  await house.until("quiet", () => house.store().unsent() === 0);
  deepStrictEqual(house.loop.stops, []);
  strictEqual(house.loop.taken.length, 1);
});

Deno.test("rule 16: a post that came back is acknowledged though the answer to it was lost", async () => {
  await using house = await gatewayHouse();
  await house.ready();
  const post = house.write("first");
  await house.until("answered", () => countOf(house, "Answer to: first") === 1);
  await house.until("acknowledged", () => house.loop.pending() === 0);
  const [taken] = house.loop.taken;
  isTrue(taken !== undefined);
  house.rig.double.fault({
    method: "POST",
    path: "^/posts$",
    action: { kind: "lost", isCommitted: true },
  });
  house.loop.notice(taken.session, "A notice");
  await house.until("acknowledged", () => house.loop.pending() === 0);
  strictEqual(house.thread(post.id).filter((one) => one.message === "A notice").length, 1);
});

Deno.test("rule 17: the typed text counts, and a file without a word is a message", async () => {
  await using house = await gatewayHouse();
  await house.ready();
  const { double, owner, dm } = house.rig;
  double.postAs(owner.id, { channel_id: dm, message: "proxied", message_source: "as typed" });
  await house.until("typed", () => house.loop.taken[0]?.text === "as typed");
  const file = (name: string, text: string, type = "text/plain") =>
    double.uploadAs(owner.id, { channelId: dm, name, type, text });
  double.postAs(owner.id, {
    channel_id: dm,
    message: "",
    file_ids: [file("notes.txt", "the notes")],
  });
  await house.until("file", () => house.loop.taken.length === 2);
  match(
    house.loop.taken[1]?.text ?? "",
    /^\[attached file notes\.txt\]\nthe notes\n\[end of notes\.txt\]$/,
  );
  deepStrictEqual(house.loop.taken[1]?.label, { class: "private", untrusted: true });
  strictEqual(house.loop.taken[0]?.label, null);
  const ids = [file("a.png", "\u0000\u0001", "image/png"), file("big.txt", "x".repeat(300_000))];
  double.postAs(owner.id, { channel_id: dm, message: "look", file_ids: ids });
  await house.until(
    "declined",
    () =>
      countOf(house, /a\.png was not read: only text[\s\S]*big\.txt was not read: it has more/) ===
        1,
  );
  await house.until("look", () => house.loop.taken[2]?.text === "look");
  strictEqual(house.loop.taken[2]?.label, null);
  await house.until("both", () => countOf(house, "Answer to: look") === 1);
  strictEqual(countOf(house, /a\.png was not read/), 1);
  const only = [file("b.png", "\u0000", "image/png")];
  double.postAs(owner.id, { channel_id: dm, message: "", file_ids: only });
  await house.until("declined", () => countOf(house, /^b\.png was not read/) === 1);
  strictEqual(house.loop.taken.length, 3);
});

Deno.test("rule 18: a waiting message can be edited and deleted, a running one only told of", async () => {
  await using house = await slowHouse();
  await house.ready();
  const { double, owner } = house.rig;
  const first = house.write("one");
  await house.until("taken", () => house.loop.taken.length === 1);
  const second = house.write("two", first.id);
  const third = house.write("three", first.id);
  await house.until("waiting", () => double.reactionsOf(third.id).length === 1);
  double.editAs(owner.id, second.id, { message: "two, better" });
  double.deleteAs(owner.id, third.id);
  double.editAs(owner.id, first.id, { message: "!stop" });
  await house.until("told", () => countOf(house, /^The edit came after/) === 1);
  house.loop.finish(first.id, "done one");
  await house.until("next", () => house.loop.taken.length === 2);
  strictEqual(house.loop.taken[1]?.text, "two, better");
  house.loop.finish(second.id, "done two");
  await house.until("both", () => countOf(house, "done two") === 1);
  await house.until("unmarked", () => double.reactionsOf(second.id).length === 0);
  strictEqual(house.loop.taken.length, 2);
  deepStrictEqual(house.loop.stops, []);
});

Deno.test("rule 18: an edit of an old post is no instruction, and one that became an order is none", async () => {
  await using house = await slowHouse();
  await house.ready();
  const first = house.write("one");
  await house.until("taken", () => house.loop.taken.length === 1);
  const second = house.write("two", first.id);
  await house.until("waiting", () => house.rig.double.reactionsOf(second.id).length === 1);
  house.rig.double.editAs(house.rig.owner.id, second.id, { message: "!stop" });
  await house.until("edited", () => house.store().inboxRow(second.id)?.text === "!stop");
  house.loop.finish(first.id, "done");
  await house.until("told", () => countOf(house, /^An edited message is no order/) === 1);
  house.rig.double.editAs(house.rig.owner.id, first.id, { message: "!deny abc123" });
  await answeredSlowly(house, "later");
  strictEqual(house.loop.taken.length, 2);
  deepStrictEqual(house.loop.stops, []);
  deepStrictEqual(house.loop.answers, []);
});

async function answeredSlowly(house: House, message: string): Promise<void> {
  const post = house.write(message);
  await house.until("taken", () => house.loop.taken.some((one) => one.messageId === post.id));
  house.loop.finish(post.id, `done ${message}`);
  await house.until("done", () => countOf(house, `done ${message}`) === 1);
}

Deno.test("rule 18: a cancel that was written while nobody listened ends nothing written after it", async () => {
  await using house = await slowHouse();
  await house.ready();
  const root = house.write("first");
  await house.until("taken", () => house.loop.taken.length === 1);
  house.loop.finish(root.id, "done first");
  await house.until("answered", () => countOf(house, "done first") === 1);
  await house.stopGateway();
  house.write("!cancel", root.id);
  const next = house.write("next", root.id);
  house.startGateway();
  await house.until("told", () => countOf(house, /^Nothing is under way/) === 1);
  await house.until("taken", () => house.loop.taken.length === 2);
  house.loop.finish(next.id, "done next");
  await house.until("answered", () => countOf(house, "done next") === 1);
  deepStrictEqual(house.loop.cancelled, []);
});

Deno.test("rule 19: only an exact, unedited order of the owner answers a question, in a thread it names", async () => {
  await using house = await slowHouse();
  await house.ready();
  const { double, owner, dm } = house.rig;
  const first = house.write("do it");
  await house.until("taken", () => house.loop.taken.length === 1);
  const session = `mm-${first.id}`;
  const { approval } = await asked(house, session);
  const root = { channel_id: dm, root_id: first.id };
  double.webhookPost(owner.id, { ...root, message: "!approve abc123" });
  double.postAs(owner.id, { ...root, message: "`!approve abc123`" });
  double.postAs(owner.id, { ...root, message: "> !approve abc123" });
  const edited = house.write("wait", first.id);
  double.editAs(owner.id, edited.id, { message: "!approve abc123" });
  const elsewhere = house.write("!deny abc123");
  house.loop.outcome = "wrong_thread";
  await house.until(
    "elsewhere",
    () => house.thread(elsewhere.id).some((one) => /another thread/.test(one.message)),
  );
  deepStrictEqual(house.loop.answers, [
    { code: "abc123", answer: "deny", session: `mm-${elsewhere.id}`, approval: null },
  ]);
  house.loop.outcome = "approved";
  house.write(" !Approve  ABC123 ", first.id);
  await house.until("answered", () => house.loop.answers.length === 2);
  deepStrictEqual(house.loop.answers[1], {
    code: "ABC123",
    answer: "approve",
    session,
    approval: null,
  });
  house.gateway().questions()?.closed(approval, "approved");
  await house.until(
    "said",
    () => house.thread(first.id).some((one) => one.message === "Approved."),
  );
});

Deno.test("rule 19: an order that was edited before it was seen answers nothing", async () => {
  await using house = await gatewayHouse();
  await house.ready();
  const { double, owner } = house.rig;
  await house.stopGateway();
  const post = house.write("!approve abc124");
  double.editAs(owner.id, post.id, { message: "!approve abc123" });
  house.startGateway();
  await house.until("told", () => countOf(house, /edited answers no question/) === 1);
  deepStrictEqual(house.loop.answers, []);
});

Deno.test("rule 19: a session without a thread gets one for each question, and answers say which", async () => {
  await using house = await gatewayHouse();
  await house.ready();
  const session = `chat-${ulid(1, systemRandom)}`;
  const one = await asked(house, session);
  const two = await asked(house, session);
  strictEqual(house.rig.double.post(one.post)?.root_id, "");
  isTrue(one.post !== two.post);
  house.write("!deny abc123", two.post);
  await house.until("answered", () => house.loop.answers.length === 1);
  deepStrictEqual(house.loop.answers[0], {
    code: "abc123",
    answer: "deny",
    session,
    approval: two.approval,
  });
});

Deno.test("rule 19: a reaction answers only when it is allowed, by the owner, on the last post, once", async () => {
  for (const reactions of [false, true]) {
    await using house = await slowHouse({ approvals: { reactions } });
    await house.ready();
    const { double, owner, bot } = house.rig;
    const first = house.write("do it");
    await house.until("taken", () => house.loop.taken.length === 1);
    const { post, approval } = await asked(house, `mm-${first.id}`);
    double.reactAs(bot.id, post, "white_check_mark");
    double.reactAs(owner.id, post, "heart");
    double.reactAs(owner.id, first.id, "white_check_mark");
    double.reactAs(owner.id, post, "no_entry");
    double.reactAs(owner.id, post, "white_check_mark");
    house.write("and now?");
    await house.until("taken", () => house.loop.taken.length === 2);
    if (reactions) {
      await house.until("answered", () => house.loop.answers.length > 0);
      double.unreactAs(owner.id, post, "no_entry");
    }
    deepStrictEqual(
      house.loop.answers,
      reactions ? [{ code: "abc123", answer: "deny", session: `mm-${first.id}`, approval }] : [],
    );
  }
});

Deno.test("rule 19: a long question is several numbered posts, and the code stands in the last alone", async () => {
  await using house = await gatewayHouse({ knobs: { maxPostSize: 1_000 } });
  await house.ready();
  const lines = Array.from(
    { length: 40 },
    (_, i) => `line ${i} with \`\`\`\` and @all ${"x".repeat(60)}`,
  );
  const { approval } = await asked(house, `chat-${ulid(1, systemRandom)}`, [
    ...lines,
    "Answer: !approve abc123 or !deny abc123",
  ]);
  await house.until("all", () => house.store().unsent() === 0);
  const posts = house.answers().filter((one) => String(one.props.boxmaker_out).includes(approval));
  isTrue(posts.length > 3);
  const shown = posts.flatMap((one) => one.message.split("\n").slice(3, -1));
  deepStrictEqual(shown, [...lines, "Answer: !approve abc123 or !deny abc123"]);
  posts.forEach((one, i) => {
    match(one.message, new RegExp(`^Question, part ${i + 1} of ${posts.length}\n\n\`\`\`\`\`\n`));
    strictEqual(one.message.includes("abc123"), i === posts.length - 1);
  });
  for (const entry of house.rig.double.traffic()) {
    if (entry.kind === "request" && entry.path.endsWith("/patch")) {
      throw new Error("a question was edited");
    }
  }
});
