// A loopd with everything around it: sockets, brokerd's and memoryd's doubles, the model double
// behind a byte forwarder, all in one folder. `restart` is a new loopd on the same files.
import type { Clock } from "../../shared/clock/clock.ts";
import { systemClock } from "../../shared/clock/clock.ts";
import { type Random, seededRandom } from "../../shared/clock/random.ts";
import { LoopdConfig } from "../../shared/config/loopd.ts";
import { denoDisk } from "../../shared/disk/deno_disk.ts";
import type { Disk } from "../../shared/disk/disk.ts";
import { MessageId, SessionId, ulid } from "../../shared/ids/ids.ts";
import type { Label } from "../../shared/labels/label.ts";
import type { Result } from "../../shared/results/result.ts";
import type { SessionRecord } from "../../shared/session_log/records.ts";
import type { Manifest } from "../../shared/tool/manifest.ts";
import { call } from "../../shared/wire/dial.ts";
import type { Said } from "../../shared/wire/exchange.ts";
import { listen, type Listening } from "../../shared/wire/listen.ts";
import {
  LOOP_STATUS,
  LOOP_WATCH,
  OUTBOX_FETCH,
  TURN_CANCEL,
  TURN_SUBMIT,
} from "../../shared/wire/loop.ts";
import { forward } from "../../roles/inferproxy/forwarder.ts";
import { type Loopd, makeLoopd } from "../../roles/loopd/loopd.ts";
import { epochFiles, readRecords } from "../../roles/loopd/session_files.ts";
import { type BrokerDouble, startBrokerDouble } from "./brokerd.ts";
import { type LlamaDouble, type LlamaOptions, startLlamaDouble } from "./llama/double.ts";
import { type MemoryDouble, startMemoryDouble } from "./memoryd.ts";

export type Item = {
  readonly kind: string;
  readonly code: string | null;
  readonly text: string;
  readonly n: number;
  readonly turn: string | null;
};
type LoopEvent = Said<typeof LOOP_WATCH["events"][number]>;

export type LoopdHouse = {
  readonly home: string;
  readonly llama: LlamaDouble;
  readonly broker: BrokerDouble;
  readonly memory: MemoryDouble;
  readonly log: readonly string[];
  readonly fatal: readonly string[];
  loopd(): Loopd;
  /** Submits a message; the answer of the socket. */
  submit(
    session: SessionId,
    text: string,
    id?: string,
    label?: Label | null,
  ): ReturnType<typeof submitTo>;
  /** Submits and waits for the turn's outbox item. */
  say(session: SessionId, text: string): Promise<Item>;
  cancel(session: SessionId): Promise<unknown>;
  /** Waits for an item above `after` that fits. */
  item(fits: (item: Item) => boolean): Promise<Item>;
  records(session: SessionId): SessionRecord[];
  status(): ReturnType<typeof statusOf>;
  restart(): Promise<void>;
  /** Stops loopd alone; only `restart` and `stop` may follow. */
  halt(): Promise<void>;
  restartProxy(): Promise<void>;
  stop(): Promise<void>;
};

export type HouseOptions = {
  readonly config?: unknown;
  readonly llama?: LlamaOptions;
  readonly tools?: readonly Manifest[];
  readonly disk?: Disk;
  readonly clock?: Clock;
  readonly brokerGiveUpMs?: number;
  /** A server on loopback instead of the double. */
  readonly llamaPort?: number;
  readonly llamaHost?: string;
  /** Starts the forwarder in front of the server and gives its socket; in this process when left out. */
  readonly forwarder?: (home: string, address: string) => Promise<Forwarder>;
  readonly seed?: number;
};

export function newSession(seed = 1): SessionId {
  return SessionId.parse(`chat-${ulid(1_800_000_000_000 + seed, seededRandom(seed))}`);
}

const submitTo = (
  path: string,
  session: SessionId,
  text: string,
  id: string,
  label: Label | null,
) =>
  call(path, TURN_SUBMIT, { session, message_id: MessageId.parse(id), label }, {
    upload: new TextEncoder().encode(text),
  });
const statusOf = (path: string) => call(path, LOOP_STATUS, {});

/** A test's configuration over settings that make failures quick. */
export function quickConfig(more: unknown = {}): LoopdConfig {
  const parsed = LoopdConfig.parse(more);
  return { ...parsed, inference: { ...parsed.inference, self_test: "first-turn" } };
}

export type Forwarder = { readonly path: string; stop(): Promise<void> };

type Paths = Record<"owner" | "gateway" | "infer" | "broker" | "memory", string>;
type Running = { readonly loopd: Loopd; end(): Promise<void> };

async function begin(
  home: string,
  paths: Paths,
  options: HouseOptions,
  said: { readonly log: string[]; readonly fatal: string[]; readonly random: Random },
): Promise<Running> {
  const log = (line: string) => void said.log.push(line);
  const stopping = new AbortController();
  const made = makeLoopd({
    ports: {
      clock: options.clock ?? systemClock,
      random: said.random,
      disk: options.disk ?? denoDisk,
      log,
      fatal: (line) => void said.fatal.push(line),
    },
    config: quickConfig(options.config),
    root: `${home}/sessions`,
    sockets: paths,
    startedUnixMs: 0,
    brokerGiveUpMs: options.brokerGiveUpMs ?? 1_000,
    stopping: stopping.signal,
  });
  if (!made.ok) throw new Error(`${made.code}: ${made.detail}`);
  const loopd = made.value;
  await loopd.start();
  const servers: Listening[] = [
    listen({ path: paths.owner, routes: loopd.owner, log }),
    listen({ path: paths.gateway, routes: loopd.gateway, log }),
  ];
  const end = once(async () => {
    stopping.abort();
    await Promise.all(servers.map((one) => one.close()));
    await loopd.stop();
  });
  return { loopd, end };
}

export async function startLoopdHouse(options: HouseOptions = {}): Promise<LoopdHouse> {
  const home = await Deno.makeTempDir({ prefix: "lp" });
  for (const name of ["sessions", "run"]) await Deno.mkdir(`${home}/${name}`);
  const at = (name: string) => `${home}/run/${name}.sock`;
  const own = {
    owner: at("owner"),
    gateway: at("gateway"),
    broker: at("broker"),
    memory: at("memory"),
  };
  const server = await startLlamaDouble(options.llama);
  const llama = { ...server, stop: once(() => server.stop()) };
  const broker = startBrokerDouble(own.broker, options.tools ?? []);
  const memory = startMemoryDouble(own.memory);
  const [host, port] = [options.llamaHost ?? "127.0.0.1", options.llamaPort ?? llama.port];
  const forwarder = () =>
    options.forwarder?.(home, `${host}:${port}`) ??
      Promise.resolve(startProxy(at("infer"), port, host));
  let proxy = await forwarder();
  const paths = { ...own, infer: proxy.path };
  const said = { log: [], fatal: [], random: seededRandom(options.seed ?? 1) };
  let running = await begin(home, paths, options, said);
  let messages = 0;
  const house: LoopdHouse = {
    home,
    llama,
    broker,
    memory,
    log: said.log,
    fatal: said.fatal,
    loopd: () => running.loopd,
    submit: (session, text, id = `m-${++messages}`, label = null) =>
      submitTo(paths.owner, session, text, id, label),
    async say(session, text) {
      const { turn } = value(await house.submit(session, text)).body;
      return await house.item((item) => item.turn === turn);
    },
    cancel: (session) => call(paths.owner, TURN_CANCEL, { session }),
    item: (fits) => waitForItem(paths.owner, fits),
    records: (session) =>
      value(readRecords(denoDisk, epochFiles(`${home}/sessions/${session}`, 0).log)),
    status: () => statusOf(paths.owner),
    async restartProxy() {
      await proxy.stop();
      proxy = await forwarder();
    },
    halt: () => running.end(),
    async restart() {
      await running.end();
      running = await begin(home, paths, options, said);
    },
    async stop() {
      await running.end();
      for (const one of [broker, memory, llama, proxy]) await one.stop();
      await Deno.remove(home, { recursive: true });
    },
  };
  return house;
}

/** A stop that a test may call before the house does. */
function once(stop: () => Promise<void>): () => Promise<void> {
  let stopped: Promise<void> | null = null;
  return () => stopped ??= stop();
}

/** The manifest of a tool that takes anything optional: `call`, `offset`, `limit`, `path`. */
export function toolManifest(name: string): Manifest {
  const number = { type: "integer" as const, description: "n", minimum: 0, maximum: 1_000_000 };
  const text = { type: "string" as const, description: "t", maxLength: 500 };
  const properties = { call: text, path: text, offset: number, limit: number };
  return {
    name,
    description: `The tool ${name}`,
    parameters: { type: "object", properties, required: [], additionalProperties: false },
    paths: [],
    effect: "none",
    network: false,
    scratch: false,
    env: [],
    limits: { timeout_s: 1, output_bytes: 1_000_000, memory_mb: 32, pids: 16 },
    summarise: false,
  };
}

/** inferproxy's own forwarding, in this process. */
export function startProxy(
  path: string,
  port: number,
  hostname = "127.0.0.1",
): Forwarder {
  const listener = Deno.listen({ transport: "unix", path });
  let isStopping = false;
  const dial = () => Deno.connect({ hostname, port });
  const done = forward(listener, dial, 32, () => isStopping);
  return {
    path,
    async stop() {
      isStopping = true;
      listener.close();
      await done;
    },
  };
}

async function waitForItem(path: string, fits: (item: Item) => boolean): Promise<Item> {
  const found: { item: Item | null } = { item: null };
  const over = new AbortController();
  const ended = await call(path, LOOP_WATCH, { after: -1 }, {
    signal: over.signal,
    onEvent: async (event) => {
      if (event.kind !== "outbox_item" || found.item !== null) return;
      const item = await fetchItem(path, event.body.n);
      if (item === null || !fits(item)) return;
      found.item = item;
      over.abort();
    },
  });
  if (found.item !== null) return found.item;
  throw new Error(`The watch ended: ${JSON.stringify(ended)}`);
}

async function fetchItem(path: string, n: number): Promise<Item | null> {
  const pieces: Uint8Array[] = [];
  const reply = await call(path, OUTBOX_FETCH, { n }, {
    onChunk: (bytes) => void pieces.push(bytes),
  });
  if (!reply.ok) return null;
  const text = await new Blob(pieces.map((piece) => piece.slice())).text();
  const { kind, code, turn } = reply.value.body;
  return { n, kind, code, turn, text };
}

/** Every event of a watch until it is closed. */
export function collectEvents(
  house: LoopdHouse,
): { readonly events: LoopEvent[]; stop(): Promise<void> } {
  const events: LoopEvent[] = [];
  const over = new AbortController();
  const watching = call(`${house.home}/run/owner.sock`, LOOP_WATCH, { after: -1 }, {
    signal: over.signal,
    onEvent: (event) => void events.push(event),
  });
  return {
    events,
    async stop() {
      over.abort();
      await watching;
    },
  };
}

/** The value of a result that must be one. */
export function value<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(`${result.code}: ${result.detail}`);
  return result.value;
}
