// What a campaign against the channel runs on: a real gatewayd and a real loopd as processes, a
// Mattermost double that keeps its state on disk and can be restarted, a model that answers each
// message with its own word.
import { seededRandom } from "../../shared/clock/random.ts";
import { GatewaydConfig } from "../../shared/config/gatewayd.ts";
import { LoopdConfig } from "../../shared/config/loopd.ts";
import { socketPath } from "../../shared/wire/sockets.ts";
import { permissions as gatewaydFlags } from "../../roles/gatewayd/permissions.ts";
import { permissions as loopdFlags } from "../../roles/loopd/permissions.ts";
import { startBrokerDouble } from "../doubles/brokerd.ts";
import { startLlamaDouble } from "../doubles/llama/double.ts";
import { call, say, type Script, speak } from "../doubles/llama/turn.ts";
import { startProxy, toolManifest } from "../doubles/loopd_house.ts";
import type { MattermostDouble } from "../doubles/mattermost/double.ts";
import type { RequestEntry } from "../doubles/mattermost/record.ts";
import { type Rig, startRig } from "../doubles/mattermost/rig.ts";
import { isSentPost } from "../doubles/mattermost/safe_posts.ts";
import { startMemoryDouble } from "../doubles/memoryd.ts";
import { wordOf } from "./channel_verdict.ts";
import { keepRunning, type Kept, prepareHome } from "./kept_role.ts";
import { SOURCE } from "../doubles/role_process.ts";

export const FACTOR = 50;

export interface ChannelHouse {
  readonly place: Pick<Rig, "owner" | "bot" | "dm">;
  readonly home: string;
  readonly base: string;
  readonly roles: readonly [gatewayd: Kept, loopd: Kept];
  double(): MattermostDouble;
  /** Words that an answer has been seen for. */
  answered(): ReadonlySet<string>;
  /** Every post that the bot ever sent, as it was sent. */
  sent(): readonly RequestEntry[];
  /** Whether the server is away just now, so that nobody can write. */
  isDown(): boolean;
  /** The server ends and comes back on its port, `awayMs` later, with what its disk holds. */
  restartServer(awayMs: number): Promise<void>;
  /** Ends everything; what is in `base` stays. */
  stop(): Promise<void>;
}

const script: Script = (request) => {
  const asked = request.messages.findLast((message) => message.role === "user")?.content ?? "";
  if (asked.includes("Call the tool clock")) {
    const isDone = request.messages.at(-1)?.role === "tool";
    return isDone ? speak(say("It is.")) : speak(call("clock", {}));
  }
  return speak(say(`Did ${/m[0-9]+/.exec(asked)?.[0] ?? "nothing"} @all https://evil.example`));
};

export async function startChannelHouse(): Promise<ChannelHouse> {
  const base = await Deno.makeTempDir({ prefix: "ck" });
  const home = `${base}/home`;
  const folder = `${base}/server`;
  await Deno.mkdir(folder);
  await prepareHome(home);
  const place = await startRig({ folder, timeScale: 1 / FACTOR });
  const { double, stop: stopParts } = await startParts(home, place.double);
  const roles = await startRoles(base, home, place);
  const answered = new Set<string>();
  const sent: RequestEntry[] = [];
  let now = double;
  let read = 0;
  let isDown = false;
  let restarts = 0;
  const follow = () => {
    const entries = now.traffic(read);
    read += entries.length;
    for (const entry of entries) {
      if (!isSentPost(entry, place.bot.id)) continue;
      sent.push(entry);
      const word = entry.isCommitted && entry.post !== null ? wordOf(entry.post.message) : "";
      if (word !== "") answered.add(word);
    }
  };
  return {
    place,
    home,
    base,
    roles,
    double: () => now,
    isDown: () => isDown,
    answered() {
      follow();
      return answered;
    },
    sent() {
      follow();
      return sent;
    },
    async restartServer(awayMs) {
      isDown = true;
      await now.stop();
      follow();
      // What was recorded is kept here; read back it would only grow.
      await Deno.rename(`${folder}/record.jsonl`, `${folder}/record.${restarts++}.jsonl`);
      await new Promise((resolve) => setTimeout(resolve, awayMs));
      now = (await startRig({ port: now.port, folder, timeScale: 1 / FACTOR })).double;
      read = 0;
      isDown = false;
    },
    async stop() {
      while (isDown) await new Promise((resolve) => setTimeout(resolve, 20));
      for (const role of roles) await role.stop();
      // An answer that a fault slowed down leaves first.
      await pause(400);
      await now.stop();
      await stopParts();
    },
  };
}

/** The model, its proxy, and stand-ins for the roles that are not tried. */
async function startParts(home: string, double: MattermostDouble) {
  const llama = await startLlamaDouble({ script });
  const proxy = startProxy(socketPath(home, "loop-infer/infer"), llama.port);
  const broker = startBrokerDouble(socketPath(home, "loop-broker/broker"), [toolManifest("do_it")]);
  const memory = startMemoryDouble(socketPath(home, "loop-memory/memory"));
  return {
    double,
    async stop() {
      for (const one of [broker, memory, llama, proxy]) await one.stop();
    },
  };
}

async function startRoles(base: string, home: string, { double, bot, owner }: Rig) {
  const { url } = double;
  const token = { file: `${base}/token` };
  await Deno.writeTextFile(token.file, bot.token, { mode: 0o600 });
  const gatewayd = `[mattermost]\nurl = "${url}"\nowner_id = "${owner.id}"\n` +
    `token = { file = "${token.file}" }\n[test]\ntimers_divided_by = ${FACTOR}\n`;
  await Deno.writeTextFile(`${home}/config/gatewayd.toml`, gatewayd);
  await Deno.writeTextFile(
    `${home}/config/loopd.toml`,
    '[inference]\nself_test = "first-turn"\n',
  );
  const at = { home, source: SOURCE, workerFiles: [] };
  const config = GatewaydConfig.parse({ mattermost: { url, token } });
  return [
    keepRunning("gatewayd", home, gatewaydFlags(config, at)),
    keepRunning("loopd", home, loopdFlags(LoopdConfig.parse({}), at)),
  ] as const;
}

/** A die that a seed loads: `dice(6)` is 0 to 5. */
export function loadedDice(seed: number): (sides: number) => number {
  const random = seededRandom(seed);
  return (sides) => {
    const [a = 0, b = 0] = random.bytes(2);
    return (a * 256 + b) % sides;
  };
}

export const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Waits until gatewayd listens. */
export async function listening(house: ChannelHouse): Promise<void> {
  for (let i = 0; i < 1_200; i++) {
    if (house.double().sockets() > 0) return;
    await pause(25);
  }
  throw new Error("gatewayd did not connect");
}
