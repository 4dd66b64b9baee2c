// What tests of loopd's turns share: a test in a house of its own, a model that passes the self-test,
// and short ways to look at what was said, done and sent.
import { deepStrictEqual, strictEqual } from "node:assert";
import type { Clock } from "../../shared/clock/clock.ts";
import { systemClock } from "../../shared/clock/clock.ts";
import type { SessionRecord } from "../../shared/session_log/records.ts";
import type { RequestRecord } from "./llama/record.ts";
import { call, say, type Script, speak } from "./llama/turn.ts";
import { type HouseOptions, type LoopdHouse, newSession, startLoopdHouse } from "./loopd_house.ts";

/** The session that most tests speak in. */
export const session = newSession();

/** What a healthy model says to the self-test; anything else gets a greeting. */
export const passing: Script = (request) => {
  const last = request.messages.at(-1);
  return last?.content.includes("Call the tool clock")
    ? speak(call("clock", {}))
    : speak(say("Hello."));
};

/** A test in a house of its own whose self-test is played by a script before the test's takes over. */
export function houseTest(
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

/** Lets the self-test pass with one friendly turn, then plays `script`. */
export async function warm(house: LoopdHouse, script: Script): Promise<void> {
  const item = await house.say(session, "good morning");
  strictEqual(item.text, "Hello.");
  house.llama.script(script);
}

export const viaCall = (name: string, args: unknown) =>
  call("call_tool", { name, arguments: JSON.stringify(args) });

export const results = (house: LoopdHouse) =>
  house.records(session).flatMap((r) => r.kind === "tool_result" ? [r] : []);

export const losses = (house: LoopdHouse) =>
  house.records(session).flatMap((r) => r.kind === "cache_loss" ? [r] : []);

export const lastEnd = (house: LoopdHouse): SessionRecord | undefined =>
  house.records(session).findLast((r) => r.kind === "turn_end");

/** The completions that were asked for, in order. */
export const asked = (house: LoopdHouse): RequestRecord[] =>
  house.llama.record.filter((one) => one.path === "/v1/chat/completions");

export const until = async (claim: () => boolean): Promise<void> => {
  while (!claim()) await systemClock.sleep(10);
};

/** A clock whose sleeps are short, so that waits before another try cost a test nothing. */
export const hurried: Clock = {
  ...systemClock,
  sleep: (ms, signal) => systemClock.sleep(Math.min(ms, 20), signal),
};
