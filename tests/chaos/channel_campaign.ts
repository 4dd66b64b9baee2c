// The channel under everything that goes wrong between a phone and the model: a real gatewayd and a
// real loopd, killed at random moments, and a Mattermost server whose lines break, which goes deaf,
// limits, restarts, and loses answers after it has carried out what was asked.
import { seededRandom } from "../../shared/clock/random.ts";
import { GatewaydConfig } from "../../shared/config/gatewayd.ts";
import { LoopdConfig } from "../../shared/config/loopd.ts";
import { HOME_FOLDERS } from "../../shared/permissions/places.ts";
import { calledBy, servedBy, socketPath } from "../../shared/wire/sockets.ts";
import { permissions as gatewaydFlags } from "../../roles/gatewayd/permissions.ts";
import { permissions as loopdFlags } from "../../roles/loopd/permissions.ts";
import { startBrokerDouble } from "../doubles/brokerd.ts";
import { startLlamaDouble } from "../doubles/llama/double.ts";
import { call, say, type Script, speak } from "../doubles/llama/turn.ts";
import { startProxy, toolManifest } from "../doubles/loopd_house.ts";
import type { MattermostDouble } from "../doubles/mattermost/double.ts";
import type { RestFault } from "../doubles/mattermost/knobs.ts";
import { startRig } from "../doubles/mattermost/rig.ts";
import { assertSafePosts } from "../doubles/mattermost/safe_posts.ts";
import { startMemoryDouble } from "../doubles/memoryd.ts";

const SOURCE = decodeURIComponent(new URL("../../", import.meta.url).pathname).replace(/\/$/, "");
const FACTOR = 50;
/** Messages that may wait for their answers at once. */
const WINDOW = 6;
const THREADS = 5;
const PER_THREAD = 12;

export interface Outcome {
  readonly messages: number;
  readonly kills: number;
  readonly faults: Readonly<Record<string, number>>;
  /** What was wrong; empty when every message was answered once, in its thread, in order. */
  readonly problems: readonly string[];
}

export interface Campaign {
  readonly messages: number;
  readonly seed: number;
  /** Milliseconds without any new answer after which a message counts as lost. */
  readonly patienceMs: number;
  readonly say?: (line: string) => void;
  /** No trouble at all, and every message begins a thread: to see what memory does. */
  readonly isCalm?: boolean;
}

const script: Script = (request) => {
  const asked = request.messages.findLast((message) => message.role === "user")?.content ?? "";
  if (asked.includes("Call the tool clock")) {
    const isDone = request.messages.at(-1)?.role === "tool";
    return isDone ? speak(say("It is.")) : speak(call("clock", {}));
  }
  return speak(say(`Did ${/m[0-9]+/.exec(asked)?.[0] ?? "nothing"} @all https://evil.example`));
};

type Sent = { readonly id: string; readonly root: string; readonly word: string };

export async function campaign(options: Campaign): Promise<Outcome> {
  const base = await Deno.makeTempDir({ prefix: "ck" });
  const home = `${base}/home`;
  await prepare(home);
  const place = await startRig({ folder: await folderIn(base), timeScale: 1 / FACTOR });
  const world: World = {
    double: place.double,
    port: place.double.port,
    folder: `${base}/server`,
    home,
    dice: dice(options.seed),
    faults: {},
    kills: 0,
    isOver: false,
    isDown: false,
  };
  await Deno.writeTextFile(`${base}/token`, place.bot.token, { mode: 0o600 });
  const gatewayd = `[mattermost]\nurl = "${place.double.url}"\nowner_id = "${place.owner.id}"\n` +
    `token = { file = "${base}/token" }\n[test]\ntimers_divided_by = ${FACTOR}\n`;
  await Deno.writeTextFile(`${home}/config/gatewayd.toml`, gatewayd);
  await Deno.writeTextFile(`${home}/config/loopd.toml`, '[inference]\nself_test = "first-turn"\n');
  const llama = await startLlamaDouble({ script });
  const proxy = startProxy(socketPath(home, "loop-infer/infer"), llama.port);
  const broker = startBrokerDouble(socketPath(home, "loop-broker/broker"), [toolManifest("do_it")]);
  const memory = startMemoryDouble(socketPath(home, "loop-memory/memory"));
  const config = GatewaydConfig.parse({
    mattermost: { url: place.double.url, token: { file: `${base}/token` } },
  });
  const at = { home, source: SOURCE, workerFiles: [] };
  const roles = [
    keepRunning("gatewayd", home, gatewaydFlags(config, at)),
    keepRunning("loopd", home, loopdFlags(LoopdConfig.parse({}), at)),
  ];
  try {
    await listening(world);
    const trouble = options.isCalm === true ? Promise.resolve() : makeTrouble(world, roles);
    trouble.catch(() => {});
    const sent = await converse(world, options, place, () => memoryOf(roles[0]));
    world.isOver = true;
    await trouble;
    const problems = judge(world.double, place, sent);
    problems.push(...roles.flatMap((role) => role.problems));
    return { messages: sent.length, kills: world.kills, faults: world.faults, problems };
  } finally {
    world.isOver = true;
    while (world.isDown) await pause(20);
    for (const role of roles) await role.stop();
    await world.double.stop();
    for (const one of [broker, memory, llama, proxy]) await one.stop();
    await Deno.remove(base, { recursive: true });
  }
}

type World = {
  double: MattermostDouble;
  readonly port: number;
  readonly folder: string;
  readonly home: string;
  readonly dice: (sides: number) => number;
  readonly faults: Record<string, number>;
  kills: number;
  isOver: boolean;
  /** The server is being restarted: nobody can write. */
  isDown: boolean;
};

function dice(seed: number): (sides: number) => number {
  const random = seededRandom(seed);
  return (sides) => {
    const [a = 0, b = 0] = random.bytes(2);
    return (a * 256 + b) % sides;
  };
}

async function folderIn(base: string): Promise<string> {
  await Deno.mkdir(`${base}/server`);
  return `${base}/server`;
}

async function prepare(home: string): Promise<void> {
  for (const name of HOME_FOLDERS) await Deno.mkdir(`${home}/${name}`, { recursive: true });
  for (const role of ["gatewayd", "loopd"] as const) {
    for (const socket of [...servedBy(role), ...calledBy(role)]) {
      await Deno.mkdir(`${home}/run/${socket.split("/")[0]}`, { recursive: true });
    }
  }
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** What the role holds in memory now, in the kernel's words. */
function memoryOf(role: Kept | undefined): string {
  try {
    const status = Deno.readTextFileSync(`/proc/${role?.pid()}/status`);
    return /^VmRSS:\s*(.*)$/m.exec(status)?.[1] ?? "?";
  } catch {
    return "?"; // It was killed a moment ago.
  }
}

interface Kept {
  pid(): number;
  readonly problems: string[];
  kill(): void;
  stop(): Promise<void>;
}

/** A role that is started again whenever it was killed; one that ends by itself is a problem. */
function keepRunning(role: "gatewayd" | "loopd", home: string, flags: readonly string[]): Kept {
  const problems: string[] = [];
  let isStopping = false;
  let child = spawn(role, home, flags);
  const kill = () => {
    try {
      child.kill("SIGKILL");
    } catch {
      // Already gone; its status says how.
    }
  };
  const running = (async () => {
    while (!isStopping) {
      const { signal, code } = await child.status;
      if (isStopping) return;
      if (signal !== "SIGKILL") problems.push(`${role} ended by itself with ${code}`);
      if (problems.length > 3) return;
      child = spawn(role, home, flags);
    }
  })();
  return {
    pid: () => child.pid,
    problems,
    kill,
    async stop() {
      isStopping = true;
      kill();
      await child.status;
      await running;
    },
  };
}

function spawn(role: string, home: string, flags: readonly string[]): Deno.ChildProcess {
  return new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "--no-prompt",
      "--cached-only",
      "--no-remote",
      `--config=${SOURCE}/deno.json`,
      "--v8-flags=--disallow-code-generation-from-strings",
      ...flags,
      `${SOURCE}/roles/${role}/main.ts`,
    ],
    clearEnv: true,
    env: { BOXMAKER_HOME: home, HOME: "/nonexistent", DENO_DIR: `${home}/cache`, NO_COLOR: "1" },
    stdin: "null",
    stdout: "null",
    stderr: Deno.env.get("CHAOS_LOUD") === undefined ? "null" : "inherit",
  }).spawn();
}

async function listening(world: World): Promise<void> {
  for (let i = 0; i < 1_200; i++) {
    if (world.double.sockets() > 0) return;
    await pause(25);
  }
  throw new Error("gatewayd did not connect");
}

const LOSSES: readonly RestFault[] = [
  { method: "POST", path: "^/posts$", action: { kind: "lost", isCommitted: true } },
  { method: "POST", path: "^/posts$", action: { kind: "lost", isCommitted: false } },
  { method: "PUT", path: "/patch$", action: { kind: "lost", isCommitted: true } },
  { method: "POST", path: "^/posts$", action: { kind: "proxy", status: 502, isCommitted: true } },
  { times: 4, action: { kind: "proxy", status: 502, isCommitted: false } },
  { times: 2, action: { kind: "limited", retryAfterS: 1, resetS: 1 } },
  { action: { kind: "limited", retryAfterS: null, resetS: 2 } },
  { method: "POST", path: "^/posts$", action: { kind: "truncated" } },
  { path: "/posts", action: { kind: "wrong-type" } },
  { path: "^/users/me$", action: { kind: "empty", status: 504, isCommitted: false } },
];
const DROPS = ["fin", "rst", "half-open", "empty-close", "deaf", "oversize-close"] as const;

/** One trouble after another until the conversation is over. */
async function makeTrouble(world: World, roles: readonly Kept[]): Promise<void> {
  const { dice: roll } = world;
  const note = (what: string) => {
    world.faults[what] = (world.faults[what] ?? 0) + 1;
  };
  while (!world.isOver) {
    await pause(40 + roll(260));
    if (world.isOver) return;
    const { double } = world;
    const kind = roll(16);
    if (kind < 5) {
      const how = DROPS[roll(DROPS.length)] ?? "fin";
      double.drop(how);
      note(how);
    } else if (kind < 10) {
      const fault = LOSSES[roll(LOSSES.length)];
      if (fault !== undefined) double.fault(fault);
      note(`${fault?.action.kind}`);
    } else if (kind === 10) {
      double.skipSeq();
      note("gap");
    } else if (kind === 11) {
      double.set({ helloWithheld: true });
      double.drop("rst");
      await pause(300);
      world.double.set({ helloWithheld: false });
      note("no hello");
    } else if (kind === 12) {
      double.bounce();
      note("bounce");
    } else if (kind === 13 && roll(3) === 0) {
      await restart(world);
      note("restart");
    } else if (kind >= 14 && roll(2) === 0) {
      roles[kind - 14]?.kill();
      world.kills++;
      note(kind === 14 ? "kill gatewayd" : "kill loopd");
    }
  }
}

/** The server ends and comes back on its port with what its disk holds. */
async function restart(world: World): Promise<void> {
  const { port, folder } = world;
  world.isDown = true;
  await world.double.stop();
  await pause(100 + world.dice(200));
  const again = await startRig({ port, folder, timeScale: 1 / FACTOR });
  world.double = again.double;
  world.isDown = false;
}

type Place = {
  readonly owner: { readonly id: string };
  readonly bot: { readonly id: string };
  readonly dm: string;
};

/** Writes message after message, in threads old and new, and waits until all are answered. */
async function converse(
  world: World,
  options: Campaign,
  place: Place,
  memory: () => string,
): Promise<Sent[]> {
  const sent: Sent[] = [];
  const threads: { root: string; size: number }[] = [];
  let lastCount = 0;
  let quietSince = performance.now();
  const answered = () => {
    const now = answersIn(world.double, place).length;
    if (now !== lastCount) quietSince = performance.now();
    lastCount = now;
    return now;
  };
  while (true) {
    const done = answered();
    if (sent.length === options.messages && done >= sent.length) break;
    if (performance.now() - quietSince > options.patienceMs) break;
    if (!world.isDown && sent.length < options.messages && sent.length - done < WINDOW) {
      sent.push(write(world, place, options.isCalm === true ? [] : threads, `m${sent.length}`));
      if (sent.length % 100 === 0) {
        options.say?.(`${sent.length} written, ${done} answered, gatewayd ${memory()}`);
      }
      await pause(world.dice(60));
    } else await pause(25);
  }
  // What would come twice comes soon.
  await pause(1_500);
  return sent;
}

function write(
  world: World,
  place: Place,
  threads: { root: string; size: number }[],
  word: string,
): Sent {
  const at = world.dice(THREADS);
  const thread = threads[at];
  const isNew = thread === undefined || thread.size >= PER_THREAD;
  const post = world.double.postAs(place.owner.id, {
    channel_id: place.dm,
    message: word,
    root_id: isNew ? "" : thread.root,
  });
  const root = isNew ? post.id : thread.root;
  const kept = { root, size: isNew ? 1 : thread.size + 1 };
  if (thread === undefined) threads.push(kept);
  else threads[at] = kept;
  return { id: post.id, root, word };
}

function answersIn(double: MattermostDouble, place: Place) {
  return double.postsIn(place.dm).filter((post) =>
    post.user_id === place.bot.id && /^Did m[0-9]+ /.test(post.message)
  );
}

function judge(double: MattermostDouble, place: Place, sent: readonly Sent[]): string[] {
  const answers = answersIn(double, place);
  const wordOf = (message: string) => /^Did (m[0-9]+) /.exec(message)?.[1] ?? "";
  const problems = sent.flatMap(({ word, root }) => {
    const own = answers.filter((post) => wordOf(post.message) === word);
    const strays = own.filter((post) => post.root_id !== root).length;
    return [
      ...(own.length === 1 ? [] : [`${word} was answered ${own.length} times`]),
      ...(strays === 0 ? [] : [`${word} was answered in another thread`]),
    ];
  });
  for (const root of new Set(sent.map((one) => one.root))) {
    const asked = sent.filter((one) => one.root === root).map((one) => one.word);
    const told = answers.filter((post) => post.root_id === root).map((post) =>
      wordOf(post.message)
    );
    if (asked.join() !== told.join()) problems.push(`order: ${asked.join()} got ${told.join()}`);
  }
  try {
    assertSafePosts(double.traffic(), { botId: place.bot.id });
  } catch (thrown) {
    problems.push(thrown instanceof Error ? thrown.message : String(thrown));
  }
  return problems;
}
