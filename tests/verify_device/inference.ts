// The inference checks against a real model server: a whole loopd and a real inferproxy, with stand-ins
// for brokerd and memoryd, hold a conversation that calls a tool in every turn.
import { deepStrictEqual } from "node:assert";
import { systemClock } from "../../shared/clock/clock.ts";
import { cacheUses } from "../../shared/session_log/cache_use.ts";
import { call } from "../../shared/wire/dial.ts";
import { PROMPT_BILL } from "../../shared/wire/loop.ts";
import {
  collectEvents,
  type Item,
  type LoopdHouse,
  newSession,
  startLoopdHouse,
  toolManifest,
  value,
} from "../doubles/loopd_house.ts";
import { startInferproxy } from "../doubles/inferproxy_process.ts";
import type { DeviceCheck } from "./checks.ts";

export interface Device {
  readonly host: string;
  readonly port: number;
  /** loopd's configuration as its file would give it. */
  readonly config: unknown;
  readonly turns: number;
  /** Told when a turn has ended. */
  readonly onTurn?: (turn: number) => void;
}

const SOURCE = decodeURIComponent(new URL("../../", import.meta.url).pathname);
const WORDS =
  "plan letter garden kitchen river window bread summer music travel winter candle boat " +
  "orchard forest market harbour piano bridge lantern";
const PLACES =
  "door gate clock stove bench shelf lamp well barn chest table fence tower chair sofa " +
  "mirror basket hedge cellar attic";
/** The settings of the small real model; any other server brings its own. */
export const SMALL_MODEL = {
  inference: {
    model: "smollm2-135m",
    examples: `${SOURCE}deploy/config/examples.smollm2.json`,
    sampling: { temperature: 0 },
  },
};

export async function inferenceChecks(device: Device): Promise<DeviceCheck[]> {
  const house = await startLoopdHouse({
    llamaHost: device.host,
    llamaPort: device.port,
    config: device.config,
    tools: [toolManifest("read_file")],
    forwarder: startInferproxy,
  });
  try {
    house.memory.block(await Deno.readTextFile(`${SOURCE}memory/soul.md`));
    const bill = value(await call(`${house.home}/run/owner.sock`, PROMPT_BILL, {})).body;
    const examples = bill.lines.find((line) => line.part === "example exchanges")?.tokens ?? 0;
    const plain = bill.total - examples;
    const greeted = await house.say(newSession(3), "Hello.");
    const tested = value(await house.status()).body.self_test;
    const checks = [
      check("a first answer", greeted.code ?? "came", "came", { pass: greeted.kind === "reply" }),
      ...tested.map((one) => check(one.check, one.state, "ok", stateOf(one.state))),
      check("tokens of the baseline", `${bill.total} by ${bill.counted_by}`, "at most 3000", {
        pass: bill.total <= 3_000 && bill.counted_by === "server",
      }),
      check("of these, without example exchanges", `${plain}`, "at most 1500", {
        pass: plain <= 1_500,
      }),
    ];
    if (greeted.kind !== "reply") return checks;
    return [...checks, ...await converse(house, device), await cancelled(house)];
  } finally {
    await house.stop();
  }
}

type Verdict = { readonly pass: boolean } | "skip";

function check(what: string, figure: string, limit: string, verdict: Verdict): DeviceCheck {
  const told = verdict === "skip" ? "skip" : verdict.pass ? "pass" : "fail";
  return { check: `inference: ${what}`, figure, limit, verdict: told };
}

function stateOf(state: string): Verdict {
  return state.startsWith("not-applicable") ? "skip" : { pass: state.startsWith("ok") };
}

/**
 * Turns that read a file each; among them inferproxy is killed and started, loopd is restarted and
 * memory is written.
 */
async function converse(house: LoopdHouse, device: Device): Promise<DeviceCheck[]> {
  const session = newSession();
  const [words, places] = [WORDS.split(" "), PLACES.split(" ")];
  let content = "";
  house.broker.tool("read_file", () => ({ output: content }));
  const watched = collectEvents(house);
  let answered = 0;
  for (let i = 0; i < device.turns; i++) {
    content = `The spare key hangs behind the blue ${places[i % places.length]}.\n`;
    const path = `/tmp/boxmaker-papers/${words[i % words.length]}.txt`;
    const item = await house.say(session, `Read the file ${path} and tell me what it says.`);
    if (item.kind === "reply" && item.text.includes(content.trim())) answered++;
    if (i === Math.floor(device.turns / 2)) {
      house.memory.block("# memory.md\nThe owner likes tea.");
      await house.restart();
    }
    if (i === Math.floor(device.turns / 4)) await house.restartProxy();
    device.onTurn?.(i + 1);
  }
  await watched.stop();
  const hasProgress = watched.events.some((one) =>
    one.kind === "turn_state" && one.body.state === "reading" && one.body.percent === 100
  );
  const records = house.records(session);
  const uses = cacheUses(records).filter((use) => use.expected !== null);
  const exact = uses.filter((use) => use.reused === use.expected);
  const losses = records.filter((record) => record.kind === "cache_loss");
  const runs = house.broker.runs.length;
  const most = Math.ceil(device.turns * 0.9);
  return [
    check("turns that called the tool", `${runs} of ${device.turns}`, `at least ${most}`, {
      pass: runs >= most,
    }),
    check("turns that told the file's words", `${answered} of ${device.turns}`, "told", "skip"),
    check(
      "requests that reused exactly what was expected",
      `${exact.length} of ${uses.length}`,
      "all",
      {
        pass: uses.length >= device.turns && exact.length === uses.length,
      },
    ),
    check("cache losses over both restarts and a memory write", `${losses.length}`, "0", {
      pass: losses.length === 0,
    }),
    check("progress while reading", hasProgress ? "told" : "not told", "told", {
      pass: hasProgress,
    }),
  ];
}

/** Cancels an answer in the middle; the notice comes when the slot has been seen free. */
async function cancelled(house: LoopdHouse): Promise<DeviceCheck> {
  const session = newSession(2);
  const watched = collectEvents(house);
  const { turn } = value(await house.submit(session, "Hello.")).body;
  const isReading = () =>
    watched.events.some((one) => one.kind === "turn_state" && one.body.turn === turn);
  while (!isReading()) await systemClock.sleep(5);
  const fromMs = systemClock.monotonicMs();
  await house.cancel(session);
  const item: Item = await house.item((one) => one.turn === turn);
  const tookMs = Math.round(systemClock.monotonicMs() - fromMs);
  await watched.stop();
  const again = await house.say(session, "Hello.");
  const pass = again.kind === "reply" && tookMs < 30_000;
  return check("slot free after a cancel", `${tookMs} ms, ${item.code ?? "replied"}`, "30 s", {
    pass,
  });
}

/** Throws with the table when a check failed. */
export function assertPassed(checks: readonly DeviceCheck[]): void {
  deepStrictEqual(checks.filter((one) => one.verdict === "fail"), []);
}
