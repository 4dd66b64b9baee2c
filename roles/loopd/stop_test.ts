// Guards: "a stop waits for nobody: whatever is asked of the model server, brokerd or memoryd is
// dropped at once, and the next start takes it up". The clock of these tests stands still, so a stop
// that waited for a limit would never end.
import { deepStrictEqual, ok as assert, strictEqual } from "node:assert";
import type { Clock } from "../../shared/clock/clock.ts";
import { systemClock } from "../../shared/clock/clock.ts";
import { ApprovalId } from "../../shared/ids/ids.ts";
import { listenRaw } from "../../shared/wire/listen.ts";
import { startMemoryDouble } from "../../tests/doubles/memoryd.ts";
import {
  call,
  type Refusal,
  say,
  speak,
  thinkForever,
  withKnobs,
} from "../../tests/doubles/llama/turn.ts";
import {
  type LoopdHouse,
  newSession,
  startLoopdHouse,
  toolManifest,
  value,
} from "../../tests/doubles/loopd_house.ts";
import {
  asked,
  houseTest,
  lastEnd,
  passing,
  results,
  session,
  until,
  viaCall,
  warm,
} from "../../tests/doubles/loopd_rig.ts";

const frozen: Clock = {
  ...systemClock,
  monotonicMs: () => 0,
  sleep: (_ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) resolve();
      signal?.addEventListener("abort", () => resolve(), { once: true });
    }),
};

const talk = speak(say("on and on ".repeat(500)));
/** Submits a message and waits for the first byte of its answer; the turn. */
async function talking(house: LoopdHouse): Promise<string> {
  const before = asked(house).length;
  const { turn } = value(await house.submit(session, "talk")).body;
  await until(() => asked(house)[before]?.firstByteMs != null);
  return turn;
}

async function isHeld(house: LoopdHouse): Promise<boolean> {
  const slots = await (await fetch(`${house.llama.url}/slots`)).json();
  return slots[0].is_processing;
}

const records = (house: LoopdHouse) => JSON.stringify(house.records(session));

/** A peer that takes every connection and never says a word. */
function mute(listener: Deno.UnixListener | Deno.TcpListener) {
  const { addr } = listener;
  const open: Deno.Conn[] = [];
  const done = (async () => {
    for await (const conn of listener) open.push(conn);
  })();
  return {
    open,
    port: addr.transport === "tcp" ? addr.port : 0,
    async stop() {
      listener.close();
      await done;
      for (const conn of open) conn.close();
    },
  };
}

houseTest("a stop ends while the model server still holds its slot, and loses nothing", {
  clock: frozen,
}, async (house) => {
  await warm(house, () => withKnobs(talk, { tokenMs: 20, stuckSlot: true }));
  const turn = await talking(house);
  const before = records(house);
  await house.halt();
  assert(await isHeld(house), "the double still holds the slot");
  strictEqual(records(house), before, "nothing is recorded of an answer that was cut");
  house.llama.freeSlots();
  house.llama.script(passing);
  await house.restart();
  strictEqual((await house.item((one) => one.turn === turn)).text, "Hello.");
});

houseTest("a stop ends a wait for the slot that an owner's cancel has begun", {
  clock: frozen,
}, async (house) => {
  await warm(house, () => withKnobs(talk, { tokenMs: 20, stuckSlot: true }));
  const turn = await house.submit(session, "talk");
  assert(turn.ok);
  await until(() => asked(house).at(-1)?.firstByteMs != null);
  const looks = house.llama.record.length;
  await house.cancel(session);
  await until(() => house.llama.record.length > looks);
  await house.restart();
  const item = await house.item((one) => one.turn === turn.value.body.turn);
  deepStrictEqual([item.kind, item.code], ["notice", "turn-cancelled"]);
  house.llama.freeSlots();
});

houseTest("an owner's cancel ends a wait for the slot of a thought that was cut", {
  clock: frozen,
  config: { inference: { thinking_tokens: 20 } },
}, async (house) => {
  await warm(house, () => speak(thinkForever()));
  house.llama.set({ tokenMs: 5, reasoningEndIgnored: true, stuckSlot: true });
  const { turn } = value(await house.submit(session, "think")).body;
  await until(() => house.llama.record.at(-1)?.path.startsWith("/slots") === true);
  await house.cancel(session);
  strictEqual((await house.item((one) => one.turn === turn)).code, "turn-cancelled");
  house.llama.freeSlots();
});

Deno.test("a stop ends while the model server has not said a word", async () => {
  const server = mute(Deno.listen({ hostname: "127.0.0.1", port: 0 }));
  const house = await startLoopdHouse({ clock: frozen, llamaPort: server.port });
  assert((await house.submit(session, "hi")).ok);
  await until(() => server.open.length > 0);
  await house.halt();
  strictEqual(lastEnd(house), undefined, "the turn is left for the next start");
  await server.stop();
  await house.stop();
});

houseTest("a stop ends while brokerd takes a call and does not answer", {
  clock: frozen,
  tools: [toolManifest("look")],
}, async (house) => {
  await warm(house, () => speak(viaCall("look", {})));
  house.broker.tool("look", () => ({ output: "seen" }));
  await house.broker.goAway();
  const broker = mute(listenRaw(`${house.home}/run/broker.sock`));
  const { turn } = value(await house.submit(session, "look")).body;
  await until(() => broker.open.length > 0);
  await house.halt();
  deepStrictEqual(results(house), []);
  await broker.stop();
  house.broker.comeBack();
  house.llama.script(passing);
  await house.restart();
  strictEqual((await house.item((one) => one.turn === turn)).text, "Hello.");
  strictEqual(house.broker.runs.length, 1);
});

houseTest("a stop ends while the owner is asked, and withdraws no question", {
  clock: frozen,
}, async (house) => {
  const gate = Promise.withResolvers<void>();
  const approval = ApprovalId.parse(`a-${"0".repeat(26)}`);
  house.broker.tool("clock", { run: () => ({ output: "noon" }), until: gate.promise, approval });
  await warm(house, () => speak(call("clock", {})));
  const { turn } = value(await house.submit(session, "time?")).body;
  await until(() => house.broker.requests.length > 0);
  await house.halt();
  deepStrictEqual([house.broker.cancels, results(house)], [[], []]);
  house.llama.script(passing);
  await house.restart();
  gate.resolve();
  strictEqual((await house.item((one) => one.turn === turn)).text, "Hello.");
  strictEqual(house.broker.runs.length, 1);
});

houseTest("a turn that was cancelled stays so over a stop that cuts its call off", {
  clock: frozen,
}, async (house) => {
  await warm(house, () => speak(call("clock", {})));
  await house.broker.goAway();
  const broker = mute(listenRaw(`${house.home}/run/broker.sock`));
  const { turn } = value(await house.submit(session, "time?")).body;
  await until(() => broker.open.length > 0);
  await house.cancel(session);
  await house.halt();
  deepStrictEqual(results(house).map((one) => one.outcome), ["unknown"]);
  await broker.stop();
  house.broker.comeBack();
  house.llama.script(passing);
  await house.restart();
  strictEqual((await house.item((one) => one.turn === turn)).code, "turn-cancelled");
});

houseTest("a stop leaves a full chat for the next start to carry on", {
  clock: frozen,
}, async (house) => {
  const full: Refusal = {
    ...{ kind: "refusal", status: 400, message: "full" },
    type: "exceed_context_size_error",
  };
  await warm(house, () => full);
  await house.memory.stop();
  const path = `${house.home}/run/memory.sock`;
  const silent = mute(listenRaw(path));
  const { turn } = value(await house.submit(session, "more")).body;
  await until(() => silent.open.length > 0);
  await house.halt();
  strictEqual(records(house).includes("session-full"), false);
  await silent.stop();
  const memory = startMemoryDouble(path);
  house.llama.script((request, state) =>
    request.messages.some((one) => one.content === "good morning") ? full : passing(request, state)
  );
  await house.restart();
  const notice = await house.item((one) => one.turn === turn);
  assert(notice.text.includes(`in the new session chat-${turn.slice(2)}`), notice.text);
  strictEqual((await house.item((one) => one.kind === "reply" && one.n > notice.n)).text, "Hello.");
  await memory.stop();
});

houseTest("a stop ends while memoryd does not answer", { clock: frozen }, async (house) => {
  await warm(house, () => speak(say("Fine.")));
  await house.memory.stop();
  const memory = mute(listenRaw(`${house.home}/run/memory.sock`));
  strictEqual((await house.say(session, "hi")).text, "Fine.");
  const begun = house.submit(newSession(2), "hi");
  await until(() => memory.open.length === 2);
  await house.halt();
  strictEqual((await begun).ok, false);
  await memory.stop();
});
