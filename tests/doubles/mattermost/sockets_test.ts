// Guards the double's WebSocket against the contract: signing in, numbering, resuming, and every way
// a line is lost, evil case first.
import { deepStrictEqual, ok as assert, strictEqual } from "node:assert";
import type { MattermostOptions } from "./double.ts";
import { isEvent, type Json, rest, type Rig, startRig, wire } from "./rig.ts";

async function withRig(options: MattermostOptions, run: (rig: Rig) => Promise<void>) {
  const rig = await startRig(options);
  try {
    await run(rig);
  } finally {
    await rig.double.stop();
  }
}

const isReply = (seq: number) => (one: Json) => `${one.seq_reply}` === `${seq}`;
const seqs = (seen: readonly Json[]) =>
  seen.filter((one) => one.event !== undefined).map((one) => Number(`${one.seq}`));
const said = (rig: Rig, message: string) =>
  rig.double.postAs(rig.owner.id, { channel_id: rig.dm, message });
const hasPost = (text: string) => (one: Json) => `${one.data?.post}`.includes(`"${text}"`);
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

Deno.test("a socket without a good token is opened, told nothing and dropped", async () => {
  await withRig({ timeScale: 0.02 }, async (rig) => {
    const silent = wire(rig, "", { authorization: "Bearer wrong" });
    assert(await silent.hasOpened);
    said(rig, "secret");
    silent.send({ seq: 1, action: "ping" });
    strictEqual((await silent.closed).code, 0);
    deepStrictEqual(silent.seen, []);
    const bad = wire(rig, "", {});
    assert(await bad.hasOpened);
    bad.send({ seq: 1, action: "authentication_challenge", data: { token: "wrong" } });
    const closed = await bad.closed;
    strictEqual(`${closed.code} ${closed.wasClean}`, "0 false");
    const foreign = wire(rig, "", { origin: "https://evil.example" });
    strictEqual(await foreign.hasOpened, false);
    await foreign.closed;
    rig.double.set({ upgradeRefused: true });
    const refused = wire(rig);
    strictEqual(await refused.hasOpened, false);
    await refused.closed;
    rig.double.set({ upgradeRefused: false, closesAfterUpgrade: true });
    strictEqual((await wire(rig).closed).code, 0);
  });
});

Deno.test("a challenge is answered by hello and then OK, a second one by nothing", async () => {
  await withRig({}, async (rig) => {
    const socket = wire(rig, "", {});
    await socket.hasOpened;
    const challenge = { action: "authentication_challenge", data: { token: rig.bot.token } };
    socket.send({ seq: 1, ...challenge });
    assert(await socket.find(isReply(1)) !== null);
    strictEqual(`${socket.seen[0]?.event} ${socket.seen[1]?.status}`, "hello OK");
    socket.send({ seq: 2, ...challenge });
    socket.send({ seq: 3, action: "ping" });
    const pong = await socket.find(isReply(3));
    strictEqual(`${pong?.status} ${pong?.data?.text}`, "OK pong");
    assert(!socket.seen.some(isReply(2)));
    for (
      const [message, id] of [
        [{ seq: 0, action: "ping" }, "bad_seq"],
        [{ seq: 4, action: "" }, "no_action"],
        [{ seq: 5, action: "dance" }, "bad_action"],
      ] as const
    ) {
      socket.send(message);
      const failed = await socket.find((one) => `${one.error?.id}`.includes(id));
      strictEqual(`${failed?.status}`, "FAIL");
    }
    socket.sendText("{not json");
    strictEqual((await socket.closed).code, 0);
  });
});

Deno.test("a message over 8 KiB closes with 1009", async () => {
  await withRig({}, async (rig) => {
    const socket = wire(rig);
    await socket.find(isEvent("hello"));
    socket.sendText("x".repeat(9000));
    strictEqual((await socket.closed).code, 1009);
  });
});

Deno.test("drop() ends a line as a network or a server does", async () => {
  await withRig({}, async (rig) => {
    for (
      const [how, code, wasClean] of [
        ["fin", 0, false],
        ["rst", 0, false],
        ["empty-close", 1005, true],
        ["oversize-close", 1009, true],
      ] as const
    ) {
      const socket = wire(rig);
      await socket.find(isEvent("hello"));
      strictEqual(rig.double.drop(how, rig.bot.id), 1);
      deepStrictEqual(await socket.closed, { code, wasClean }, how);
    }
  });
});

Deno.test("drop() deaf and half-open: the line stays and says nothing true any more", async () => {
  await withRig({ timeScale: 0.005 }, async (rig) => {
    const deaf = wire(rig);
    await deaf.find(isEvent("hello"));
    rig.double.drop("deaf");
    said(rig, "unheard");
    deaf.send({ seq: 1, action: "ping" });
    const failed = await deaf.find(isReply(1));
    strictEqual(`${failed?.status} ${failed?.error?.status_code}`, "FAIL 401");
    assert(!deaf.seen.some(isEvent("posted")));
    await deaf.end();

    const half = wire(rig);
    await half.find(isEvent("hello"));
    const id = `${half.seen[0]?.data?.connection_id}`;
    rig.double.drop("half-open");
    half.send({ seq: 1, action: "ping" });
    said(rig, "into the void");
    // While the server holds the old line for good, it cannot be resumed.
    const early = wire(rig, `?connection_id=${id}&sequence_number=1`);
    const hello = await early.find(isEvent("hello"));
    assert(`${hello?.data?.connection_id}` !== id);
    await pause(600);
    const late = wire(rig, `?connection_id=${id}&sequence_number=1`);
    assert(await late.find(hasPost("into the void")) !== null);
    deepStrictEqual(half.seen.length, 1);
    await early.end();
    await late.end();
  });
});

Deno.test("a revoked token and a disabled bot leave a deaf socket", async () => {
  await withRig({}, async (rig) => {
    const { double, bot } = rig;
    const socket = wire(rig);
    await socket.find(isEvent("hello"));
    double.setDisabled(bot.id, "disabled");
    said(rig, "unheard");
    socket.send({ seq: 1, action: "ping" });
    strictEqual(`${(await socket.find(isReply(1)))?.status}`, "FAIL");
    double.setDisabled(bot.id, "enabled");
    double.revokeToken(bot.token);
    socket.send({ seq: 2, action: "ping" });
    strictEqual(`${(await socket.find(isReply(2)))?.status}`, "FAIL");
    deepStrictEqual(seqs(socket.seen), [0]);
    await socket.end();
  });
});

Deno.test("a resume by header replays what was missed; a stranger's or an odd one does not", async () => {
  await withRig({}, async (rig) => {
    const { double, owner } = rig;
    const first = wire(rig);
    const hello = await first.find(isEvent("hello"));
    const id = `${hello?.data?.connection_id}`;
    said(rig, "before");
    await first.find(hasPost("before"));
    double.drop("fin");
    await first.closed;
    said(rig, "while away");
    for (const query of [`?connection_id=${id}`, "?connection_id=short&sequence_number=1"]) {
      strictEqual((await wire(rig, query).closed).code, 0);
    }
    const other = wire(rig, `?connection_id=${id}&sequence_number=2`, {
      authorization: `Bearer ${owner.token}`,
    });
    strictEqual(`${(await other.find(isEvent("hello")))?.seq}`, "0");
    await other.end();
    const second = wire(rig, `?connection_id=${id}&sequence_number=1`);
    await second.find(hasPost("while away"));
    deepStrictEqual(seqs(second.seen), [1, 2]);
    await second.end();
    const lossless = wire(rig, `?connection_id=${id}&sequence_number=3`);
    await lossless.hasOpened;
    lossless.send({ seq: 1, action: "ping" });
    await lossless.find(isReply(1));
    deepStrictEqual(seqs(lossless.seen), []);
    await lossless.end();
    const lossy = wire(rig, `?connection_id=${id}&sequence_number=9`);
    const fresh = await lossy.find(isEvent("hello"));
    assert(`${fresh?.data?.connection_id}` !== id);
    await lossy.end();
    const corrupt = wire(rig, `?connection_id=${id}&sequence_number=0`);
    await corrupt.hasOpened;
    said(rig, "renumbered");
    strictEqual(`${(await corrupt.find(hasPost("renumbered")))?.seq}`, "0");
    await corrupt.end();
  });
});

Deno.test("a challenge never resumes, whatever its query says", async () => {
  await withRig({}, async (rig) => {
    const first = wire(rig);
    const id = `${(await first.find(isEvent("hello")))?.data?.connection_id}`;
    await first.end();
    const second = wire(rig, `?connection_id=${id}&sequence_number=1`, {});
    await second.hasOpened;
    const data = { token: rig.bot.token };
    second.send({ seq: 1, action: "authentication_challenge", data });
    assert(`${(await second.find(isEvent("hello")))?.data?.connection_id}` !== id);
    await second.end();
  });
});

Deno.test("a long absence, the reaper, a restart and an overflow each end a connection", async () => {
  await withRig({}, async (rig) => {
    const { double } = rig;
    for (
      const forget of [
        () => {
          for (let n = 0; n < 257; n++) said(rig, `m${n}`);
        },
        () => double.reap(),
        () => double.bounce("11.12.0"),
        () => double.forgetConnections(),
      ]
    ) {
      const first = wire(rig);
      const id = `${(await first.find(isEvent("hello")))?.data?.connection_id}`;
      double.drop("fin");
      await first.closed;
      forget();
      const second = wire(rig, `?connection_id=${id}&sequence_number=1`);
      const hello = await second.find(isEvent("hello"));
      assert(`${hello?.data?.connection_id}` !== id);
      await second.end();
    }
    strictEqual(
      (await rest(rig, "GET", "/users/me")).headers.get("x-version-id")?.slice(0, 8),
      "11.12.0.",
    );
    const slow = wire(rig);
    await slow.find(isEvent("hello"));
    double.overflow();
    strictEqual((await slow.closed).code, 1005);
  });
});

Deno.test("hello late or never, events twice, gaps, and things nobody knows", async () => {
  await withRig({ knobs: { helloWithheld: true } }, async (rig) => {
    const { double } = rig;
    const mute = wire(rig);
    await mute.hasOpened;
    mute.send({ seq: 1, action: "ping" });
    await mute.find(isReply(1));
    deepStrictEqual(seqs(mute.seen), []);
    await mute.end();
    double.set({ helloWithheld: false, helloDelayMs: 40 });
    const late = wire(rig);
    await late.hasOpened;
    late.send({ seq: 1, action: "ping" });
    await late.find(isReply(1));
    deepStrictEqual(seqs(late.seen), []);
    await late.find(isEvent("hello"));
    double.set({ eventsTwice: true });
    said(rig, "twice");
    await late.find((one) => `${one.seq}` === "2");
    double.set({ eventsTwice: false, unknownFields: true });
    double.skipSeq();
    said(rig, "after the gap");
    const gap = await late.find(hasPost("after the gap"));
    strictEqual(`${gap?.seq}`, "4");
    assert(gap !== null && "a_new_envelope_field" in gap);
    double.sendRaw(JSON.stringify({ event: "a_new_event", data: {}, broadcast: {}, seq: 5 }));
    assert(await late.find(isEvent("a_new_event")) !== null);
    double.set({ pingReplyWithheld: true });
    late.send({ seq: 2, action: "ping" });
    strictEqual(await late.find(isReply(2), 60), null);
    await late.end();
  });
});

Deno.test("the echo of a post may come before its 201", async () => {
  await withRig({ knobs: { echoLeadMs: 150 } }, async (rig) => {
    const socket = wire(rig);
    await socket.find(isEvent("hello"));
    const body = { channel_id: rig.dm, message: "mine", pending_post_id: `${rig.bot.id}:1` };
    let isAnswered = false;
    const answer = rest(rig, "POST", "/posts", body).then(() => isAnswered = true);
    await socket.find(hasPost("mine"));
    strictEqual(isAnswered, false);
    await answer;
    await socket.end();
  });
});

const OTHERS = [
  "typing",
  "channel_deleted",
  "channel_restored",
  "channel_converted",
  "channel_updated",
  "status_change",
];

Deno.test("each kind of event reaches the members of its channel, and no one else", async () => {
  await withRig({}, async (rig) => {
    const { double, owner, bot, dm } = rig;
    const socket = wire(rig);
    await socket.find(isEvent("hello"));
    const town = double.addChannel({ type: "O", name: "town", members: [owner.id] });
    double.postAs(owner.id, { channel_id: town.id, message: "elsewhere" });
    double.setMembers(town.id, [owner.id, bot.id]);
    assert(await socket.find(isEvent("user_added")) !== null);
    double.postAs(owner.id, { channel_id: town.id, message: "in `@boxmaker`" });
    const plain = await socket.find(isEvent("posted"));
    strictEqual(plain?.data?.mentions, undefined);
    double.postAs(owner.id, { channel_id: town.id, message: "hey @boxmaker" });
    const named = await socket.find(hasPost("hey @boxmaker"));
    strictEqual(`${named?.data?.mentions}`, JSON.stringify([bot.id]));
    const file = double.uploadAs(owner.id, {
      channelId: dm,
      name: "a",
      type: "text/plain",
      text: "x",
    });
    const post = double.postAs(owner.id, { channel_id: dm, message: "", file_ids: [file] });
    const withFile = await socket.find((one) => one.data?.otherFile !== undefined);
    strictEqual(`${withFile?.data?.otherFile}`, "true");
    double.reactAs(owner.id, post.id, "white_check_mark");
    const added = await socket.find(isEvent("reaction_added"));
    strictEqual(JSON.parse(`${added?.data?.reaction}`).emoji_name, "white_check_mark");
    double.unreactAs(owner.id, post.id, "white_check_mark");
    assert(await socket.find(isEvent("reaction_removed")) !== null);
    double.editAs(owner.id, post.id, { is_pinned: true });
    const pinned = await socket.find(isEvent("post_edited"));
    strictEqual(JSON.parse(`${pinned?.data?.post}`).edit_at, 0);
    const friend = double.addUser({ username: "friend", isBot: false });
    double.directChannel(friend.id, bot.id);
    assert(await socket.find(isEvent("direct_added")) !== null);
    for (const event of OTHERS) {
      double.announce(event, { of: event }, { channelId: dm });
      strictEqual(`${(await socket.find(isEvent(event)))?.data?.of}`, event);
    }
    double.announce("user_updated", { user: { id: owner.id } }, { userId: owner.id });
    double.announce("ephemeral_message", { post: "{}" }, { userId: bot.id });
    assert(await socket.find(isEvent("ephemeral_message")) !== null);
    strictEqual(await socket.find(isEvent("user_updated"), 1), null);
    double.set({ linkPreviews: false });
    assert(await socket.find(isEvent("config_changed")) !== null);
    const gone = double.postAs(owner.id, { channel_id: dm, message: "regretted" });
    double.deleteAs(owner.id, gone.id);
    const deleted = await socket.find(isEvent("post_deleted"));
    const earlier = JSON.parse(`${deleted?.data?.post}`);
    strictEqual(`${earlier.delete_at} ${earlier.message}`, "0 regretted");
    const hook = double.webhookPost(owner.id, { channel_id: dm, message: "as you", username: "x" });
    deepStrictEqual(
      Object.keys(hook.props).toSorted(),
      ["from_webhook", "override_username", "webhook_display_name"],
    );
    strictEqual(hook.user_id, owner.id);
    assert(!socket.seen.some(hasPost("elsewhere")));
    double.setMembers(town.id, [owner.id]);
    assert(await socket.find(isEvent("user_removed")) !== null);
    await socket.end();
  });
});
