// Kills a real loopd at random moments of a scripted conversation, starts it again each time, and
// gives the finished log in a form that does not depend on when things happened.
import { systemClock } from "../../shared/clock/clock.ts";
import { seededRandom } from "../../shared/clock/random.ts";
import { LoopdConfig } from "../../shared/config/loopd.ts";
import { denoDisk } from "../../shared/disk/deno_disk.ts";
import { MessageId, SessionId, ulid } from "../../shared/ids/ids.ts";
import type { SessionRecord } from "../../shared/session_log/records.ts";
import { call as ask } from "../../shared/wire/dial.ts";
import { LOOP_WATCH, TURN_SUBMIT } from "../../shared/wire/loop.ts";
import { calledBy, servedBy, socketPath } from "../../shared/wire/sockets.ts";
import { HOME_FOLDERS } from "../../shared/permissions/places.ts";
import { epochFiles, readRecords } from "../../roles/loopd/session_files.ts";
import { permissions } from "../../roles/loopd/permissions.ts";
import { type BrokerDouble, startBrokerDouble } from "../doubles/brokerd.ts";
import { call, say, type Script, speak, think } from "../doubles/llama/turn.ts";
import { startLlamaDouble } from "../doubles/llama/double.ts";
import { startProxy, toolManifest } from "../doubles/loopd_house.ts";
import { SOURCE, startRole } from "../doubles/role_process.ts";
import { startMemoryDouble } from "../doubles/memoryd.ts";

const TURNS = 10;

/** What a run left behind. */
export type Finished = {
  readonly log: readonly string[];
  /** Tool runs by tool and arguments. */
  readonly runs: readonly string[];
  readonly items: readonly string[];
  readonly kills: number;
};

/** Two calls of one turn, the second after the first; unique arguments in every turn. */
const script: Script = (request) => {
  const last = request.messages.at(-1);
  const asked = request.messages.findLast((message) => message.role === "user")?.content ?? "";
  if (asked.includes("Call the tool clock")) {
    return last?.role === "tool" ? speak(say("It is.")) : speak(call("clock", {}));
  }
  const done = request.messages.slice(request.messages.findLastIndex((m) => m.role === "user") + 1)
    .filter((message) => message.role === "tool").length;
  if (done < 2) {
    const inner = JSON.stringify({ path: `/${asked}/${done}` });
    return speak(think(`Step ${done}.`), call("call_tool", { name: "do_it", arguments: inner }));
  }
  return speak(think("Done."), say(`Did ${asked}: ${last?.content}`));
};

/** Plays the conversation under `kills` kills (0 = none). Throws when the log is damaged. */
export async function campaign(kills: number, seed: number): Promise<Finished> {
  const home = await Deno.makeTempDir({ prefix: "lk" });
  for (const name of HOME_FOLDERS) await Deno.mkdir(`${home}/${name}`);
  for (const socket of [...servedBy("loopd"), ...calledBy("loopd")]) {
    await Deno.mkdir(`${home}/run/${socket.split("/")[0]}`, { recursive: true });
  }
  await Deno.writeTextFile(`${home}/config/loopd.toml`, '[inference]\nself_test = "first-turn"\n');
  const llama = await startLlamaDouble({ script });
  const proxy = startProxy(socketPath(home, "loop-infer/infer"), llama.port);
  const broker = startBrokerDouble(socketPath(home, "loop-broker/broker"), [toolManifest("do_it")]);
  broker.tool("do_it", (args) => ({ output: JSON.stringify(args) }));
  const memory = startMemoryDouble(socketPath(home, "loop-memory/memory"));
  const session = SessionId.parse(`chat-${ulid(1, seededRandom(seed))}`);
  const killer = startKiller(home, epochFiles(`${home}/sessions/${session}`, 0).log, kills, seed);
  try {
    const items = await converse(home, session);
    await killer.stop();
    const read = readRecords(denoDisk, epochFiles(`${home}/sessions/${session}`, 0).log);
    if (!read.ok) throw new Error(`${read.code}: ${read.detail}`);
    checkRequests(
      llama.record.flatMap((one) => one.bodyText.includes("task0") ? one.bodyText : []),
    );
    return { log: plain(read.value), runs: runsOf(broker), items, kills: killer.done() };
  } finally {
    await killer.stop();
    for (const one of [broker, memory, llama, proxy]) await one.stop();
    await Deno.remove(home, { recursive: true });
  }
}

function runsOf(broker: BrokerDouble): string[] {
  return broker.runs.map((run) => `${run.tool} ${run.args}`);
}

/** Throws when a request does not begin with all messages of the one before it, also over kills. */
function checkRequests(bodies: readonly string[]): void {
  const head = (text: string) => text.slice(0, text.indexOf('],"tools":'));
  bodies.forEach((text, i) => {
    if (head(text).startsWith(head(bodies[i - 1] ?? text))) return;
    throw new Error(`Request ${i} does not extend the one before it`);
  });
}

/**
 * Keeps a loopd running, and kills it `kills` times at random moments. One in eight is told to stop,
 * which must end it cleanly, whatever it was doing.
 */
function startKiller(home: string, log: string, kills: number, seed: number) {
  const random = seededRandom(seed);
  let done = 0;
  let isStopping = false;
  const stopped = Promise.withResolvers<void>();
  let child = spawn(home);
  const run = async () => {
    while (!isStopping) {
      let how: "SIGKILL" | "SIGTERM" = "SIGKILL";
      if (done < kills) {
        const [a = 0, b = 0] = random.bytes(2);
        const over = new AbortController();
        // One in four dies while it starts, one right after its log grew, the others while they serve.
        const moment = a % 4 === 0
          ? systemClock.sleep(b * 2, over.signal)
          : a % 4 === 1
          ? grown(log, over.signal).then(() => systemClock.sleep(b / 32, over.signal))
          : serving(home, over.signal).then(() => systemClock.sleep(b * 2, over.signal));
        await Promise.race([moment, child.status, stopped.promise]);
        over.abort();
        if (isStopping) break;
        if (a % 8 === 2) how = "SIGTERM";
        try {
          child.kill(how);
          done++;
        } catch {
          // It has ended by itself; the status below says how.
        }
      }
      const status = await child.status;
      if (isStopping) break;
      const isClean = how === "SIGTERM" && status.code === 0;
      if (status.signal !== how && !isClean) {
        const last = Deno.readTextFileSync(`${home}/logs/loopd.log`).slice(-2_000);
        throw new Error(`loopd ended with ${status.code} at ${how}:\n${last}`);
      }
      child = spawn(home);
    }
  };
  const running = run();
  let ending: Promise<void> | null = null;
  return {
    done: () => done,
    stop: () =>
      ending ??= (async () => {
        isStopping = true;
        stopped.resolve();
        try {
          child.kill("SIGKILL");
        } catch {
          // Already gone.
        }
        await child.status;
        await running;
      })(),
  };
}

/** Resolves soon after a file has grown: its writer may not have synced it yet. */
async function grown(path: string, signal: AbortSignal): Promise<void> {
  const size = () => {
    try {
      return Deno.statSync(path).size;
    } catch {
      // Not there yet.
      return 0;
    }
  };
  const before = size();
  while (!signal.aborted && size() === before) await systemClock.sleep(1, signal);
}

/** Resolves when loopd accepts the owner's connections. */
async function serving(home: string, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      const path = socketPath(home, "owner-loop/admin");
      (await Deno.connect({ transport: "unix", path })).close();
      return;
    } catch {
      await systemClock.sleep(10, signal);
    }
  }
}

function spawn(home: string): Deno.ChildProcess {
  const place = { home, source: SOURCE, workerFiles: [] };
  return startRole("loopd", home, permissions(LoopdConfig.parse({}), place));
}

/** Sends each message until it is accepted, and waits for its reply before the next. */
async function converse(home: string, session: SessionId): Promise<string[]> {
  const path = socketPath(home, "owner-loop/admin");
  const items: string[] = [];
  for (let i = 0; i < TURNS; i++) {
    const turn = await submit(path, session, i);
    items.push(await itemOf(path, turn));
  }
  return items;
}

async function submit(path: string, session: SessionId, i: number): Promise<string> {
  const body = { session, message_id: MessageId.parse(`m-${i}`), label: null };
  for (;;) {
    const upload = new TextEncoder().encode(`task${i}`);
    const reply = await ask(path, TURN_SUBMIT, body, { upload });
    if (reply.ok) return reply.value.body.turn;
    if (!["peer-down", "frame-closed"].includes(reply.code)) {
      throw new Error(`${reply.code}: ${reply.detail}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function itemOf(path: string, turn: string): Promise<string> {
  const found: { kind: string | null } = { kind: null };
  while (found.kind === null) {
    const over = new AbortController();
    await ask(path, LOOP_WATCH, { after: -1 }, {
      signal: over.signal,
      onEvent: (event) => {
        if (event.kind !== "outbox_item" || event.body.turn !== turn) return;
        found.kind = event.body.kind;
        over.abort();
      },
    });
    if (found.kind === null) await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return found.kind;
}

/** The records without what depends on the moment; ids by the order in which they appear. */
function plain(records: readonly SessionRecord[]): string[] {
  const names = new Map<string, string>();
  const named = (id: string) => {
    const name = names.get(id) ?? `#${names.size}`;
    names.set(id, name);
    return name;
  };
  return records.filter((record) =>
    record.kind !== "notice" && record.kind !== "cache_loss" && record.kind !== "open"
  ).map((record) => {
    const { time_unix_ms: _time, ...rest } = record;
    const text = JSON.stringify("timings" in rest ? { ...rest, timings: null } : rest);
    return text.replace(/[ct]-[0-9A-Z]{26}/g, named);
  });
}
