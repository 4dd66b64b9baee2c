// Guards the README's sentences on a turn, over real sockets: what the model, brokerd and memoryd may
// do wrong, and what the owner and the model are told.
import { deepStrictEqual, ok as assert, strictEqual } from "node:assert";
import { newSession, startLoopdHouse, toolManifest } from "../../tests/doubles/loopd_house.ts";
import type { HouseOptions, LoopdHouse } from "../../tests/doubles/loopd_house.ts";
import {
  call,
  inOrder,
  say,
  speak,
  think,
  thinkForever,
  waitFor,
  withKnobs,
} from "../../tests/doubles/llama/turn.ts";
import type { Script } from "../../tests/doubles/llama/turn.ts";

const session = newSession();

/** A test in a house of its own whose self-test is played by a script before `script` takes over. */
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
      deepStrictEqual(house.fatal, []);
    } finally {
      await house.stop();
    }
  });
}

/** What a healthy model says to the self-test; anything else gets a greeting. */
const passing: Script = (request) => {
  const last = request.messages.at(-1);
  return last?.content.includes("Call the tool clock")
    ? speak(call("clock", {}))
    : speak(say("Hello."));
};

/** Lets the self-test pass with one friendly turn, then plays `script`. */
async function warm(house: LoopdHouse, script: Script): Promise<void> {
  const item = await house.say(session, "good morning");
  strictEqual(item.text, "Hello.");
  house.llama.script(script);
}

const viaCall = (name: string, args: unknown) =>
  call("call_tool", { name, arguments: JSON.stringify(args) });
const results = (house: LoopdHouse) =>
  house.records(session).flatMap((r) => r.kind === "tool_result" ? [r] : []);
const lastEnd = (house: LoopdHouse) =>
  house.records(session).findLast((r) => r.kind === "turn_end");

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

houseTest("runTurn() gives a silent server up by its two limits, not by a deadline", {
  config: { inference: { silence_s: 1, first_byte_s: 30 } },
}, async (house) => {
  // Slower in all than the limit, but never silent for that long.
  await warm(house, () => withKnobs(speak(say("slow but there ".repeat(8))), { tokenMs: 60 }));
  strictEqual((await house.say(session, "slow")).kind, "reply");
  const gate = Promise.withResolvers<void>();
  house.llama.script(() => speak(say("one"), waitFor(gate.promise), say("two")));
  const item = await house.say(session, "silent");
  gate.resolve();
  deepStrictEqual([item.kind, item.code], ["notice", "model-silent"]);
  house.llama.script(() => speak(say("Back.")));
  strictEqual((await house.say(session, "again")).text, "Back.");
});

houseTest("runTurn() waits for a first byte by a limit of its own", {
  config: { inference: { first_byte_s: 1 } },
}, async (house) => {
  await warm(house, () => withKnobs(speak(say("late")), { delayHeadersMs: 60_000 }));
  strictEqual((await house.say(session, "hello?")).code, "model-silent");
});

houseTest(
  "runTurn() tries a broken stream again, and keeps what had come as a notice",
  {},
  async (house) => {
    const whole = speak(think("so"), say("The whole answer."));
    await warm(house, inOrder(withKnobs(whole, { resetAfter: 3 }), whole));
    strictEqual((await house.say(session, "go")).text, "The whole answer.");
    const notice = house.records(session).find((r) => r.kind === "notice");
    assert(notice?.kind === "notice" && notice.code === "model-stream-broken");
    assert(notice.text.includes("Until then it had said"), notice.text);
    const bodies = house.llama.record.filter((one) => one.path === "/v1/chat/completions").slice(
      -2,
    );
    strictEqual(bodies[0]?.bodyText, bodies[1]?.bodyText);
  },
);

for (
  const [name, knobs] of [
    ["an error inside", { errorAfter: { deltas: 1, message: "Context size has been exceeded." } }],
    ["no end mark", { noDone: true }],
    ["no finish", { noFinish: true }],
    ["a proxy's text", { proxyErrorAfter: 1 }],
  ] as const
) {
  houseTest(`runTurn() takes no answer from a stream with ${name}`, {}, async (house) => {
    await warm(house, () => withKnobs(speak(say("half an answer")), knobs));
    const item = await house.say(session, "go");
    deepStrictEqual([item.kind, item.code], ["notice", "model-stream-broken"]);
    house.llama.script(() => speak(say("Fine.")));
    strictEqual((await house.say(session, "again")).text, "Fine.");
  });
}

houseTest(
  "runTurn() answers a key that is asked for with the one code",
  { llama: { apiKey: "k" } },
  async (house) => {
    strictEqual((await house.say(session, "hi")).code, "model-auth-required");
  },
);

houseTest("runTurn() ends with session-full when the context is used up", {
  llama: { nCtx: 1_400 },
}, async (house) => {
  await warm(house, () => speak(say("ok")));
  const item = await house.say(session, "long ".repeat(2_000));
  deepStrictEqual([item.kind, item.code], ["notice", "session-full"]);
  strictEqual(
    house.llama.record.filter((one) => one.path.endsWith("completions")).at(-1)?.outcome,
    null,
  );
});

houseTest("runTurn() stores unparsable arguments as {} and goes on", {}, async (house) => {
  const evil = '{"query": <|im_end|>';
  await warm(house, inOrder(speak(call("recall", [evil])), speak(say("Sorry."))));
  strictEqual((await house.say(session, "go")).text, "Sorry.");
  const [result] = results(house);
  deepStrictEqual([result?.outcome, result?.code], ["corrective", "arguments-invalid"]);
  const answer = house.records(session).find((r) =>
    r.kind === "assistant" && r.tool_calls.length > 0
  );
  assert(answer?.kind === "assistant" && answer.artifact !== null);
  strictEqual(answer.tool_calls[0]?.arguments, "{}");
  const kept = await Deno.readTextFile(
    `${house.home}/sessions/${session}/artifacts/${answer.artifact}`,
  );
  deepStrictEqual(Object.values(JSON.parse(kept)), [evil]);
  strictEqual(house.broker.requests.length, 0);
});

houseTest("runTurn() runs no call of an answer that was cut off", {}, async (house) => {
  const cut = withKnobs(speak(call("recall", { query: "a long one" })), { cutArgumentsAfter: 2 });
  await warm(house, inOrder(cut, speak(say("Once more."))));
  strictEqual((await house.say(session, "go")).text, "Once more.");
  strictEqual(results(house)[0]?.outcome, "corrective");
  strictEqual(house.broker.requests.length, 0);
});

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

houseTest("runTurn() ends a thought at the turn's limit, or the request when it goes on", {
  config: { inference: { thinking_tokens: 20 } },
}, async (house) => {
  await warm(house, () => speak(thinkForever(), say("Enough.")));
  house.llama.set({ tokenMs: 5 });
  strictEqual((await house.say(session, "think")).text, "Enough.");
  house.llama.set({ reasoningEndIgnored: true });
  const item = await house.say(session, "think more");
  deepStrictEqual([item.kind, item.code], ["notice", "thinking-limit"]);
});

houseTest("runTurn() ends a turn that calls the same again and again", {}, async (house) => {
  house.broker.tool("clock", () => ({ output: "noon" }));
  await warm(house, () => speak(call("clock", {})));
  const item = await house.say(session, "time?");
  deepStrictEqual([item.kind, item.code], ["notice", "repeated-call"]);
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
  strictEqual((await house.say(session, "go")).code, "tool-calls-limit");
  strictEqual(results(house).length, 4);
  house.llama.script(() => speak(say("Fine.")));
  strictEqual((await house.say(session, "go on")).text, "Fine.");
});

houseTest("runTurn() says so when the model ends without a word", {}, async (house) => {
  await warm(house, () => ({ ...speak(think("hm")), finish: "length" }));
  deepStrictEqual((await house.say(session, "hi")).code, "answer-empty");
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

houseTest(
  "cancel() drops the request, frees the slot, and leaves a session that goes on",
  {},
  async (house) => {
    await warm(house, () => withKnobs(speak(say("on and on ".repeat(500))), { tokenMs: 20 }));
    const accepted = await house.submit(session, "talk");
    assert(accepted.ok);
    while (house.llama.record.at(-1)?.firstByteMs == null) {
      await new Promise((r) => setTimeout(r, 10));
    }
    await house.cancel(session);
    const item = await house.item((one) => one.turn === accepted.value.body.turn);
    deepStrictEqual([item.kind, item.code], ["notice", "turn-cancelled"]);
    const end = lastEnd(house);
    strictEqual(end?.kind === "turn_end" ? end.outcome : null, "cancelled");
    house.llama.script(() => speak(say("Yes?")));
    strictEqual((await house.say(session, "quiet now")).text, "Yes?");
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
