// The rules of a client of the model server, 17 to 28: slots, thinking, looking, loading, starting.
// One test or more for each, named after it.
import { deepStrictEqual, ok as assert, strictEqual } from "node:assert";
import { call as ask } from "../../shared/wire/dial.ts";
import { PROMPT_BILL } from "../../shared/wire/loop.ts";
import { systemClock } from "../../shared/clock/clock.ts";
import { type LoopdHouse, newSession, value } from "../../tests/doubles/loopd_house.ts";
import type { Knobs } from "../../tests/doubles/llama/knobs.ts";
import {
  call,
  inOrder,
  say,
  speak,
  think,
  thinkForever,
  withKnobs,
} from "../../tests/doubles/llama/turn.ts";
import {
  asked,
  houseTest,
  hurried,
  lastEnd,
  passing,
  session,
  until,
  warm,
} from "../../tests/doubles/loopd_rig.ts";

const owner = (house: LoopdHouse) => `${house.home}/run/owner.sock`;
const ONE_MODEL = { router: { models: [{ id: "default", aliases: [] }] } };
const paths = (house: LoopdHouse) => house.llama.record.map((one) => `${one.method} ${one.path}`);

houseTest(
  "rule 17: one request a slot, and after a cancelled one the slot is seen free first",
  {},
  async (house) => {
    await warm(
      house,
      () => withKnobs(speak(say("on and on ".repeat(500))), { tokenMs: 20, cancelMs: 300 }),
    );
    const { turn } = value(await house.submit(session, "talk")).body;
    await until(() => asked(house).at(-1)?.firstByteMs != null);
    await house.cancel(session);
    const item = await house.item((one) => one.turn === turn);
    deepStrictEqual([item.kind, item.code], ["notice", "turn-cancelled"]);
    const end = lastEnd(house);
    strictEqual(end?.kind === "turn_end" ? end.outcome : null, "cancelled");
    house.llama.script(() => speak(say("Yes?")));
    strictEqual((await house.say(session, "quiet now")).text, "Yes?");
    const [cancelled, next] = asked(house).slice(-2);
    assert(Number(cancelled?.closedMs) <= Number(next?.arrivedMs), "asked while the slot was busy");
    assert(paths(house).filter((one) => one === "GET /slots").length >= 2, "the slot was watched");
  },
);

houseTest("rule 17: a slot that never comes free is waited for within bounds", {
  clock: { ...hurried, monotonicMs: () => systemClock.monotonicMs() * 100 },
  config: { inference: { first_byte_s: 9_000, silence_s: 3_000 } },
}, async (house) => {
  await warm(
    house,
    () => withKnobs(speak(say("on and on ".repeat(500))), { tokenMs: 20, stuckSlot: true }),
  );
  const { turn } = value(await house.submit(session, "talk")).body;
  await until(() => asked(house).at(-1)?.firstByteMs != null);
  await house.cancel(session);
  strictEqual((await house.item((one) => one.turn === turn)).code, "turn-cancelled");
  house.llama.script(() => speak(say("Yes?")));
  const next = house.say(session, "quiet now");
  const before = asked(house).length;
  await until(() => asked(house).length > before);
  house.llama.freeSlots();
  strictEqual((await next).text, "Yes?");
});

houseTest("rule 18: a slot that the server does not have starts no turn", {
  config: { inference: { slots: { main: 3 } } },
}, async (house) => {
  const item = await house.say(session, "hi");
  strictEqual(item.code, "self-test-failed");
  assert(item.text.includes("slot 3 is configured, the server has 2"), item.text);
});

houseTest("rule 18: a session's requests all use its slot", {}, async (house) => {
  await warm(house, () => speak(say("ok")));
  await house.say(session, "one");
  deepStrictEqual([...new Set(asked(house).map((one) => one.slot))], [0]);
});

/** Everything that a request of loopd holds. */
const MEMBERS = [
  "cache_prompt",
  "id_slot",
  "messages",
  "model",
  "reasoning_control",
  "return_progress",
  "stream",
  "stream_options",
  "temperature",
  "timings_per_token",
  "tools",
  "top_k",
  "top_p",
];

async function sendsOnlyMembers(house: LoopdHouse, forbidden: readonly string[]): Promise<void> {
  await warm(house, () => speak(think("Hm."), say("ok")));
  await house.say(session, "one");
  for (const { body } of asked(house)) {
    deepStrictEqual(Object.keys(body).toSorted(), MEMBERS);
    assert(forbidden.every((member) => !Object.hasOwn(body, member)));
  }
}

houseTest(
  "rule 19: think tags are never biased, and no grammar is sent",
  {},
  (house) => sendsOnlyMembers(house, ["logit_bias", "grammar", "response_format"]),
);

houseTest(
  "rule 20: no thinking budget is sent",
  {},
  (house) => sendsOnlyMembers(house, ["reasoning_budget_tokens", "thinking_budget_tokens"]),
);

houseTest("rule 21: a thought is ended by its id and the model's name, and judged by the stream", {
  config: { inference: { thinking_tokens: 20 } },
}, async (house) => {
  await warm(house, () => speak(thinkForever(), say("Enough.")));
  strictEqual(house.llama.record.some((one) => one.path.endsWith("/control")), false);
  house.llama.set({ tokenMs: 5 });
  strictEqual((await house.say(session, "think")).text, "Enough.");
  const control = house.llama.record.find((one) => one.path.endsWith("/control"))?.body ?? {};
  deepStrictEqual([control["action"], control["model"]], ["reasoning_end", "default"]);
  assert(`${control["id"]}`.startsWith("chatcmpl-"));
  house.llama.set({ leftoverThought: true });
  assert((await house.say(session, "think again")).kind === "reply");
  house.llama.set({ reasoningEndIgnored: true });
  const item = await house.say(session, "think more");
  deepStrictEqual([item.kind, item.code], ["notice", "thinking-limit"]);
  assert(item.text.includes("20 tokens") && item.text.includes("thinking_tokens"), item.text);
});

houseTest("rule 22: no tool is forced, and a model that does not call one fails the self-test", {
  llama: { knobs: { dropCalls: true } },
}, async (house) => {
  const item = await house.say(session, "hi");
  strictEqual(item.code, "self-test-failed");
  assert(item.text.includes("called none"), item.text);
  assert(asked(house).every(({ body }) => !Object.hasOwn(body, "tool_choice")));
});

houseTest("rule 23: status and the token bill never wake or load a model", {
  llama: ONE_MODEL,
}, async (house) => {
  const looked = async () => {
    const status = value(await house.status()).body;
    assert(status.model.is_reachable);
    value(await ask(owner(house), PROMPT_BILL, {}));
  };
  await looked();
  deepStrictEqual([...new Set(paths(house))], ["GET /models"]);
  await house.say(session, "hi");
  house.llama.sleep("default");
  const before = house.llama.record.length;
  await looked();
  house.llama.set({ unknownStatus: "dreaming" });
  await looked();
  deepStrictEqual([...new Set(paths(house).slice(before))], ["GET /models"]);
  house.llama.calm();
  const models = await (await fetch(`${house.llama.url}/models`)).json();
  strictEqual(models.data[0].status.value, "sleeping");
  strictEqual((await house.say(session, "wake up")).text, "Hello.");
});

houseTest("rule 23: a cancelled request to a model that is gone does not look at its slots", {
  llama: ONE_MODEL,
}, async (house) => {
  await warm(house, () => withKnobs(speak(say("on and on ".repeat(500))), { tokenMs: 20 }));
  const { turn } = value(await house.submit(session, "talk")).body;
  await until(() => asked(house).at(-1)?.firstByteMs != null);
  house.llama.set({ unknownStatus: "unloaded" });
  await house.cancel(session);
  await house.item((one) => one.turn === turn);
  assert(!paths(house).includes("GET /slots"));
});

houseTest("rule 24: a model that loads for ever is given up, unloaded and told of", {
  llama: { ...ONE_MODEL, knobs: { loadNeverEnds: true } },
  config: { inference: { first_byte_s: 1 } },
}, async (house) => {
  const item = await house.say(session, "hi");
  strictEqual(item.code, "model-not-loaded");
  assert(item.text.includes("still loading"), item.text);
  strictEqual(paths(house).filter((one) => one === "POST /models/unload").length, 1);
  house.llama.calm();
  strictEqual((await house.say(session, "again")).text, "Hello.");
});

for (
  const [name, knobs] of [
    ["that fails to load", { loadFails: true }],
    ["beyond the limit of models", { modelLimitReached: true }],
  ] as const
) {
  houseTest(`rule 24: a model ${name} is tried with waits, told of, and never unloaded`, {
    llama: { ...ONE_MODEL, knobs },
    clock: hurried,
  }, async (house) => {
    strictEqual((await house.say(session, "hi")).code, "model-not-loaded");
    strictEqual(asked(house).length, 4);
    assert(!paths(house).includes("POST /models/unload"));
    house.llama.calm();
    strictEqual((await house.say(session, "again")).text, "Hello.");
  });
}

houseTest(
  "rule 24: a model that finds no room when it is woken is told of, and asked again later",
  {
    llama: ONE_MODEL,
    clock: hurried,
  },
  async (house) => {
    strictEqual((await house.say(session, "hi")).text, "Hello.");
    house.llama.sleep("default");
    house.llama.set({ loadFails: true });
    strictEqual((await house.say(session, "are you there")).code, "model-not-loaded");
    house.llama.calm();
    strictEqual((await house.say(session, "again")).text, "Hello.");
  },
);

houseTest("rule 24: a model that is evicted in mid-stream, or loads slowly, is waited for", {
  llama: { ...ONE_MODEL, knobs: { loadMs: 300 } },
}, async (house) => {
  strictEqual((await house.say(session, "hi")).text, "Hello.");
  let tries = 0;
  house.llama.script(() => {
    if (tries++ > 0) return speak(say("Whole."));
    setTimeout(() => house.llama.crash("default"), 100);
    return withKnobs(speak(say("half ".repeat(200))), { tokenMs: 10 });
  });
  strictEqual((await house.say(session, "go")).text, "Whole.");
  assert(!paths(house).includes("POST /models/unload"));
});

houseTest(
  "rule 25: the token bill is the server's count of the very body of a completion",
  {},
  async (house) => {
    const bill = value(await ask(owner(house), PROMPT_BILL, {})).body;
    strictEqual(bill.counted_by, "server");
    strictEqual(bill.lines.reduce((sum, line) => sum + line.tokens, 0), bill.total);
    assert(bill.total > 100 && bill.total < 1_500, `${bill.total} tokens`);
    await house.say(session, "Hello");
    const first = house.records(session).find((r) => r.kind === "assistant");
    assert(first?.kind === "assistant" && first.timings !== null);
    strictEqual(first.timings.cache_n + first.timings.prompt_n, bill.total);
  },
);

const OTHERWISE: readonly (readonly [string, object, Partial<Knobs>, string])[] = [
  ["build", { build: "b10470-34af94cd9" }, { buildInfo: "b9-other" }, "build is b9-other"],
  ["n_ctx", { n_ctx: 32_768 }, { nCtx: 4_096 }, "n_ctx is 4096, recorded is 32768"],
  ["slots", { slots: 2 }, { totalSlots: 5 }, "slots is 5, recorded is 2"],
  ["template", { template_sha256: "0".repeat(64) }, { chatTemplate: "x" }, "template is"],
  ["date", {}, { chatTemplate: "{{ strftime_now('%d') }}" }, "template prints the date"],
];
for (const [name, expected, knobs, said] of OTHERWISE) {
  houseTest(`rule 26: a server with another ${name} than recorded starts no turn`, {
    config: { inference: { expected } },
    llama: { knobs },
  }, async (house) => {
    const item = await house.say(session, "hi");
    strictEqual(item.code, "self-test-failed");
    assert(item.text.includes(said), item.text);
    const refused = await house.submit(session, "again");
    strictEqual(refused.ok ? "ok" : refused.code, "self-test-failed");
    strictEqual((await house.submit(newSession(2), "hi")).ok, false);
    const sessions = [...Deno.readDirSync(`${house.home}/sessions`)].map(({ name }) => name);
    strictEqual(sessions.includes(newSession(2)), false, "a refused message begins no session");
    const known = value(await house.submit(session, "hi", "m-1")).body;
    strictEqual(known.is_duplicate, true, "what was accepted stays accepted");
    const status = value(await house.status()).body;
    assert(status.problems.some((one) => one.code === "self-test-failed"));
    assert(status.self_test.some((one) => one.state.includes(said)));
  });
}

houseTest(
  "rule 27: no header that turns off cancelling by disconnect is sent",
  {},
  async (house) => {
    await warm(house, inOrder(speak(call("clock", {})), speak(say("ok"))));
    await house.say(session, "time?");
    const names = new Set(house.llama.record.flatMap((one) => [...one.headers.keys()]));
    const usual = ["accept", "connection", "content-length", "content-type", "host"];
    deepStrictEqual([...names].toSorted(), usual);
  },
);

houseTest(
  "rule 28: the forwarder passes bytes as they come and closes upstream with its client",
  {},
  async (house) => {
    await warm(house, () => withKnobs(speak(say("word ".repeat(300))), { tokenMs: 20 }));
    const { turn } = value(await house.submit(session, "talk")).body;
    await until(() => asked(house).at(-1)?.firstByteMs != null);
    await house.cancel(session);
    await house.item((one) => one.turn === turn);
    strictEqual(asked(house).at(-1)?.outcome, "cancelled", "the server saw the client leave");
    house.llama.script(passing);
    strictEqual((await house.say(newSession(2), "others go on")).text, "Hello.");
  },
);
