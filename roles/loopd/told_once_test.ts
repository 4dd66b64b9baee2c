// Guards the README's sentences on the end of a turn and on accepted messages: what the owner is told
// of a turn and what its log says are one thing, whichever write in between is refused.
import { deepStrictEqual, ok as assert, strictEqual } from "node:assert";
import { denoDisk } from "../../shared/disk/deno_disk.ts";
import { type Disk, DiskError } from "../../shared/disk/disk.ts";
import { ok } from "../../shared/results/result.ts";
import { listen, on } from "../../shared/wire/listen.ts";
import { SESSION_OPEN, SESSION_RAISE } from "../../shared/wire/loop_broker.ts";
import { newSession, startLoopdHouse, value } from "../../tests/doubles/loopd_house.ts";
import { call, inOrder, say, type Script, speak, waitFor } from "../../tests/doubles/llama/turn.ts";
import {
  houseTest,
  hurried,
  lastEnd,
  passing,
  session,
  until,
} from "../../tests/doubles/loopd_rig.ts";

/** The real disk, which has no room, once, for the first write that holds `text` after `arm`. */
function refusingOnce(text: string): { readonly disk: Disk; arm(): void; hasRefused(): boolean } {
  let state: "idle" | "armed" | "done" = "idle";
  const disk: Disk = {
    ...denoDisk,
    open(path, mode) {
      const file = denoDisk.open(path, mode);
      const write = (bytes: Uint8Array) => {
        if (state === "armed" && new TextDecoder().decode(bytes).includes(text)) {
          state = "done";
          throw new DiskError("no_space", "No space left");
        }
        return file.write(bytes);
      };
      return { ...file, write };
    },
  };
  return { disk, arm: () => void (state = "armed"), hasRefused: () => state === "done" };
}

const refusal = {
  kind: "refusal",
  status: 400,
  type: "invalid_request_error",
  message: "no",
} as const;
const empty = speak(say(" "));
const ENDS: readonly (readonly [name: string, Script])[] = [
  ["a reply", inOrder(speak(say("Yes.")), speak(say("Twice.")))],
  ["a refusal of the server", inOrder(refusal, speak(say("Too late.")))],
  ["an empty answer", inOrder(empty, speak(say("Too late.")))],
  ["a reply after a call", inOrder(speak(call("clock", {})), speak(say("Noon.")))],
];
for (const [name, script] of ENDS) {
  for (const write of ['"kind":"turn_end"', '"kind":"notice"', '"kind":"item"']) {
    Deno.test(`runTurn() tells of ${name} once, as its log has it, when ${write} is refused`, async () => {
      const { disk, arm, hasRefused } = refusingOnce(write);
      const house = await startLoopdHouse({ disk, clock: hurried });
      try {
        house.llama.script(passing);
        await house.say(session, "one");
        house.llama.script(script);
        arm();
        const { turn } = value(await house.submit(session, "two")).body;
        const isEnd = () => {
          const end = lastEnd(house);
          return end?.kind === "turn_end" && end.turn === turn ? end.outcome : null;
        };
        await until(() => isEnd() !== null);
        assert(hasRefused() || write.includes("notice"));
        const lines = (await Deno.readTextFile(`${house.home}/sessions/outbox.jsonl`)).split("\n");
        const told = lines.filter((line) => line.includes(turn)).map((line) => JSON.parse(line).is);
        deepStrictEqual(told, [isEnd() === "answered" ? "reply" : "notice"]);
        strictEqual(value(await house.submit(session, "two", "m-2")).body.is_duplicate, true);
      } finally {
        await house.stop();
      }
    });
  }
}

houseTest("submit() counts the turns of every session that wait for the slot", {
  config: { sessions: { queued_turns: 2 } },
}, async (house) => {
  const gate = Promise.withResolvers<void>();
  await house.say(session, "warm");
  house.llama.script(() => speak(waitFor(gate.promise), say("ok")));
  const turns: string[] = [];
  for (const seed of [1, 2, 3]) {
    turns.push(value(await house.submit(newSession(seed), "go")).body.turn);
  }
  await until(() => house.llama.record.at(-1)?.firstByteMs !== null);
  const refused = await house.submit(newSession(4), "one too many");
  strictEqual(refused.ok ? "ok" : refused.code, "queue-full");
  const { turns_running, turns_waiting } = value(await house.status()).body;
  deepStrictEqual([turns_running, turns_waiting], [1, 2]);
  gate.resolve();
  for (const turn of turns) await house.item((item) => item.turn === turn);
});

houseTest(
  "submit() leaves a session marked while its message waits for brokerd",
  {},
  async (house) => {
    const label = { class: "private", untrusted: true } as const;
    for (let seed = 1; seed <= 32; seed++) await house.say(newSession(seed), "hello");
    await house.broker.goAway();
    const gate = Promise.withResolvers<void>();
    let isAsked = false;
    const server = listen({
      path: `${house.home}/run/broker.sock`,
      log: () => {},
      routes: [
        on(SESSION_OPEN, async (asked) => {
          isAsked ||= asked.session === session;
          if (asked.session === session) await gate.promise;
          return ok({
            kind: "session_opened",
            body: { session: asked.session, label, catalogs: [] },
          });
        }),
        on(
          SESSION_RAISE,
          ({ session }) => ok({ kind: "session_raised", body: { session, label } }),
        ),
      ],
    });
    const never = Promise.withResolvers<void>();
    const first = house.submit(session, "a page", "m-late", label);
    await until(() => isAsked);
    await house.say(newSession(33), "hello");
    house.llama.script(() => speak(waitFor(never.promise), say("x")));
    gate.resolve();
    value(await first);
    const marks = [...Deno.readDirSync(`${house.home}/sessions/open`)].map((one) => one.name);
    assert(marks.includes(session), "a start must find the accepted turn");
    never.resolve();
    await server.close();
  },
);

Deno.test("openOrCreate() takes up what a start could not: no turn and no call is left behind", async () => {
  let isBroken = false;
  const disk: Disk = {
    ...denoDisk,
    open(path, mode) {
      if (isBroken && path.endsWith("/0.jsonl")) throw new DiskError("io", "Input/output error");
      return denoDisk.open(path, mode);
    },
  };
  const house = await startLoopdHouse({ disk });
  try {
    const gate = Promise.withResolvers<void>();
    house.broker.tool("clock", { run: () => ({ output: "noon" }), until: gate.promise });
    house.llama.script(passing);
    await house.say(session, "one");
    house.llama.script(() => speak(call("clock", {})));
    const { turn } = value(await house.submit(session, "two")).body;
    await until(() => house.broker.requests.length > 0);
    isBroken = true;
    await house.restart();
    isBroken = false;
    gate.resolve();
    // The self-test of the new process comes before the two turns.
    house.llama.script((request, state) => {
      const last = request.messages.at(-1);
      if (last?.role === "tool" && request.messages.some((one) => one.content === "two")) {
        return speak(say("Noon."));
      }
      return last?.content === "three" ? speak(say("Third.")) : passing(request, state);
    });
    strictEqual((await house.say(session, "three")).text, "Third.");
    strictEqual((await house.item((item) => item.turn === turn)).text, "Noon.");
    strictEqual(house.broker.runs.length, 1);
  } finally {
    await house.stop();
  }
});

houseTest(
  "recover() tells the owner of what it cut, also when no turn is open",
  {},
  async (house) => {
    await house.say(session, "one");
    const log = `${house.home}/sessions/${session}/0.jsonl`;
    await Deno.writeTextFile(log, '{"v":1,"n":9,"prev":"', { append: true });
    await house.restart();
    const told = await house.item((item) => item.code === "session-repaired");
    assert(told.text.includes("21 unfinished bytes"), told.text);
  },
);
