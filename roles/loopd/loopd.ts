// loopd put together: its stores, its clients, its sessions, and the tables it serves. Everything it
// needs from outside is passed in, so that tests run it as the process does.
import type { LoopdConfig } from "../../shared/config/loopd.ts";
import { SessionId, ulid } from "../../shared/ids/ids.ts";
import { ok, type Result } from "../../shared/results/result.ts";
import { VERSION } from "../../shared/version/version.ts";
import type { Route } from "../../shared/wire/listen.ts";
import { type BaselineParts, newBaseline } from "./baseline.ts";
import { makeBroker } from "./broker.ts";
import { makeCacheTally } from "./cache.ts";
import { readExamples } from "./examples.ts";
import { makeHub } from "./hub.ts";
import { makeMemory } from "./memory.ts";
import { makeModel } from "./model.ts";
import { modelState } from "./model_facts.ts";
import { unixHttp } from "./model_http.ts";
import { openSessionMarks } from "./open_sessions.ts";
import { openOutbox, type Outbox } from "./outbox.ts";
import type { Ports } from "./ports.ts";
import { gatewayRoutes, type LoopStatus, ownerRoutes, type Served } from "./requests.ts";
import { makeSelfTest } from "./self_check.ts";
import { sessionIds } from "./session_files.ts";
import { makeSessions, type Sessions } from "./sessions.ts";
import { makeSlots } from "./slots.ts";
import type { House } from "./turn.ts";

const STATUS_MS = 800;
const BROKER_GIVE_UP_MS = 60_000;

export interface LoopdOptions {
  readonly ports: Ports;
  readonly config: LoopdConfig;
  /** `{home}/sessions`, an existing folder. */
  readonly root: string;
  readonly sockets: { readonly infer: string; readonly broker: string; readonly memory: string };
  readonly startedUnixMs: number;
  readonly brokerGiveUpMs?: number;
  /** Aborts when the process stops; whatever waits for another process ends then. */
  readonly stopping: AbortSignal;
}

export interface Loopd {
  readonly gateway: readonly Route[];
  readonly owner: readonly Route[];
  /** Takes up what is unfinished and begins to watch and to test; resolves when that has begun. */
  start(): Promise<void>;
  /** Ends it after `stopping` has aborted and its sockets are closed. */
  stop(): Promise<void>;
}

/** Opens the stores. Fails with `config-invalid`, `session-damaged` (the outbox) or the disk's codes. */
export function makeLoopd(options: LoopdOptions): Result<Loopd> {
  const { ports, config, root } = options;
  const path = config.inference.examples;
  const examples = path === undefined ? ok([]) : readExamples(ports.disk, path);
  if (!examples.ok) return examples;
  const marks = openSessionMarks(ports, `${root}/open`);
  if (!marks.ok) return marks;
  const outbox = openOutbox(ports, `${root}/outbox.jsonl`);
  if (!outbox.ok) return outbox;
  const parts = makeParts(options, outbox.value, examples.value);
  const { house, memory, selfTest, baseline } = parts;
  const own = { house, memory, root, refusal: selfTest.refusal };
  const sessions = makeSessions({ ...own, marks: marks.value, examples: examples.value });
  const status = () => statusOf(options, { ...parts, sessions });
  const served: Served = { house, sessions, root, status, baseline };
  let background: Promise<unknown> = Promise.resolve();
  return ok({
    gateway: gatewayRoutes(served),
    owner: ownerRoutes(served),
    async start() {
      await sessions.recover();
      background = Promise.all([
        house.broker.watch(),
        config.inference.self_test === "boot" ? selfTest.atBoot() : null,
      ]);
    },
    async stop() {
      await sessions.stop();
      await background;
      outbox.value.close();
    },
  });
}

/** The clients, the slots and the self-test. */
function makeParts(options: LoopdOptions, outbox: Outbox, examples: BaselineParts["examples"]) {
  const { ports, config, sockets, stopping } = options;
  const { clock, log } = ports;
  const { model: name, first_byte_s, silence_s } = config.inference;
  const at = { http: unixHttp(sockets.infer), clock, model: name, stopping };
  const limits = { firstByteMs: first_byte_s * 1_000, silenceMs: silence_s * 1_000 };
  const model = makeModel({ ...at, ...limits });
  const quick = makeModel({ ...at, firstByteMs: STATUS_MS, silenceMs: STATUS_MS });
  const hub = makeHub();
  outbox.onItem(hub.item);
  const memory = makeMemory(sockets.memory, log, stopping);
  const giveUpMs = options.brokerGiveUpMs ?? BROKER_GIVE_UP_MS;
  const broker = makeBroker({ path: sockets.broker, clock, log, giveUpMs, stopping });
  const baseline = async () => {
    const block = await memory.block();
    const session = SessionId.parse(`chat-${ulid(0, { bytes: (n) => new Uint8Array(n) })}`);
    return newBaseline({ ports, config, examples }, session, block.ok ? block.value.text : "");
  };
  const selfTest = makeSelfTest({ model, config, clock, baseline, log, stopping });
  const clients = { model, broker, hub, outbox, ready: selfTest.ready };
  const own = { slots: makeSlots(), slotUsers: new Map(), cache: makeCacheTally() };
  const house: House = { ports, config, stopping, ...clients, ...own, background: new Set() };
  return { house, memory, selfTest, quick, baseline };
}

type Parts = ReturnType<typeof makeParts> & { readonly sessions: Sessions };

async function statusOf(
  options: LoopdOptions,
  { house, sessions, selfTest, quick }: Parts,
): Promise<LoopStatus> {
  const seen = await modelState(quick, options.config.inference.model);
  const facts = selfTest.facts();
  const ids = sessionIds(options.ports.disk, options.root);
  const { running, waiting } = sessions.counts();
  const found = [
    selfTest.refusal(),
    sessions.problem(),
    seen.ok ? null : seen,
    house.broker.problem(),
  ];
  const problems = found.flatMap((one) =>
    one === null ? [] : [{ code: one.code, detail: one.detail.slice(0, 1_000) }]
  );
  const doing = running === 0 ? "Idle" : `${running} turns under way, ${waiting} waiting`;
  return {
    version: VERSION,
    started_unix_ms: options.startedUnixMs,
    summary: problems[0] === undefined ? doing : `${doing}; ${problems[0].code}`,
    problems,
    sessions: ids.ok ? ids.value.length : 0,
    turns_running: running,
    turns_waiting: waiting,
    outbox_pending: house.outbox.pending(),
    self_test: selfTest.report().map((one) => ({ ...one, state: one.state.slice(0, 1_000) })),
    model: {
      is_reachable: seen.ok,
      build: facts?.build ?? null,
      model: facts?.model ?? null,
      n_ctx: facts?.nCtx ?? null,
      slots: facts?.slots ?? null,
    },
    cache: house.cache.report(),
  };
}
