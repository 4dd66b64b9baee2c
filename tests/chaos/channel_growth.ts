// What gatewayd needs for many threads and many reconnections: a real gatewayd under its real flags,
// with a heap that a leak would fill, before a Mattermost double and a stand-in for loopd.
import { GatewaydConfig } from "../../shared/config/gatewayd.ts";
import { socketPath } from "../../shared/wire/sockets.ts";
import { permissions } from "../../roles/gatewayd/permissions.ts";
import { loopDouble } from "../doubles/gatewayd.ts";
import { serveLoop } from "../doubles/loop_socket.ts";
import { type Rig, startRig } from "../doubles/mattermost/rig.ts";
import { assertSafePosts } from "../doubles/mattermost/safe_posts.ts";
import { placeByKey } from "../doubles/post_places.ts";
import { keepRunning, type Kept, prepareHome } from "./kept_role.ts";
import { pssOf, SOURCE } from "../doubles/role_process.ts";

const FACTOR = 50;
/** Megabytes of old objects; what gatewayd keeps for good has to fit. */
const HEAP_MB = 24;
const WINDOW = 12;

export interface Growth {
  /** Kilobytes after the first and after the second half of the threads, each the least of its end. */
  readonly firstKb: number;
  readonly secondKb: number;
}

export interface Storm {
  readonly reconnections: number;
  /** Signed-in sockets at the end. */
  readonly sockets: number;
  /** Requests a quiet second later, and file descriptors before and after. */
  readonly requestsAfter: number;
  readonly filesBefore: number;
  readonly filesAfter: number;
  readonly answers: number;
}

const MOST_MORE_KB = 6_000;

/** What is wrong: memory that grew with the second half. */
export function growthProblems({ firstKb, secondKb }: Growth): string[] {
  const moreKb = secondKb - firstKb;
  return moreKb <= MOST_MORE_KB ? [] : [`the second half took ${moreKb} kB more`];
}

/** What is wrong: anything that there is more than once after many reconnections. */
export function stormProblems(storm: Storm, times: number): string[] {
  const { reconnections, sockets, requestsAfter, filesBefore, filesAfter, answers } = storm;
  return [
    // A busy machine may miss a ping now and then; one that multiplies doubles at least.
    ...(reconnections >= times && reconnections <= times * 1.3 + 2
      ? []
      : [`${times} breaks led to ${reconnections} connections`]),
    ...(sockets === 1 ? [] : [`${sockets} connections at the end`]),
    ...(requestsAfter <= 12 ? [] : [`${requestsAfter} requests in a quiet second`]),
    ...(filesAfter <= filesBefore + 3 ? [] : [`${filesBefore} open files became ${filesAfter}`]),
    ...(answers === 1 ? [] : [`one message had ${answers} answers`]),
  ];
}

export interface GrowthHouse extends AsyncDisposable {
  /** Two times `threads` threads, one message each, all answered. */
  grow(threads: number, say?: (line: string) => void): Promise<Growth>;
  /** Breaks the connection again and again, then asks one thing. */
  storm(times: number, say?: (line: string) => void): Promise<Storm>;
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

async function until(what: string, holds: () => boolean): Promise<void> {
  for (let i = 0; i < 3_000; i++) {
    if (holds()) return;
    await pause(10);
  }
  throw new Error(what);
}

export async function startGrowthHouse(): Promise<GrowthHouse> {
  const base = await Deno.makeTempDir({ prefix: "cg" });
  const home = `${base}/home`;
  await prepareHome(home);
  const rig = await startRig({ timeScale: 1 / 50 });
  const { url } = rig.double;
  const token = { file: `${base}/token` };
  await Deno.writeTextFile(token.file, rig.bot.token, { mode: 0o600 });
  const toml = `[mattermost]\nurl = "${url}"\nowner_id = "${rig.owner.id}"\n` +
    `token = { file = "${token.file}" }\n[test]\ntimers_divided_by = ${FACTOR}\n`;
  await Deno.writeTextFile(`${home}/config/gatewayd.toml`, toml);
  const loop = loopDouble();
  const server = serveLoop(socketPath(home, "gateway-loop/loop"), loop);
  const flags = permissions(GatewaydConfig.parse({ mattermost: { url, token } }), {
    home,
    source: SOURCE,
    workerFiles: [],
  });
  const role = keepRunning("gatewayd", home, flags, `,--max-old-space-size=${HEAP_MB}`);
  const fail = () => {
    const log = Deno.readTextFileSync(`${home}/logs/gatewayd.log`).slice(-2_000);
    if (role.problems.length > 0) throw new Error(`${role.problems.join("; ")}\n${log}`);
  };
  await until("gatewayd did not connect", () => rig.double.sockets() === 1);
  return {
    grow: (threads, say = () => {}) => grow(rig, role, threads, { fail, say }),
    storm: (times, say = () => {}) => storm(rig, role, times, { fail, say }),
    async [Symbol.asyncDispose]() {
      await role.stop();
      await server.close();
      await rig.double.stop();
      await Deno.remove(base, { recursive: true });
      assertSafePosts(rig.double.traffic(), {
        botId: rig.bot.id,
        threadOf: placeByKey(rig.double.post, loop.sessionOf),
      });
    },
  };
}

/** Follows the answers as they come. */
function answersOf({ double, bot }: Rig) {
  let read = 0;
  const answered = new Set<string>();
  return () => {
    const entries = double.traffic(read);
    read += entries.length;
    for (const one of entries) {
      if (one.kind !== "request" || one.userId !== bot.id || !one.isCommitted) continue;
      const message = one.post?.message ?? "";
      if (message.startsWith("Answer to: ")) answered.add(message);
    }
    return answered.size;
  };
}

interface Watch {
  /** Throws when gatewayd has ended. */
  readonly fail: () => void;
  readonly say: (line: string) => void;
}

async function grow(rig: Rig, role: Kept, threads: number, watch: Watch): Promise<Growth> {
  const { fail, say } = watch;
  const answers = answersOf(rig);
  const before = answers();
  const post = (i: number) =>
    rig.double.postAs(rig.owner.id, { channel_id: rig.dm, message: `thread ${i}` });
  const half = async (from: number): Promise<number> => {
    let leastKb = Infinity;
    for (let i = from; i < from + threads; i++) {
      await until(`thread ${i} was not answered`, () => {
        fail();
        return i - (answers() - before) < WINDOW;
      });
      post(i);
      if (i % 50 === 0) say(`${i} of ${2 * threads} threads, ${pssOf(role.pid())} kB`);
      if (i >= from + threads * 0.7) leastKb = Math.min(leastKb, pssOf(role.pid()) ?? Infinity);
    }
    await until("not all was answered", () => answers() - before >= from + threads);
    return leastKb;
  };
  const firstKb = await half(0);
  return { firstKb, secondKb: await half(threads) };
}

function filesOf(pid: number): number {
  return [...Deno.readDirSync(`/proc/${pid}/fd`)].length;
}

const DROPS = ["rst", "fin", "empty-close"] as const;

async function storm(rig: Rig, role: Kept, times: number, watch: Watch): Promise<Storm> {
  const { fail, say } = watch;
  const { double } = rig;
  const pid = role.pid();
  const upgrades = () =>
    double.traffic().filter((one) => one.kind === "socket" && one.what === "upgraded").length;
  const filesBefore = filesOf(pid);
  const from = upgrades();
  let seen = from;
  for (let i = 0; i < times; i++) {
    double.drop(DROPS[i % DROPS.length] ?? "fin");
    await until(`reconnection ${i} did not come`, () => {
      fail();
      return upgrades() > seen && double.sockets() === 1;
    });
    seen = upgrades();
    if (i % 25 === 0) say(`${i} of ${times} reconnections`);
  }
  const answers = answersOf(rig);
  const before = answers();
  double.postAs(rig.owner.id, { channel_id: rig.dm, message: `after ${times}` });
  await until("nothing was answered after the storm", () => answers() > before);
  await pause(500);
  const quiet = double.traffic().length;
  await pause(1_000);
  const requestsAfter = double.traffic(quiet).filter((one) => one.kind === "request").length;
  await until("no connection at the end", () => double.sockets() > 0);
  return {
    reconnections: upgrades() - from,
    sockets: double.sockets(),
    requestsAfter,
    filesBefore,
    filesAfter: filesOf(pid),
    answers: answers() - before,
  };
}
