// Guards the README's sentences on a turn, over real sockets: what the model, brokerd and memoryd may
// do wrong, and what the owner and the model are told.
import { deepStrictEqual, ok as assert, strictEqual } from "node:assert";
import { newSession, toolManifest, value } from "../../tests/doubles/loopd_house.ts";
import { call, inOrder, say, type Script, speak } from "../../tests/doubles/llama/turn.ts";
import {
  asked,
  houseTest,
  passing,
  results,
  session,
  until,
  viaCall,
  warm,
} from "../../tests/doubles/loopd_rig.ts";

houseTest(
  "runTurn() tells the owner when the model server is down, and keeps the message",
  {},
  async (house) => {
    await house.llama.stop();
    const item = await house.say(session, "are you there?");
    deepStrictEqual([item.kind, item.code], ["notice", "model-unreachable"]);
    strictEqual(house.records(session).filter((r) => r.kind === "user").length, 1);
    const status = await house.status();
    assert(status.ok && !status.value.body.model.is_reachable);
    assert(status.value.body.problems.some((one) => one.code === "model-unreachable"));
  },
);

houseTest("runTurn() gives a denial to the model in brokerd's words", {
  tools: [toolManifest("rm_all")],
}, async (house) => {
  await warm(house, inOrder(speak(viaCall("rm_all", {})), speak(say("It was refused."))));
  strictEqual((await house.say(session, "go")).text, "It was refused.");
  const [result] = results(house);
  deepStrictEqual([result?.outcome, result?.code, result?.tool], ["denied", "no_grant", "rm_all"]);
});

houseTest(
  "runTurn() goes on without brokerd: a call that was never sent has failed",
  {},
  async (house) => {
    await warm(house, inOrder(speak(call("clock", {})), speak(say("No clock."))));
    await house.broker.goAway();
    strictEqual((await house.say(session, "time?")).text, "No clock.");
    deepStrictEqual(results(house).map((r) => [r.outcome, r.code]), [["failed", "peer-down"]]);
  },
);

houseTest("runTurn() waits through a restart of brokerd and asks by the same id", {
  brokerGiveUpMs: 20_000,
}, async (house) => {
  const gate = Promise.withResolvers<void>();
  house.broker.tool("clock", { run: () => ({ output: "noon" }), until: gate.promise });
  await warm(house, inOrder(speak(call("clock", {})), speak(say("Noon."))));
  const answered = house.say(session, "time?");
  while (house.broker.requests.length === 0) await new Promise((r) => setTimeout(r, 10));
  await house.broker.goAway();
  gate.resolve();
  await new Promise((r) => setTimeout(r, 50));
  house.broker.comeBack();
  strictEqual((await answered).text, "Noon.");
  strictEqual(house.broker.runs.length, 1);
  strictEqual(results(house)[0]?.outcome, "done");
});

houseTest(
  "submit() refuses a new session without memoryd, and leaves nothing behind",
  {},
  async (house) => {
    house.memory.block(null);
    const refused = await house.submit(session, "hi");
    strictEqual(refused.ok ? "ok" : refused.code, "memory-unavailable");
    house.memory.block("# memory.md\nOwner likes tea");
    strictEqual((await house.say(session, "hi")).text, "Hello.");
    await house.memory.stop();
    strictEqual((await house.say(session, "a running session goes on")).text, "Hello.");
    const other = await house.submit(newSession(2), "hi");
    strictEqual(other.ok ? "ok" : other.code, "memory-unavailable");
  },
);

houseTest("submit() is idempotent by message id, also while the turn runs", {}, async (house) => {
  const first = await house.submit(session, "hi", "same");
  const second = await house.submit(session, "something else", "same");
  assert(first.ok && second.ok);
  deepStrictEqual(second.value.body, { ...first.value.body, is_duplicate: true });
  await house.item((item) => item.turn === first.value.body.turn);
  strictEqual(house.records(session).filter((r) => r.kind === "user").length, 1);
});

houseTest("runTurn() ends a turn that calls the same again and again", {}, async (house) => {
  house.broker.tool("clock", () => ({ output: "noon" }));
  await warm(house, () => speak(call("clock", {})));
  const item = await house.say(session, "time?");
  deepStrictEqual([item.kind, item.code], ["notice", "repeated-call"]);
  for (const word of ["6 times clock", "is kept", "other words"]) assert(item.text.includes(word));
  strictEqual(house.broker.runs.length, 5);
  const warned = results(house).map((r) => r.content.includes("This same call was made"));
  deepStrictEqual(warned, [false, false, true, true, true, false]);
  house.llama.script(() => speak(say("Fine.")));
  strictEqual((await house.say(session, "stop it")).text, "Fine.");
});

houseTest("runTurn() ends a turn at its limit of calls and answers every call", {
  config: { inference: { tool_calls: 3 } },
}, async (house) => {
  let n = 0;
  await warm(
    house,
    () => speak(call("recall", { query: `a${n++}` }), call("recall", { query: `b${n}` })),
  );
  const item = await house.say(session, "go");
  strictEqual(item.code, "tool-calls-limit");
  for (const word of ["call 4 of 3", "is kept", "raise tool_calls"]) {
    assert(item.text.includes(word), item.text);
  }
  strictEqual(results(house).length, 4);
  house.llama.script(() => speak(say("Fine.")));
  strictEqual((await house.say(session, "go on")).text, "Fine.");
});

houseTest(
  "runTurn() archives a long result, shows head and tail, and pages through it",
  { tools: [toolManifest("read_all"), toolManifest("read_result")] },
  async (house) => {
    const big = Array.from({ length: 9_000 }, (_, i) => `line ${i}\n`).join("");
    house.broker.tool(
      "read_all",
      () => ({ output: big, label: { class: "private", untrusted: true } }),
    );
    house.broker.tool("read_result", () => ({ outcome: "run_local" }));
    const script: Script = (request) => {
      const last = request.messages.at(-1)?.content ?? "";
      const place = /"call":"([^"]+)","offset":(\d+)/.exec(last);
      if (place !== null) {
        return speak(
          viaCall("read_result", { call: place[1], offset: Number(place[2]), limit: 100 }),
        );
      }
      return last.includes("the result of read_all")
        ? speak(say("Read."))
        : speak(viaCall("read_all", {}));
    };
    await warm(house, script);
    strictEqual((await house.say(session, "read it")).text, "Read.");
    const [whole, page] = results(house);
    assert(whole !== undefined && whole.artifact !== null && whole.content.length < 17_000);
    const kept = await Deno.readTextFile(
      `${house.home}/sessions/${session}/artifacts/${whole.artifact}`,
    );
    strictEqual(kept, big);
    const at = 12_288;
    assert(page?.content.endsWith(big.slice(at, at + 100)));
    deepStrictEqual([page?.class, page?.untrusted, page?.artifact], ["private", true, null]);
    const kinds = house.records(session).map((r) => r.kind);
    assert(kinds.indexOf("label") < kinds.indexOf("tool_result"));
    strictEqual(house.broker.acks.length, 2);
  },
);

houseTest("cancel() withdraws a call that waits for the owner", {}, async (house) => {
  house.broker.tool("clock", { run: () => ({}), until: new Promise(() => {}) });
  await warm(house, () => speak(call("clock", {})));
  const accepted = await house.submit(session, "time?");
  assert(accepted.ok);
  while (house.broker.requests.length === 0) await new Promise((r) => setTimeout(r, 10));
  await house.cancel(session);
  await house.item((one) => one.turn === accepted.value.body.turn);
  strictEqual(house.broker.cancels.length, 1);
  deepStrictEqual(results(house).map((r) => r.outcome), ["unknown"]);
});

houseTest(
  "cancel() ends a turn that waits for the self-test, which goes on for the next one",
  {},
  async (house) => {
    const slow = Promise.withResolvers<void>();
    house.llama.script(async (request, state) => {
      if (asked(house).length === 1) await slow.promise;
      return await passing(request, state);
    });
    const { turn } = value(await house.submit(session, "hello")).body;
    await until(() => asked(house).length === 1);
    await house.cancel(session);
    strictEqual((await house.item((one) => one.turn === turn)).code, "turn-cancelled");
    const next = house.say(session, "and now");
    slow.resolve();
    strictEqual((await next).text, "Hello.");
    strictEqual(asked(house).length, 3, "two of the self-test, one of the second turn");
  },
);
