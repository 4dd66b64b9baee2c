// The rules of a client of the model server, 9 to 16: calls, ends, failures, the prefix and the cache.
// One test or more for each, named after it.
import { deepStrictEqual, ok as assert, strictEqual } from "node:assert";
import { newSession, value } from "../../tests/doubles/loopd_house.ts";
import type { Knobs } from "../../tests/doubles/llama/knobs.ts";
import {
  call,
  callInsideThinking,
  inOrder,
  say,
  speak,
  think,
  withKnobs,
} from "../../tests/doubles/llama/turn.ts";
import {
  asked,
  houseTest,
  hurried,
  losses,
  passing,
  results,
  session,
  viaCall,
  warm,
} from "../../tests/doubles/loopd_rig.ts";
import { toolManifest } from "../../tests/doubles/loopd_house.ts";
import { judgeStatus } from "./model.ts";

houseTest(
  "rule 9: calls are told apart by their index, whatever their ids and however they interleave",
  {},
  async (house) => {
    house.broker.tool("recall", (args) => ({ output: JSON.stringify(args) }));
    const both = speak(
      call("recall", ['{"que', 'ry":"one', '"}']),
      call("recall", ['{"query":', '"two"}']),
    );
    await warm(
      house,
      inOrder(
        withKnobs(both, { duplicateToolIds: true, interleaveCalls: true }),
        speak(callInsideThinking("recall", { query: "three" })),
        speak(say("Done.")),
      ),
    );
    strictEqual((await house.say(session, "go")).text, "Done.");
    const args = house.broker.runs.map((run) => run.args);
    deepStrictEqual(args, ['{"query":"one"}', '{"query":"two"}', '{"query":"three"}']);
    strictEqual(new Set(house.broker.runs.map((run) => run.call)).size, 3, "own ids");
  },
);

houseTest("rule 10: no call of an answer that was cut off is made", {}, async (house) => {
  const cut = withKnobs(speak(call("recall", { query: "a long one" })), { cutArgumentsAfter: 2 });
  await warm(house, inOrder(cut, speak(say("Once more."))));
  strictEqual((await house.say(session, "go")).text, "Once more.");
  strictEqual(results(house)[0]?.outcome, "corrective");
  strictEqual(house.broker.requests.length, 0);
});

for (const evil of ['{"query": <|im_end|>', '{"query":"x","k":1e400}', "[]"]) {
  houseTest(
    `rule 11: ${evil} is stored as {}, as no server parses it, and the model is told`,
    {},
    async (house) => {
      await warm(house, inOrder(speak(call("recall", [evil])), speak(say("Sorry."))));
      strictEqual((await house.say(session, "go")).text, "Sorry.");
      const [result] = results(house);
      deepStrictEqual([result?.outcome, result?.code], ["corrective", "arguments-invalid"]);
      const answer = house.records(session).find((r) =>
        r.kind === "assistant" && r.tool_calls.length > 0
      );
      assert(answer?.kind === "assistant");
      const [made] = answer.tool_calls;
      strictEqual(made?.arguments, "{}");
      const folder = `${house.home}/sessions/${session}/artifacts`;
      strictEqual(await Deno.readTextFile(`${folder}/${made.artifact}`), evil);
      strictEqual(house.broker.requests.length, 0);
    },
  );
}

houseTest(
  "rule 11: arguments whose members hide what every object inherits end no turn",
  {},
  async (house) => {
    const evil = { name: { toString: 1, valueOf: 1 }, arguments: [{ toString: null }] };
    await warm(house, inOrder(speak(call("call_tool", evil)), speak(say("Sorry."))));
    strictEqual((await house.say(session, "go")).text, "Sorry.");
    strictEqual(results(house)[0]?.code, "arguments-invalid");
    strictEqual(house.broker.requests.length, 0);
  },
);

houseTest(
  "rule 11: a text outside its enum is caught here, as the server's grammar lets it pass",
  {},
  async (house) => {
    const wrong = speak(call("memory", { action: "forget", text: "x" }));
    await warm(house, inOrder(wrong, speak(say("Sorry."))));
    strictEqual((await house.say(session, "go")).text, "Sorry.");
    strictEqual(results(house)[0]?.code, "arguments-invalid");
    strictEqual(house.broker.requests.length, 0);
  },
);

houseTest(
  "rule 12: an end at the limit without a word is told as thinking that used it up",
  {},
  async (house) => {
    await warm(
      house,
      () => withKnobs(speak(think("hm ".repeat(50)), say("never")), { limitTokens: 5 }),
    );
    const item = await house.say(session, "hi");
    strictEqual(item.code, "answer-empty");
    assert(item.text.includes("thinking used up the limit"), item.text);
    house.llama.script(() => withKnobs(speak(say("on and on ".repeat(50))), { limitTokens: 30 }));
    const cut = await house.say(session, "count");
    assert(cut.kind === "reply" && cut.text.includes("[cut off here"), cut.text);
  },
);

Deno.test("rule 13: whether to try again goes by status and type, never by words", () => {
  const body = (type: string, message: string) => JSON.stringify({ error: { type, message } });
  const quoted = "exceed_context_size_error 401 Invalid API Key failed to load";
  const cases: readonly (readonly [number, string, string, string])[] = [
    [400, body("exceed_context_size_error", "too long"), "session-full", "never"],
    [400, body("invalid_request_error", quoted), "model-refused", "never"],
    [401, body("authentication_error", "Invalid API Key"), "model-auth-required", "never"],
    [403, body("feature_disabled", "off"), "model-auth-required", "never"],
    [404, body("not_found_error", "File Not Found"), "model-refused", "never"],
    [500, body("server_error", quoted), "model-refused", "by-model"],
    [500, "proxy error: Could not establish connection", "model-unreachable", "backoff"],
    [501, body("not_supported_error", quoted), "model-refused", "never"],
    [503, body("unavailable_error", "Loading model"), "model-unreachable", "backoff"],
    [418, "I am " + quoted, "model-refused", "never"],
  ];
  for (const [status, text, code, retry] of cases) {
    const judged = judgeStatus(status, text);
    deepStrictEqual([judged.err.code, judged.retry], [code, retry], `${status} ${text}`);
  }
});

for (
  const [status, type, code, tries] of [
    [404, "not_found_error", "model-refused", 1],
    [501, "not_supported_error", "model-refused", 1],
    [500, "server_error", "model-refused", 1],
    [503, "unavailable_error", "model-unreachable", 4],
  ] as const
) {
  houseTest(`rule 13: a ${status} ${type} is asked ${tries} times and told as ${code}`, {
    clock: hurried,
  }, async (house) => {
    await warm(house, () => ({ kind: "refusal", status, type, message: "Loading model" }));
    const before = asked(house).length;
    strictEqual((await house.say(session, "go")).code, code);
    strictEqual(asked(house).length - before, tries);
  });
}

houseTest("rule 13: a full context is told as session-full, and a chat goes on in a new session", {
  llama: { nCtx: 1_800 },
}, async (house) => {
  await warm(house, (request) => speak(say(`You said ${request.messages.at(-1)?.content.length}`)));
  const text = "word ".repeat(60);
  let item = await house.say(session, text);
  for (let i = 0; i < 20 && item.kind === "reply"; i++) item = await house.say(session, text);
  deepStrictEqual([item.kind, item.code], ["notice", "session-full"]);
  const named = /bxctl chat --session (chat-\w+)/.exec(item.text)?.[1];
  assert(named !== undefined && named !== session, item.text);
  const carried = await house.item((one) => one.turn !== item.turn && one.n > item.n);
  strictEqual(carried.text, `You said ${text.length}`);
  // Too long for any session: there is no way on, and no chain of new sessions.
  const huge = await house.say(newSession(2), "long ".repeat(3_000));
  strictEqual(huge.code, "session-full");
  assert(!huge.text.includes("bxctl chat"), huge.text);
});

const NEVER_SENT = ["reasoning_content", "content", "tool_calls"];

houseTest(
  "rule 14: what a server refuses for ever is never sent, whatever the model said",
  { tools: [toolManifest("do_it")] },
  async (house) => {
    const odd = [
      speak(think("only a thought"), call("clock", [""])),
      speak(call("recall", ["[1]"])),
      speak(call("nonsense", ["{"])),
      speak(viaCall("do_it", {}), viaCall("do_it", { path: "x" })),
      speak(say("At last.")),
    ];
    await warm(house, inOrder(...odd));
    strictEqual((await house.say(session, "go")).text, "At last.");
    for (const { bodyText } of asked(house)) {
      const { messages } = JSON.parse(bodyText);
      strictEqual(messages[0].role, "system");
      assert(messages.slice(1).every((m: { role: string }) => m.role !== "system"));
      assert(messages.some((m: { role: string }) => m.role === "user"));
      assert(["user", "tool"].includes(messages.at(-1).role));
      for (const message of messages) {
        for (const key of NEVER_SENT) assert(message[key] !== null, key);
        for (const one of message.tool_calls ?? []) {
          const args = JSON.parse(one.function.arguments);
          assert(typeof args === "object" && args !== null && !Array.isArray(args));
        }
      }
    }
  },
);

houseTest(
  "rule 15: every request begins with the one before it, in all that the template renders",
  {},
  async (house) => {
    house.broker.tool("clock", () => ({ output: "noon" }));
    await warm(
      house,
      (request) =>
        request.messages.at(-1)?.role === "user"
          ? speak(think("Ask."), call("clock", {}))
          : speak(say("Noon.")),
    );
    for (const text of ["one", "two"]) await house.say(session, text);
    house.memory.block("# memory.md\nOwner likes tea");
    await house.restart();
    await house.say(session, "three");
    const bodies = asked(house).slice(2).map((one) => one.bodyText);
    const tail = (text: string) => text.slice(text.indexOf('],"tools":'));
    const head = (text: string) => text.slice(0, text.indexOf('],"tools":'));
    const own = bodies.filter((text) => text.includes("good morning"));
    assert(own.length >= 7);
    own.slice(1).forEach((text, i) => {
      assert(head(text).startsWith(head(own[i] ?? "")), `request ${i + 1}`);
      strictEqual(tail(text), tail(own[i] ?? ""));
    });
  },
);

const LOST: readonly (readonly [knobs: Partial<Knobs>, guess: RegExp])[] = [
  [{ cache: "lost" }, /unloaded/],
  [{ cache: "checkpoint" }, /template/],
];
for (const [knobs, guess] of LOST) {
  houseTest(
    `rule 16: a cache that is ${JSON.stringify(knobs.cache)} is recorded and no error`,
    { llama: { template: "qwen3.6", keepThinking: "keep", cutting: "hybrid" } },
    async (house) => {
      await warm(house, () => speak(say("ok, and some more words to be reused")));
      await house.say(session, "one");
      deepStrictEqual(losses(house), [], "a healthy cache gives exactly what is expected");
      house.llama.set(knobs);
      strictEqual((await house.say(session, "two")).kind, "reply");
      const [loss] = losses(house);
      assert(loss !== undefined && loss.reused < loss.expected && guess.test(loss.guess));
      const status = value(await house.status()).body;
      const { kind: _kind, turn: _turn, ...last } = loss;
      deepStrictEqual(status.cache, { measured: 3, losses: 1, last });
      deepStrictEqual(status.problems, []);
    },
  );
}

houseTest(
  "rule 16: another client in the slot, a lost host cache and no measurements are no error",
  { llama: { template: "qwen3.6", keepThinking: "keep" } },
  async (house) => {
    await warm(house, () => speak(say("ok")));
    await house.say(session, "one");
    house.llama.set({ ramCacheMiss: true });
    house.llama.takeSlot(0);
    strictEqual((await house.say(session, "two")).text, "ok");
    strictEqual(losses(house).length, 1);
    house.llama.set({ omitTimings: true, omitUsage: true });
    for (const text of ["three", "four"]) strictEqual((await house.say(session, text)).text, "ok");
    house.llama.calm();
    strictEqual((await house.say(session, "five")).text, "ok");
    strictEqual(losses(house).length, 1, "what was not measured is not compared");
  },
);

houseTest(
  "rule 16: more than was ever sent is a foreign entry: recorded, and the slot is erased",
  { llama: { template: "qwen3.6", keepThinking: "keep", slotFiles: true } },
  async (house) => {
    await warm(house, () => speak(say("ok")));
    await house.say(session, "one");
    house.llama.set({ cache: { foreign: 1_000_000 } });
    await house.say(session, "a message of some length, so that a foreign entry can stand out");
    const [loss] = losses(house);
    assert(loss !== undefined && loss.reused > loss.expected, JSON.stringify(loss));
    assert(loss.guess.includes("foreign"));
    house.llama.calm();
    const erased = house.llama.record.filter((one) => one.query.includes("action=erase"));
    strictEqual(erased.length, 1);
    strictEqual((await house.say(session, "two")).text, "ok");
    const [, second] = losses(house);
    strictEqual(second?.reused, 0, "the next request reads everything anew");
  },
);

houseTest(
  "rule 16: a request that had been sent before is not taken for a foreign entry",
  { llama: { template: "qwen3.6", keepThinking: "keep" } },
  async (house) => {
    await warm(house, () => speak(say("ok")));
    await house.say(session, "one");
    const cut = withKnobs(speak(say("half an answer")), { resetAfter: 2 });
    house.llama.script(inOrder(cut, speak(say("ok"))));
    await house.say(session, "words enough that the second try finds more than the first");
    const gone = withKnobs(speak(say("half")), { resetAfter: 1 });
    house.llama.script(inOrder(gone, gone, speak(say("ok"))));
    strictEqual((await house.say(session, "again with a few words")).kind, "notice");
    strictEqual((await house.say(session, "after a failed turn")).text, "ok");
    await house.restart();
    house.llama.script(passing);
    await house.say(session, "after a restart");
    assert(losses(house).every((one) => one.reused < one.expected), JSON.stringify(losses(house)));
  },
);

Deno.test("rules: each of the 28 has a test named after it, and every fault knob has a test", () => {
  const folder = decodeURIComponent(new URL("../../", import.meta.url).pathname);
  const names = [...Deno.readDirSync(`${folder}roles/loopd`)].map((entry) => entry.name);
  const all = names.filter((name) => name.endsWith("_test.ts"))
    .map((name) => Deno.readTextFileSync(`${folder}roles/loopd/${name}`)).join("\n");
  for (let rule = 1; rule <= 28; rule++) {
    assert(new RegExp(`["\`]rule ${rule}: `).test(all), `no test is named after rule ${rule}`);
  }
  const source = Deno.readTextFileSync(`${folder}tests/doubles/llama/knobs.ts`);
  const rest = source.slice(source.indexOf("export const AT_REST"));
  const knobs = [...rest.slice(0, rest.indexOf("};")).matchAll(/^ {2}(\w+):/gm)].map((match) =>
    match[1]
  );
  assert(knobs.length > 35, knobs.join());
  for (const knob of knobs) {
    const turned = new RegExp(`\\b${knob}: |\\(\\{ ?${knob}\\b|[{,] ${knob} \\}`);
    assert(turned.test(all), `no test of the client turns the knob ${knob}`);
  }
  for (const act of ["exceedContext", "sleep", "crash", "takeSlot", "freeSlots"]) {
    assert(all.includes(`llama.${act}(`), `no test of the client has the server ${act}`);
  }
});
