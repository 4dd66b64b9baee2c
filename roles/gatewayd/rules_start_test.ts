// The client rules 1 to 14 of the Mattermost contract, each against the double: how the channel starts,
// asks, connects, falls and catches up.
import { deepStrictEqual, match, ok as isTrue, strictEqual } from "node:assert";
import { SessionId } from "../../shared/ids/ids.ts";
import { gatewayHouse } from "../../tests/doubles/gatewayd.ts";
import type { RequestEntry } from "../../tests/doubles/mattermost/record.ts";

type House = Awaited<ReturnType<typeof gatewayHouse>>;

const requests = (house: House) =>
  house.rig.double.traffic().filter((entry): entry is RequestEntry => entry.kind === "request");
const problems = (house: House) => house.gateway().health.problems().map((one) => one.code);

async function answered(house: House, message: string, root = ""): Promise<string> {
  const post = house.write(message, root);
  await house.until(`an answer to ${message}`, () => countOf(house, `Answer to: ${message}`) === 1);
  return post.id;
}

const upgrades = (house: House) =>
  house.rig.double.traffic().filter((one) => one.kind === "socket" && one.what === "upgraded")
    .length;

const sessionOf = (post: { readonly id: string }) => SessionId.parse(`mm-${post.id}`);

function countOf(house: House, text: string): number {
  return house.answers().filter((post) => post.message === text).length;
}

Deno.test("rule 1: the token goes in the Bearer header alone, and no action but ping is sent", async () => {
  await using house = await gatewayHouse();
  await house.ready();
  await answered(house, "one");
  for (const { headers, query } of requests(house)) {
    strictEqual(headers.authorization, "Bearer TOKEN");
    strictEqual(headers.cookie, undefined);
    strictEqual(headers.origin, undefined);
    isTrue(!query.includes("token"));
  }
  const actions = house.rig.double.traffic().filter((entry) => entry.kind === "socket");
  for (const { what, detail } of actions) {
    if (what === "action") match(detail, /ping/);
  }
});

Deno.test("rule 2: a token that is not a fit bot's opens no connection", async () => {
  for (const make of ["person", "admin"] as const) {
    await using house = await gatewayHouse({
      isSilent: true,
      before: ({ double, bot }) => {
        const bad = make === "person"
          ? double.addUser({ username: "someone", isBot: false })
          : double.addUser({ username: "boss", isBot: true, roles: "system_user system_admin" });
        double.revokeToken(bot.token);
        double.addToken(bad.id, bot.token);
      },
    });
    await house.until("named", () => problems(house).includes("channel-misconfigured"));
    strictEqual(house.rig.double.sockets(), 0);
    strictEqual(requests(house).some((entry) => entry.method === "POST"), false);
  }
});

Deno.test("rule 2: what is not as configured is told with the server's own error id", async () => {
  await using house = await gatewayHouse({
    isSilent: true,
    mattermost: { channels: ["c".repeat(26)] },
  });
  await house.ready();
  const [problem] = house.gateway().health.problems();
  strictEqual(problem?.code, "channel-misconfigured");
  match(problem?.detail ?? "", /cccc.*: 40[34] \S+app_error/);
});

Deno.test("rule 3: answers that are no JSON, cut off or of another type are survived", async () => {
  await using house = await gatewayHouse();
  await house.ready();
  for (const kind of ["truncated", "wrong-type"] as const) {
    house.rig.double.fault({ path: "^/posts$", action: { kind } });
    house.rig.double.fault({ path: "/patch$", action: { kind } });
    await answered(house, kind);
  }
  house.rig.double.fault({ times: 3, action: { kind: "proxy", status: 502, isCommitted: false } });
  await answered(house, "after a proxy");
  deepStrictEqual(problems(house).filter((code) => code !== "channel-unreachable"), []);
});

Deno.test("rule 3: what answers in the server's place loses no answer and no message", async () => {
  await using house = await gatewayHouse();
  await house.ready();
  const { double } = house.rig;
  const pages = [
    { kind: "proxy", status: 404, isCommitted: false },
    { kind: "redirect", location: "https://elsewhere.example/login" },
    { kind: "proxy", status: 404, isCommitted: true },
  ] as const;
  for (const [i, action] of pages.entries()) {
    double.fault({ path: "^/posts$", times: 2, action });
    double.fault({ path: "^/channels/.*/posts", times: 2, action });
    double.fault({ path: "/patch$", times: 2, action });
    double.drop("rst");
    await answered(house, `behind page ${i}`);
  }
  await house.until("right again", () => problems(house).length === 0);
  strictEqual(house.answers().length, pages.length);
});

Deno.test("rule 4: one refusal of the token on a connection that goes on is got over", async () => {
  await using house = await gatewayHouse();
  await house.ready();
  const id = "api.context.session_expired.app_error";
  house.rig.double.fault({ path: "^/posts$", action: { kind: "refuse", status: 401, id } });
  await answered(house, "refused once");
  await house.until("right again", () => problems(house).length === 0);
});

Deno.test("rule 4: a refused token stops all sending, is told, and is asked for slowly", async () => {
  await using house = await gatewayHouse();
  await house.ready();
  await answered(house, "before");
  house.rig.double.set({ sessionsInvalid: true });
  house.rig.double.drop("fin");
  await house.until("told", () => problems(house).includes("channel-token-refused"));
  const from = requests(house).length;
  const [first] = house.loop.taken;
  isTrue(first !== undefined);
  house.loop.notice(first.session, "A notice");
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  const asked = requests(house).slice(from);
  isTrue(asked.length <= 8, `${asked.length} requests`);
  for (const entry of asked) {
    isTrue(["/users/me", "/posts"].includes(entry.path) || entry.status === 401);
  }
  strictEqual(house.gateway().health.state(), "lost");
  house.rig.double.set({ sessionsInvalid: false });
  await answered(house, "after");
  await house.until("posted", () => countOf(house, "A notice") === 1);
  strictEqual(problems(house).includes("channel-token-refused"), false);
});

Deno.test("rule 5: a redirect is not followed and is told as a wrong address", async () => {
  let asked = 0;
  const other = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, () => {
    asked++;
    return new Response("hello");
  });
  try {
    await using house = await gatewayHouse({
      isSilent: true,
      before: ({ double }) =>
        double.fault({
          times: 2,
          action: { kind: "redirect", location: `http://127.0.0.1:${other.addr.port}/` },
        }),
    });
    await house.until("told", () => problems(house).includes("channel-misconfigured"));
    match(house.gateway().health.problems()[0]?.detail ?? "", /302|redirect/);
    await house.ready();
    strictEqual(asked, 0);
  } finally {
    await other.shutdown();
  }
});

Deno.test("rule 6: 429 is honoured by everything, and drafts and typing keep their distance", async () => {
  await using house = await gatewayHouse();
  await house.ready();
  house.rig.double.fault({
    path: "^/posts$",
    action: { kind: "limited", retryAfterS: 1, resetS: 1 },
  });
  house.rig.double.fault({
    path: "^/posts$",
    action: { kind: "limited", retryAfterS: null, resetS: 2 },
  });
  await answered(house, "limited");
  house.loop.reply = () => null;
  const post = house.write("long");
  await house.until("taken", () => house.loop.taken.length === 2);
  const from = performance.now();
  for (let i = 0; i <= 50; i++) {
    house.loop.state(sessionOf(post), { state: "reading", percent: i });
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  house.loop.finish(post.id, "done");
  await house.until("answered", () => countOf(house, "done") === 1);
  const edits = requests(house).filter((entry) => entry.path.endsWith("/patch"));
  // One in ten milliseconds, as every interval is a hundredth here, and the answer itself.
  const most = (performance.now() - from) / 10 + 3;
  isTrue(edits.length <= most, `${edits.length} edits where ${most} may be`);
  const lookUps = requests(house).filter((entry) => entry.path === "/users/me");
  isTrue(lookUps.length <= 2, `${lookUps.length} look-ups of the bot`);
});

Deno.test("rule 7: a deaf server, and one that answers no ping, is noticed and left", async () => {
  await using house = await gatewayHouse();
  await house.ready();
  house.rig.double.drop("deaf");
  await answered(house, "to a deaf one");
  house.rig.double.set({ pingReplyWithheld: true });
  await house.until("lost", () => house.gateway().health.state() === "lost");
  house.rig.double.set({ pingReplyWithheld: false });
  await answered(house, "to a quiet one");
});

Deno.test("rule 8: no hello in time means another try, and how a connection ends means nothing", async () => {
  await using house = await gatewayHouse({ knobs: { helloWithheld: true } });
  await new Promise((resolve) => setTimeout(resolve, 700));
  house.rig.double.set({ helloWithheld: false });
  await house.ready();
  for (const how of ["fin", "rst", "empty-close", "oversize-close", "half-open"] as const) {
    house.rig.double.drop(how);
    await answered(house, how);
  }
});

Deno.test("rule 9: it reconnects for ever, ever more slowly, and never twice at once", async () => {
  await using house = await gatewayHouse({ knobs: { upgradeRefused: true } });
  await house.until(
    "met",
    () => requests(house).some((entry) => entry.path === "/channels/direct"),
  );
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  isTrue(requests(house).length < 60, `${requests(house).length} requests in a storm`);
  house.rig.double.set({ upgradeRefused: false });
  await house.ready();
  await answered(house, "back");
  strictEqual(house.rig.double.sockets(), 1);
});

Deno.test("rule 10: no connection is resumed; a gap and each new one lead to a whole catch-up", async () => {
  await using house = await gatewayHouse();
  await house.ready();
  house.rig.double.skipSeq();
  await answered(house, "after a gap");
  house.rig.double.forgetConnections();
  await answered(house, "after a new id");
  house.rig.double.reap();
  house.rig.double.bounce("11.11.2");
  await answered(house, "after a restart");
  const sockets = house.rig.double.traffic().filter((entry) => entry.kind === "socket");
  for (const { what, detail } of sockets) {
    if (what === "upgraded") strictEqual(detail, "");
  }
  const readings = requests(house).filter((one) => /\/channels\/.*\/posts$/.test(one.path));
  isTrue(readings.length > upgrades(house));
});

Deno.test("rule 10: what a deaf server kept from the bot is read before what came after it", async () => {
  await using house = await gatewayHouse();
  await house.ready();
  const root = await answered(house, "first");
  for (const [late, next] of [["late 1", "next 1"], ["late 2", "next 2"]] as const) {
    house.rig.double.drop("deaf");
    const from = upgrades(house);
    house.write(late, root);
    await house.until("reconnected", () => upgrades(house) > from);
    await house.until("listening", () => house.rig.double.sockets() === 1);
    house.write(next, root);
    await house.until(next, () => countOf(house, `Answer to: ${next}`) === 1);
  }
  deepStrictEqual(
    house.loop.taken.map((one) => one.text),
    ["first", "late 1", "next 1", "late 2", "next 2"],
  );
});

Deno.test("rule 10: a new connection whose hello never came is not taken for the old one", async () => {
  await using house = await gatewayHouse();
  await house.ready();
  const root = await answered(house, "first");
  house.rig.double.set({ helloWithheld: true });
  const from = upgrades(house);
  house.rig.double.bounce();
  house.write("late", root);
  await house.until("reconnected", () => upgrades(house) > from);
  await house.until("listening", () => house.rig.double.sockets() === 1);
  house.write("next", root);
  await house.until("next", () => countOf(house, "Answer to: next") === 1);
  deepStrictEqual(house.loop.taken.map((one) => one.text), ["first", "late", "next"]);
});

Deno.test("rule 11: unknown events, fields and types, nulls and twins change nothing", async () => {
  await using house = await gatewayHouse({
    knobs: { unknownFields: true, eventsTwice: true, reactionsNull: true, profile: "v12" },
  });
  await house.ready();
  for (
    const odd of [
      '{"event":"from_the_future","data":{"x":[1]},"broadcast":null,"seq":1}',
      '{"event":"posted","data":{"post":"{not json"},"seq":2}',
      '{"event":"posted","data":null}',
      '{"event":"reaction_added","data":{"reaction":"null"}}',
      '{"status":"WHAT","seq_reply":99999}',
      "{}",
      "[]",
    ]
  ) house.rig.double.sendRaw(odd);
  const { double, owner, bot, dm } = house.rig;
  const ordered = { user_id: owner.id, channel_id: dm, message: "!stop", id: "e".repeat(26) };
  const post = JSON.stringify({ ...ordered, create_at: Date.now(), type: "system_ephemeral" });
  for (
    const event of [
      "ephemeral_message",
      "user_updated",
      "channel_converted",
      "channel_restored",
      "preferences_changed",
      "thread_updated",
      "posted_in_the_future",
    ]
  ) double.announce(event, { post, user: ordered }, { userId: bot.id });
  await answered(house, "still here");
  deepStrictEqual(house.loop.stops, []);
  await answered(house, "and again");
});

Deno.test("rule 12: what came while away is answered once, in order, from pages of its own size", async () => {
  await using house = await gatewayHouse();
  await house.ready();
  const root = await answered(house, "first");
  await house.stopGateway();
  for (let i = 0; i < 140; i++) house.write(`late ${i}`, root);
  house.startGateway();
  await house.until("all", () => house.loop.taken.length === 141);
  deepStrictEqual(
    house.loop.taken.slice(1).map((one) => one.text),
    Array.from({ length: 140 }, (_, i) => `late ${i}`),
  );
  for (const { path, query } of requests(house)) {
    if (!/^\/channels\/[a-z0-9]+\/posts$/.test(path)) continue;
    match(query, /per_page=128/);
    isTrue(!/collapsedThreads|since/.test(query), query);
  }
});

Deno.test("rule 13: the first start answers nothing old, and later ones go on from the cursor", async () => {
  await using house = await gatewayHouse({
    before: ({ double, owner, dm }) =>
      void double.postAs(owner.id, { channel_id: dm, message: "old" }),
  });
  await house.ready();
  await answered(house, "new");
  strictEqual(house.loop.taken.length, 1);
  await house.stopGateway();
  house.startGateway();
  await house.ready();
  house.rig.double.set({ clock: "same" });
  await answered(house, "same moment");
  house.rig.double.set({ clock: "backwards" });
  await answered(house, "clock went back");
  deepStrictEqual(house.loop.taken.map((one) => one.text), [
    "new",
    "same moment",
    "clock went back",
  ]);
});

Deno.test("rule 13: a server whose clock was far ahead at first is heard when it is right again", async () => {
  await using house = await gatewayHouse({
    knobs: { clock: "wall", aheadMs: 3_600_000 },
    before: ({ double, owner, dm }) =>
      void double.postAs(owner.id, { channel_id: dm, message: "old" }),
  });
  await house.ready();
  await answered(house, "ahead");
  house.rig.double.set({ aheadMs: 0 });
  const isTold = () => problems(house).includes("channel-clock-skew");
  await house.until("right", () => !isTold());
  await answered(house, "right again");
  await house.stopGateway();
  house.write("while away");
  house.startGateway();
  await house.until("caught up", () => countOf(house, "Answer to: while away") === 1);
  deepStrictEqual(house.loop.taken.map((one) => one.text), ["ahead", "right again", "while away"]);
});

Deno.test("rule 14: one post is one turn, by whatever way and however often it comes", async () => {
  await using house = await gatewayHouse({ knobs: { eventsTwice: true } });
  await house.ready();
  const root = await answered(house, "once");
  house.rig.double.drop("rst");
  await answered(house, "twice", root);
  await house.stopGateway();
  house.startGateway();
  await house.ready();
  house.rig.double.editAs(house.rig.owner.id, root, { message: "once, edited" });
  await answered(house, "thrice", root);
  deepStrictEqual(house.loop.taken.map((one) => one.text), ["once", "twice", "thrice"]);
});
