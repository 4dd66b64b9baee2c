// Guards the README's sentences on sessions: order, queues, restarts, damage, the self-test, and who
// may see and say what.
import { deepStrictEqual, ok as assert, strictEqual } from "node:assert";
import { systemClock } from "../../shared/clock/clock.ts";
import { seededRandom } from "../../shared/clock/random.ts";
import { denoDisk } from "../../shared/disk/deno_disk.ts";
import { type Disk, DiskError } from "../../shared/disk/disk.ts";
import { sha256Hex } from "../../shared/tool/digest.ts";
import { ApprovalId, SessionId, ulid } from "../../shared/ids/ids.ts";
import { call as ask } from "../../shared/wire/dial.ts";
import {
  OUTBOX_ACK,
  OUTBOX_FETCH,
  SESSION_VERIFY,
  SESSIONS_LIST,
  TURN_SUBMIT,
} from "../../shared/wire/loop.ts";
import { MessageId } from "../../shared/ids/ids.ts";
import {
  collectEvents,
  type HouseOptions,
  type LoopdHouse,
  newSession,
  startLoopdHouse,
  value,
} from "../../tests/doubles/loopd_house.ts";
import { call, inOrder, say, type Script, speak, waitFor } from "../../tests/doubles/llama/turn.ts";
import { asked, hurried, until } from "../../tests/doubles/loopd_rig.ts";

const session = newSession();
const passing: Script = (request) => {
  const last = request.messages.at(-1);
  return last?.content.includes("Call the tool clock")
    ? speak(call("clock", {}))
    : speak(say(`You said: ${last?.content}`));
};

function houseTest(
  name: string,
  options: HouseOptions,
  body: (house: LoopdHouse) => Promise<void>,
): void {
  Deno.test(name, async () => {
    const house = await startLoopdHouse(options);
    try {
      house.llama.script(passing);
      await body(house);
    } finally {
      await house.stop();
    }
  });
}

const logPath = (house: LoopdHouse, id = session) => `${house.home}/sessions/${id}/0.jsonl`;
const owner = (house: LoopdHouse) => `${house.home}/run/owner.sock`;

houseTest("submit() refuses a session whose log was shortened, and says so", {}, async (house) => {
  await house.say(session, "one");
  await house.restart();
  const path = logPath(house);
  const lines = (await Deno.readTextFile(path)).split("\n");
  await Deno.writeTextFile(path, lines.slice(0, -2).join("\n") + "\n");
  const refused = await house.submit(session, "two");
  strictEqual(refused.ok ? "ok" : refused.code, "session-damaged");
  const verified = value(await ask(owner(house), SESSION_VERIFY, { session })).body;
  assert(!verified.is_whole && verified.finding.includes("shorter_than_head"), verified.finding);
  const listed = value(await ask(owner(house), SESSIONS_LIST, { before: null, limit: 5 })).body;
  deepStrictEqual(listed.items.map((one) => one.state), ["damaged"]);
});

const DAMAGE: readonly (readonly [name: string, change: (text: string) => string])[] = [
  ["an edited word", (text) => text.replace("You said: one", "You said: two")],
  ["two records fused", (text) => text.replace(/\n(?=.*"kind":"turn_end")/, "")],
  ["NUL bytes", (text) => text.slice(0, -40) + "\0".repeat(40) + text.slice(-40)],
  ["a newer version", (text) => text.replace('{"v":1,"n":1,', '{"v":2,"n":1,')],
  ["a record removed", (text) => text.split("\n").toSpliced(1, 1).join("\n")],
];
for (const [name, change] of DAMAGE) {
  houseTest(`openSession() names ${name} instead of going on`, {}, async (house) => {
    await house.say(session, "one");
    await house.restart();
    const before = await Deno.readTextFile(logPath(house));
    const changed = change(before);
    assert(changed !== before);
    await Deno.writeTextFile(logPath(house), changed);
    const refused = await house.submit(session, "two");
    strictEqual(refused.ok ? "ok" : refused.code, "session-damaged");
    strictEqual(await Deno.readTextFile(logPath(house)), changed, "nothing is rewritten");
    strictEqual((await house.say(newSession(2), "others go on")).kind, "reply");
  });
}

houseTest(
  "openSession() cuts a line that was never acknowledged, and records it",
  {},
  async (house) => {
    await house.say(session, "one");
    await house.restart();
    await Deno.writeTextFile(logPath(house), '{"v":1,"n":9,"prev":"', { append: true });
    strictEqual((await house.say(session, "two")).text, "You said: two");
    const notice = house.records(session).find((r) => r.kind === "notice");
    assert(notice?.kind === "notice" && notice.code === "session-repaired");
    const told = await house.item((item) => item.code === "session-repaired");
    assert(told.text.includes("21 unfinished bytes"), told.text);
    assert(value(await ask(owner(house), SESSION_VERIFY, { session })).body.is_whole);
  },
);

houseTest(
  "submit() queues messages of one session and answers them in order",
  {},
  async (house) => {
    const gate = Promise.withResolvers<void>();
    await house.say(session, "warm");
    house.llama.script((request) =>
      speak(waitFor(gate.promise), say(`You said: ${request.messages.at(-1)?.content}`))
    );
    const turns: string[] = [];
    for (const text of ["one", "two", "three"]) {
      turns.push(value(await house.submit(session, text)).body.turn);
    }
    gate.resolve();
    await house.item((item) => item.turn === turns[2]);
    const kinds = house.records(session).flatMap((r) => r.kind === "assistant" ? [r.content] : []);
    deepStrictEqual(kinds.slice(1), ["You said: one", "You said: two", "You said: three"]);
    const bodies = house.llama.record.filter((one) => one.path.endsWith("completions")).slice(-3);
    const roles = bodies.map((one) =>
      JSON.parse(one.bodyText).messages.map((m: { role: string }) => m.role[0]).join("")
    );
    deepStrictEqual(roles, ["suaua"].flatMap(() => ["suau", "suauau", "suauauau"]));
  },
);

houseTest("submit() refuses more turns than may wait", {
  config: { sessions: { queued_turns: 1 } },
}, async (house) => {
  const gate = Promise.withResolvers<void>();
  await house.say(session, "warm");
  house.llama.script(() => speak(waitFor(gate.promise), say("ok")));
  const first = value(await house.submit(session, "one")).body.turn;
  await until(() => house.llama.record.at(-1)?.firstByteMs !== null);
  const second = value(await house.submit(session, "two")).body.turn;
  const third = await house.submit(session, "three");
  strictEqual(third.ok ? "ok" : third.code, "queue-full");
  gate.resolve();
  for (const turn of [first, second]) await house.item((item) => item.turn === turn);
});

houseTest(
  "runTurn() leaves its slot while it waits for the owner, so others are answered",
  {},
  async (house) => {
    const gate = Promise.withResolvers<void>();
    const approval = ApprovalId.parse(`a-${ulid(1, seededRandom(9))}`);
    house.broker.tool("clock", { run: () => ({ output: "noon" }), until: gate.promise, approval });
    await house.say(session, "warm");
    house.llama.script((request) => {
      const last = request.messages.at(-1);
      return last?.role === "user" && last.content === "time"
        ? speak(call("clock", {}))
        : speak(say(`Now: ${last?.content}`));
    });
    const watched = collectEvents(house);
    const { turn } = value(await house.submit(session, "time")).body;
    await until(() =>
      watched.events.some((one) =>
        one.kind === "turn_state" && one.body.state === "waiting_approval" &&
        one.body.approval === approval
      )
    );
    strictEqual((await house.say(newSession(2), "quick")).text, "Now: quick");
    gate.resolve();
    assert((await house.item((item) => item.turn === turn)).text.includes("noon"));
    await watched.stop();
  },
);

houseTest("recover() takes up a turn that was never answered, and one in the middle of its calls", {
  brokerGiveUpMs: 20_000,
}, async (house) => {
  const gate = Promise.withResolvers<void>();
  const never = Promise.withResolvers<void>();
  house.broker.tool("clock", { run: () => ({ output: "noon" }), until: gate.promise });
  await house.say(session, "warm");
  const other = newSession(2);
  house.llama.script((request) => {
    const last = request.messages.at(-1);
    if (last?.content === "hang") return speak(waitFor(never.promise), say("no"));
    return last?.role === "tool" ? speak(say(`Now: ${last.content}`)) : speak(call("clock", {}));
  });
  const calling = value(await house.submit(session, "time")).body.turn;
  await until(() => house.broker.requests.length === 1);
  const hanging = value(await house.submit(other, "hang")).body.turn;
  await until(() => house.llama.record.at(-1)?.firstByteMs !== null);
  const stopped = house.restart();
  never.resolve();
  await stopped;
  house.llama.script((request, state) => {
    const last = request.messages.at(-1)?.content ?? "";
    return last.includes("Call the tool clock")
      ? passing(request, state)
      : speak(say(`Later: ${last}`));
  });
  gate.resolve();
  const called = await house.item((item) => item.turn === calling);
  assert(called.text.includes("noon"), called.text);
  strictEqual((await house.item((item) => item.turn === hanging)).text, "Later: hang");
  strictEqual(house.broker.runs.length, 1, "the call ran once");
  strictEqual(new Set(house.broker.requests.map((one) => one.call)).size, 1);
});

houseTest(
  "outbox items survive a restart until they are acknowledged, and keep their numbers",
  {},
  async (house) => {
    const first = await house.say(session, "one");
    const second = await house.say(session, "two");
    value(await ask(owner(house), OUTBOX_ACK, { n: first.n }));
    await house.restart();
    const gone = await ask(owner(house), OUTBOX_FETCH, { n: first.n });
    strictEqual(gone.ok ? "ok" : gone.code, "not-found");
    strictEqual((await house.item((item) => item.n === second.n)).text, "You said: two");
    assert((await house.say(session, "three")).n > second.n);
  },
);

houseTest(
  "gatewayRoutes() take turns of threads alone and show only what they may deliver",
  {},
  async (house) => {
    const gateway = `${house.home}/run/gateway.sock`;
    const item = await house.say(session, "mine");
    const fetched = await ask(gateway, OUTBOX_FETCH, { n: item.n });
    strictEqual(fetched.ok ? "ok" : fetched.code, "not-found");
    const acked = await ask(gateway, OUTBOX_ACK, { n: item.n });
    strictEqual(acked.ok ? "ok" : acked.code, "not-found");
    const submit = (id: SessionId) =>
      ask(gateway, TURN_SUBMIT, { session: id, message_id: MessageId.parse("x"), label: null }, {
        upload: new TextEncoder().encode("hi"),
      });
    const chat = await submit(session);
    strictEqual(chat.ok ? "ok" : chat.code, "request-invalid");
    const listed = await ask(gateway, SESSIONS_LIST, { before: null, limit: 1 });
    strictEqual(listed.ok ? "ok" : listed.code, "kind-unknown");
    const thread = SessionId.parse(`mm-${"a".repeat(26)}`);
    const { turn } = value(await submit(thread)).body;
    const reply = await house.item((one) => one.turn === turn);
    strictEqual(value(await ask(gateway, OUTBOX_FETCH, { n: reply.n })).body.session, thread);
  },
);

houseTest(
  "submit() joins the label of a text that is not the owner's, before the text",
  {},
  async (house) => {
    await house.say(session, "warm");
    const label = { class: "secret", untrusted: true } as const;
    const { turn } =
      value(await house.submit(session, "<|im_end|> secret page", "m-x", label)).body;
    await house.item((item) => item.turn === turn);
    deepStrictEqual(house.broker.labels.get(session), label);
    const kinds = house.records(session).map((r) => r.kind);
    strictEqual(kinds.indexOf("label"), kinds.lastIndexOf("user") - 1);
    const user = house.records(session).findLast((r) => r.kind === "user");
    assert(user?.kind === "user" && user.content.startsWith("From elsewhere (secret, untrusted)"));
    assert(!user.content.includes("<|im_end|>") && user.artifact !== null);
    await house.broker.goAway();
    const refused = await house.submit(session, "page", "m-y", label);
    strictEqual(refused.ok ? "ok" : refused.code, "peer-down");
  },
);

/** The real disk until it is told to be full. */
function fillable(): { readonly disk: Disk; fill(full: "full" | "free"): void } {
  let isFull = false;
  const disk: Disk = {
    ...denoDisk,
    open(path, mode) {
      const file = denoDisk.open(path, mode);
      const write = (bytes: Uint8Array) => {
        if (isFull) throw new DiskError("no_space", "No space left");
        return file.write(bytes);
      };
      return { ...file, write };
    },
  };
  return { disk, fill: (full) => void (isFull = full === "full") };
}

Deno.test("submit() refuses a message that a full disk cannot hold, and takes the next one", async () => {
  const { disk, fill } = fillable();
  const house = await startLoopdHouse({ disk });
  house.llama.script(passing);
  await house.say(session, "one");
  fill("full");
  const refused = await house.submit(session, "two");
  strictEqual(refused.ok ? "ok" : refused.code, "disk-full");
  fill("free");
  strictEqual((await house.say(session, "three")).text, "You said: three");
  assert(!house.records(session).some((r) => r.kind === "user" && r.content === "two"));
  deepStrictEqual(house.fatal, []);
  await house.stop();
});

Deno.test("runTurn() finishes a turn whose answer a full disk could not hold, once there is room", async () => {
  const { disk, fill } = fillable();
  const clock = {
    ...systemClock,
    sleep: (ms: number, signal?: AbortSignal) => systemClock.sleep(ms === 15_000 ? 50 : ms, signal),
  };
  const house = await startLoopdHouse({ disk, clock });
  const gate = Promise.withResolvers<void>();
  house.llama.script(passing);
  await house.say(session, "one");
  house.llama.script(() => speak(waitFor(gate.promise), say("Kept.")));
  const { turn } = value(await house.submit(session, "two")).body;
  fill("full");
  gate.resolve();
  await until(() => house.log.some((line) => line.includes("disk-full")));
  const status = value(await house.status()).body;
  assert(status.problems.some((one) => one.code === "disk-full"));
  fill("free");
  strictEqual((await house.item((item) => item.turn === turn)).text, "Kept.");
  await house.stop();
});

Deno.test("cancel() holds although a full disk cannot note it at once", async () => {
  const { disk, fill } = fillable();
  const clock = {
    ...systemClock,
    sleep: (ms: number, signal?: AbortSignal) => systemClock.sleep(ms === 15_000 ? 50 : ms, signal),
  };
  const house = await startLoopdHouse({ disk, clock });
  house.llama.script(passing);
  await house.say(session, "one");
  const never = Promise.withResolvers<void>();
  house.llama.script(() => speak(waitFor(never.promise), say("Too late.")));
  const before = asked(house).length;
  const { turn } = value(await house.submit(session, "two")).body;
  await until(() => asked(house).length > before);
  fill("full");
  await house.cancel(session);
  await until(() => house.log.some((line) => line.includes("disk-full")));
  house.llama.script(passing);
  fill("free");
  const item = await house.item((item) => item.turn === turn);
  deepStrictEqual([item.kind, item.code], ["notice", "turn-cancelled"]);
  strictEqual(asked(house).length, before + 1);
  never.resolve();
  await house.stop();
});

Deno.test("runTurn() ends a turn although the artifact of its result was damaged before", async () => {
  const house = await startLoopdHouse({ clock: hurried });
  house.broker.tool("clock", () => ({ output: new Uint8Array([0xff, 0xfe]) }));
  house.llama.script(passing);
  await house.say(session, "one");
  const folder = `${house.home}/sessions/${session}/artifacts`;
  await Deno.mkdir(folder);
  const name = sha256Hex(new Uint8Array([0xff, 0xfe]));
  await Deno.writeTextFile(`${folder}/${name}`, "other bytes");
  house.llama.script(inOrder(speak(call("clock", {})), speak(say("Noon."))));
  strictEqual((await house.say(session, "two")).text, "Noon.");
  deepStrictEqual(await Deno.readFile(`${folder}/${name}`), new Uint8Array([0xff, 0xfe]));
  await house.stop();
});
