// The rules of a client of the model server, 1 to 8: the way there, the limits, the stream. One test
// or more for each, named after it.
import { deepStrictEqual, ok as assert, strictEqual } from "node:assert";
import { collectEvents } from "../../tests/doubles/loopd_house.ts";
import type { Knobs } from "../../tests/doubles/llama/knobs.ts";
import { FORMAT_ERROR } from "../../tests/doubles/llama/knobs.ts";
import {
  call,
  inOrder,
  pause,
  say,
  silent,
  speak,
  think,
  waitFor,
  withKnobs,
} from "../../tests/doubles/llama/turn.ts";
import {
  asked,
  houseTest,
  hurried,
  passing,
  results,
  session,
  warm,
} from "../../tests/doubles/loopd_rig.ts";

houseTest(
  "rule 1: a server that asks for a key is told of by one code, as keys are not supported",
  { llama: { apiKey: "k" } },
  async (house) => {
    strictEqual((await house.say(session, "hi")).code, "model-auth-required");
    strictEqual(asked(house).length, 1, "it was tried again");
    assert(house.llama.record.every((one) => !one.headers.has("authorization")));
  },
);

houseTest(
  "rule 2: every request streams with progress and usage, and progress is told",
  {},
  async (house) => {
    await warm(
      house,
      (request) =>
        request.messages.at(-1)?.role === "user"
          ? speak(call("clock", {}))
          : speak(think("Hm."), say("Noon.")),
    );
    house.llama.set({ progressEvents: 500, batchMs: 1 });
    const watched = collectEvents(house);
    strictEqual((await house.say(session, "time?")).text, "Noon.");
    const percents = watched.events.flatMap((one) =>
      one.kind === "turn_state" && one.body.state === "reading" ? [one.body.percent ?? -1] : []
    );
    assert(percents.includes(100) && percents.some((p) => p > 0 && p < 100), percents.join());
    await watched.stop();
    assert(asked(house).length >= 5);
    for (const { body } of asked(house)) {
      deepStrictEqual(
        [body["stream"], body["return_progress"], body["stream_options"], body["cache_prompt"]],
        [true, true, { include_usage: true }, true],
      );
    }
  },
);

houseTest("rule 3: silence has a limit of its own after the first byte, and there is no deadline", {
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
  house.llama.script(() =>
    withKnobs(speak(say("a pause")), { pauseAfter: { deltas: 1, ms: 5_000 } })
  );
  strictEqual((await house.say(session, "a pause without pings")).code, "model-silent");
  house.llama.script(() => speak(say("Back.")));
  strictEqual((await house.say(session, "again")).text, "Back.");
});

houseTest("rule 3: comments are bytes, so a server that pings is not silent", {
  config: { inference: { silence_s: 1 } },
  llama: { pingUnitMs: 10 },
}, async (house) => {
  await warm(house, () => speak(say("one"), pause(1_500), say(" two")));
  strictEqual((await house.say(session, "slow")).text, "one two");
});

houseTest("rule 3: the first byte is waited for by a limit of its own", {
  config: { inference: { first_byte_s: 1 } },
}, async (house) => {
  await warm(house, () => withKnobs(speak(say("late")), { delayHeadersMs: 60_000 }));
  strictEqual((await house.say(session, "hello?")).code, "model-silent");
});

houseTest(
  "rule 4: the status comes before the stream, and a body that is no JSON is kept as text",
  {
    clock: hurried,
  },
  async (house) => {
    await warm(house, () => speak(say("ok")));
    const text = "proxy error: data: Could not establish connection";
    house.llama.set({ httpAnswer: { status: 500, body: text, contentType: "text/event-stream" } });
    const item = await house.say(session, "hi");
    strictEqual(item.code, "model-unreachable");
    assert(item.text.includes(text), item.text);
    house.llama.calm();
    house.llama.set({ doubleConnectionHeader: true });
    strictEqual((await house.say(session, "again")).text, "ok");
  },
);

/** Ways to cut, join and decorate a healthy stream. */
const HARMLESS: readonly Partial<Knobs>[] = [
  { splitEvery: 40 },
  ...[1, 3, 7, 60, -1, -2].map((splitAt) => ({ splitAt })),
  { joinAll: true },
  { unknownEvent: true, extraFields: { new_field: { deep: [1] } } },
  { pingBetweenEvents: true },
];

houseTest(
  "rule 5: any cutting or joining of bytes, comments and unknown fields read alike",
  {},
  async (house) => {
    const answer = speak(think("Ümm 🎉"), say("Zeile\u2028zwei, größer 👍🏽"));
    await warm(house, () => answer);
    for (const knobs of HARMLESS) {
      house.llama.calm();
      house.llama.set(knobs);
      const item = await house.say(session, "go");
      strictEqual(item.text, "Zeile\u2028zwei, größer 👍🏽", JSON.stringify(knobs));
    }
    const thoughts = house.records(session).flatMap((r) =>
      r.kind === "assistant" ? [r.reasoning_content] : []
    );
    deepStrictEqual([...new Set(thoughts.slice(1))], ["Ümm 🎉\n"]);
  },
);

const BROKEN: readonly (readonly [name: string, knobs: Partial<Knobs>])[] = [
  ["an error for lack of context", {
    errorAfter: { deltas: 1, message: "Context size has been exceeded." },
  }],
  ["an error of the parser", { errorAfter: { deltas: 2, message: FORMAT_ERROR } }],
  ["no end mark", { noDone: true }],
  ["no finish", { noFinish: true }],
  ["a proxy's text", { proxyErrorAfter: 1 }],
  ["a body that ends early", { endAfter: 1 }],
  ["a connection that drops", { resetAfter: 1 }],
];
for (const [name, knobs] of BROKEN) {
  houseTest(`rule 6: a stream with ${name} is no answer`, {}, async (house) => {
    await warm(house, () => withKnobs(speak(say("half an answer")), knobs));
    const item = await house.say(session, "go");
    deepStrictEqual([item.kind, item.code], ["notice", "model-stream-broken"]);
    house.llama.script(() => speak(say("Fine.")));
    strictEqual((await house.say(session, "again")).text, "Fine.");
  });
}

houseTest(
  "rule 7: an overflow that ends every stream of the server costs one more try",
  {},
  async (house) => {
    let tries = 0;
    await warm(house, () => {
      if (tries++ > 0) return speak(say("Whole."));
      setTimeout(() => house.llama.exceedContext(), 100);
      return withKnobs(speak(say("half ".repeat(200))), { tokenMs: 10 });
    });
    strictEqual((await house.say(session, "go")).text, "Whole.");
    strictEqual(tries, 2);
  },
);

houseTest(
  "rule 7: what came before a failure is kept, and the same request is sent once more",
  {},
  async (house) => {
    const whole = speak(think("so"), say("The whole answer."));
    await warm(house, inOrder(withKnobs(whole, { resetAfter: 3 }), whole));
    strictEqual((await house.say(session, "go")).text, "The whole answer.");
    const notice = house.records(session).find((r) => r.kind === "notice");
    assert(notice?.kind === "notice" && notice.code === "model-stream-broken");
    assert(notice.text.includes("Until then it had said"), notice.text);
    const [first, second] = asked(house).slice(-2);
    strictEqual(first?.bodyText, second?.bodyText);
    const before = asked(house).length;
    house.llama.script(() => withKnobs(whole, { resetAfter: 1 }));
    strictEqual((await house.say(session, "go on")).code, "model-stream-broken");
    strictEqual(asked(house).length - before, 2, "the tries are bounded");
  },
);

houseTest(
  "rule 8: role deltas may be absent or many, and content null, absent or empty",
  {},
  async (house) => {
    await warm(house, () => speak(silent("<think>\n\n</think>\n\n"), say("ok")));
    for (
      const knobs of [{ noRole: true }, { progressEvents: 500 }, { noRole: true, joinAll: true }]
    ) {
      house.llama.calm();
      house.llama.set(knobs);
      strictEqual((await house.say(session, "go")).text, "ok", JSON.stringify(knobs));
    }
    house.llama.calm();
    house.llama.script((request, state) =>
      request.messages.at(-1)?.role === "user"
        ? withKnobs(speak(call("clock", {})), { noRole: true })
        : passing(request, state)
    );
    strictEqual((await house.say(session, "time?")).text, "Hello.");
    strictEqual(results(house).length, 1);
  },
);
