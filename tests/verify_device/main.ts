// `deno task verify-device [--only inference|router|channel] [--json] [--url http://host:port] [--turns N]
// [--post]`: the checks that need real parts, against what is configured; a part that is not there is
// skipped by name. With --post the bot makes one post in the owner's direct channel and deletes it.
//
// The model server is the one of --url, else of BOXMAKER_LLAMA_URL, else of {home}/config, else the
// small real model of `sh deploy/bootstrap.sh model`.
import { parseArgs } from "node:util";
import { readConfig } from "../../shared/boot/boot.ts";
import { InferproxyConfig } from "../../shared/config/inferproxy.ts";
import { LoopdConfig } from "../../shared/config/loopd.ts";
import { denoDisk } from "../../shared/disk/deno_disk.ts";
import { configFile } from "../../shared/permissions/places.ts";
import { REAL_LLAMA_MISSING, startRealLlama } from "../doubles/real_llama.ts";
import { type Channel, channelChecks } from "./channel.ts";
import { CHANNEL_MISSING, findChannel } from "./find_channel.ts";
import { checkTable, type DeviceCheck } from "./checks.ts";
import { type Device, inferenceChecks, SMALL_MODEL } from "./inference.ts";
import { routerChecks } from "./router.ts";

const PARTS = ["inference", "router", "channel"];

type Found = Pick<Device, "host" | "port" | "config"> & { readonly stop: () => Promise<void> };

/** A `host:port` or an http URL as its two halves. */
function placeOf(address: string) {
  const { hostname, port } = new URL(address.includes("://") ? address : `http://${address}`);
  return { host: hostname, port: Number(port || "80") };
}

async function findServer(url: string | undefined): Promise<Found | null> {
  const home = Deno.env.get("BOXMAKER_HOME");
  const given = url ?? Deno.env.get("BOXMAKER_LLAMA_URL");
  const stop = () => Promise.resolve();
  const loopd = home === undefined
    ? null
    : readConfig(LoopdConfig, denoDisk, configFile(home, "loopd"));
  const config = loopd?.ok ? loopd.value : {};
  if (given !== undefined) return { ...placeOf(given), config, stop };
  if (home !== undefined) {
    const proxy = readConfig(InferproxyConfig, denoDisk, configFile(home, "inferproxy"));
    if (proxy.ok) return { ...placeOf(proxy.value.upstream.address), config, stop };
  }
  const real = await startRealLlama();
  if (real === null) return null;
  return { host: "127.0.0.1", port: real.port, config: SMALL_MODEL, stop: () => real.stop() };
}

async function inference(url: string | undefined, turns: number): Promise<DeviceCheck[]> {
  const found = await findServer(url);
  if (found === null) {
    return [{ check: "inference", figure: REAL_LLAMA_MISSING, limit: "", verdict: "skip" }];
  }
  try {
    const onTurn = (turn: number) => console.error(`inference: turn ${turn} of ${turns}`);
    return await inferenceChecks({ ...found, turns, onTurn });
  } finally {
    await found.stop();
  }
}

/** The small real model alone: another router's models are their owner's to unload. */
async function router(): Promise<DeviceCheck[]> {
  const missing = { figure: REAL_LLAMA_MISSING, limit: "", verdict: "skip" } as const;
  return await routerChecks() ?? [{ check: "router", ...missing }];
}

async function channel(post: Channel["post"]): Promise<DeviceCheck[]> {
  const found = findChannel((name) => Deno.env.get(name));
  const whole = { check: "channel", limit: "" };
  if (found === null) return [{ ...whole, figure: CHANNEL_MISSING, verdict: "skip" }];
  if (!found.ok) {
    return [{ ...whole, figure: `${found.code}: ${found.detail}`, verdict: "fail" }];
  }
  return await channelChecks({ ...found.value, post });
}

const { values } = parseArgs({
  args: Deno.args,
  options: {
    only: { type: "string" },
    json: { type: "boolean" },
    url: { type: "string" },
    turns: { type: "string", default: "20" },
    post: { type: "boolean", default: false },
  },
});
const turns = Number(values.turns);
if ((values.only !== undefined && !PARTS.includes(values.only)) || !(turns >= 2 && turns <= 200)) {
  console.error(
    `usage: verify-device [--only ${PARTS.join("|")}] [--json] [--url URL] [--turns N] [--post]`,
  );
  Deno.exit(2);
}
const isWanted = (part: string) => values.only === undefined || values.only === part;
const checks = [
  ...(isWanted("inference") ? await inference(values.url, turns) : []),
  ...(isWanted("router") ? await router() : []),
  ...(isWanted("channel") ? await channel(values.post ? "make" : "leave") : []),
];
console.log(values.json === true ? JSON.stringify({ checks }) : checkTable(checks));
Deno.exit(checks.some((one) => one.verdict === "fail") ? 1 : 0);
