// The checks of router mode against the real server with the small real model: nothing that only
// looks loads or wakes a model; a model that is unloaded in the middle of an answer is asked again.
import { systemClock } from "../../shared/clock/clock.ts";
import { call } from "../../shared/wire/dial.ts";
import { PROMPT_BILL } from "../../shared/wire/loop.ts";
import { startInferproxy } from "../doubles/inferproxy_process.ts";
import {
  collectEvents,
  type LoopdHouse,
  newSession,
  startLoopdHouse,
  value,
} from "../doubles/loopd_house.ts";
import { startRealRouter } from "../doubles/real_llama.ts";
import type { DeviceCheck } from "./checks.ts";
import { SMALL_MODEL } from "./inference.ts";

const MODEL = SMALL_MODEL.inference.model;
const SLEEP_S = 8;
const LONG = "Tell me a long story about a lighthouse, a boat and a storm.";

/** The checks; null when `sh deploy/bootstrap.sh model` has not run here. */
export async function routerChecks(): Promise<DeviceCheck[] | null> {
  const router = await startRealRouter({ model: MODEL, sleepS: SLEEP_S });
  if (router === null) return null;
  const house = await startLoopdHouse({
    llamaPort: router.port,
    config: SMALL_MODEL,
    forwarder: startInferproxy,
  });
  try {
    return await drive(house, `http://127.0.0.1:${router.port}`);
  } finally {
    await house.stop();
    await router.stop();
  }
}

async function drive(house: LoopdHouse, url: string): Promise<DeviceCheck[]> {
  const session = newSession(7);
  const checks: DeviceCheck[] = [];
  const check = (what: string, figure: string, limit: string) =>
    void checks.push({
      ...{ check: `router: ${what}`, figure, limit },
      verdict: figure === limit ? "pass" : "fail",
    });
  const look = async () => {
    value(await house.status());
    value(await call(`${house.home}/run/owner.sock`, PROMPT_BILL, {}));
    return await stateOf(url);
  };
  check("status and prompt of an unloaded model", await look(), "unloaded");
  const first = await house.say(session, "Hello.");
  check("the first message loads it", first.code ?? first.kind, "reply");
  check("state after the answer", await stateOf(url), "loaded");
  const cut = await unloadedInMidStream(house, url);
  check("an answer that an unload cuts off is asked for again", cut, "reply, tried again once");
  const until = systemClock.monotonicMs() + 60_000;
  while (await stateOf(url) !== "sleeping" && systemClock.monotonicMs() < until) {
    await systemClock.sleep(500);
  }
  check("status and prompt of a sleeping model", await look(), "sleeping");
  return checks;
}

async function unloadedInMidStream(house: LoopdHouse, url: string): Promise<string> {
  const session = newSession(8);
  const watched = collectEvents(house);
  const { turn } = value(await house.submit(session, LONG)).body;
  const hasBegun = () =>
    watched.events.some((one) => one.kind === "turn_delta" && one.body.turn === turn);
  while (!hasBegun()) await systemClock.sleep(5);
  const body = JSON.stringify({ model: MODEL });
  await (await fetch(`${url}/models/unload`, { method: "POST", body })).text();
  const item = await house.item((one) => one.turn === turn);
  await watched.stop();
  const again =
    house.records(session).filter((one) =>
      one.kind === "notice" && one.text.startsWith("Tried again")
    ).length;
  return `${item.code ?? item.kind}, tried again ${again === 1 ? "once" : `${again} times`}`;
}

/** What the router's own list says of the model. */
async function stateOf(url: string): Promise<string> {
  const { data } = await (await fetch(`${url}/models`)).json();
  const own = data.find((one: { readonly id: string }) => one.id === MODEL);
  return String(own?.status?.value);
}
