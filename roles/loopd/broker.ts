// brokerd as loopd asks it. Every tool call goes there, whatever it is; this module only carries.
//
// 1. A call is named by its id, so asking again joins or answers and never repeats an effect.
// 2. What comes later is told on one watch; after a gap every open call is asked for anew.
// 3. While brokerd is away a call waits; when it stays away, whether the call ran is not known,
//    unless it was never sent.
import type { Clock } from "../../shared/clock/clock.ts";
import type { CallId, SessionId } from "../../shared/ids/ids.ts";
import type { Label } from "../../shared/labels/label.ts";
import { ERRORS } from "../../shared/results/codes.ts";
import { type Err, err, ok, type Result } from "../../shared/results/result.ts";
import { readCatalog } from "../../shared/tool/catalog.ts";
import { joinBytes } from "../../shared/wire/chunks.ts";
import { encodeUtf8 } from "../../shared/wire/codec.ts";
import { call } from "../../shared/wire/dial.ts";
import type { BodyOf } from "../../shared/wire/exchange.ts";
import {
  BROKER_WATCH,
  CALL_CANCEL,
  type Pending,
  RESULT_ACK,
  RESULT_FETCH,
  SESSION_OPEN,
  SESSION_RAISE,
  TOOL_CATALOG,
  TOOL_REQUEST,
  type ToolResponse,
} from "../../shared/wire/loop_broker.ts";
import type { AuditHead } from "../../shared/wire/parts.ts";
import type { KnownTool } from "./core_tools.ts";
import type { SessionKind } from "./session_kind.ts";

export type Response = BodyOf<typeof ToolResponse>;
type PendingState = BodyOf<typeof Pending>;

/** A call as it is asked for; `args` is JSON text. */
export type ToolCall = Omit<BodyOf<typeof TOOL_REQUEST["request"]>, "witness"> & {
  readonly args: string;
};

export type CallEnd =
  | { readonly is: "answered"; readonly response: Response; readonly output: Uint8Array }
  /** Nothing ran, or nobody knows whether something did. */
  | { readonly is: "failed" | "unknown"; readonly err: Err };

export interface BrokerOptions {
  readonly path: string;
  readonly clock: Clock;
  readonly log: (line: string) => void;
  /** How long a call waits for a brokerd that does not answer. */
  readonly giveUpMs: number;
  /** Aborts when the process stops; nothing is waited for then. */
  readonly stopping: AbortSignal;
}

const RETRY_MS = 500;
/** Asked for again at this interval even if nobody said anything. */
const POLL_MS = 60_000;

type Waiter = { wake(): void; onState(state: Pick<PendingState, "state" | "approval">): void };
type State = {
  readonly waiters: Map<CallId, Waiter>;
  readonly catalogs: Map<string, KnownTool[]>;
  witness: AuditHead | null;
  problem: Err | null;
};

export type Broker = ReturnType<typeof makeBroker>;

export function makeBroker(options: BrokerOptions) {
  const state: State = { waiters: new Map(), catalogs: new Map(), witness: null, problem: null };
  const { path } = options;
  const until = { signal: options.stopping };
  return {
    /** The session's label and the digests of the catalogues in force. */
    async open(session: SessionId, kind: SessionKind) {
      const body = { session, kind, job: null, workspace: null };
      const reply = await call(path, SESSION_OPEN, body, until);
      return reply.ok ? ok(reply.value.body) : reply;
    },
    async raise(session: SessionId, label: Label, why: string): Promise<Result<Label>> {
      const reply = await call(path, SESSION_RAISE, { session, label, why }, until);
      return reply.ok ? ok(reply.value.body.label) : reply;
    },
    /** The tools of these catalogues; null when one cannot be had. */
    tools: (catalogs: readonly string[]) => fetchTools(options, state, catalogs),
    /** The end of a call; null when the signal aborts first. */
    run: (tool: ToolCall, signal: AbortSignal, onState: Waiter["onState"]) =>
      run(options, state, tool, signal, onState),
    /** Withdraws a call and gives its result if it has one by then. */
    async cancel(tool: ToolCall): Promise<CallEnd> {
      const { session, call: id } = tool;
      const withdrawn = await call(path, CALL_CANCEL, { session, call: id }, until);
      if (!withdrawn.ok) options.log(`cancel ${id}: ${withdrawn.code}: ${withdrawn.detail}`);
      const fetched = await ask(options, state, tool, "fetch", options.stopping);
      if (fetched.ok && fetched.value.is === "answered") return fetched.value;
      return { is: "unknown", err: err("turn-cancelled", ERRORS["turn-cancelled"].what) };
    },
    async ack(session: SessionId, id: CallId): Promise<void> {
      const reply = await call(path, RESULT_ACK, { session, call: id }, until);
      if (!reply.ok) options.log(`acknowledge ${id}: ${reply.code}: ${reply.detail}`);
    },
    /** Why brokerd cannot be reached now, or null. */
    problem: () => state.problem,
    /** Watches until the process stops. */
    watch: () => watch(options, state),
  };
}

async function fetchTools(
  options: BrokerOptions,
  state: State,
  catalogs: readonly string[],
): Promise<KnownTool[] | null> {
  const tools: KnownTool[] = [];
  for (const digest of catalogs) {
    if (!state.catalogs.has(digest)) {
      const pieces: Uint8Array[] = [];
      const onChunk = (bytes: Uint8Array) => void pieces.push(bytes);
      const more = { onChunk, signal: options.stopping };
      const reply = await call(options.path, TOOL_CATALOG, { digest }, more);
      const catalog = reply.ok ? readCatalog(joinBytes(pieces), digest) : reply;
      if (!catalog.ok) {
        options.log(`catalogue ${digest}: ${catalog.code}: ${catalog.detail}`);
        return null;
      }
      state.catalogs.set(digest, catalog.value.tools);
    }
    tools.push(...(state.catalogs.get(digest) ?? []));
  }
  return tools;
}

type Asked = Extract<CallEnd, { is: "answered" }> | { is: "pending"; state: PendingState };

async function ask(
  options: BrokerOptions,
  state: State,
  tool: ToolCall,
  how: "request" | "fetch",
  signal: AbortSignal,
): Promise<Result<Asked>> {
  const pieces: Uint8Array[] = [];
  const onChunk = (bytes: Uint8Array) => void pieces.push(bytes);
  const { args, ...asked } = tool;
  const { session, call: id } = asked;
  const more = { onChunk, upload: encodeUtf8(args), signal };
  const reply = how === "fetch"
    ? await call(options.path, RESULT_FETCH, { session, call: id }, more)
    : await call(options.path, TOOL_REQUEST, { ...asked, witness: state.witness }, more);
  if (!reply.ok) return reply;
  if (reply.value.kind === "pending") return ok({ is: "pending", state: reply.value.body });
  const response = reply.value.body;
  state.witness = response.audit;
  return ok({ is: "answered", response, output: joinBytes(pieces) });
}

/** The peer being away, as against an answer that says no. */
function isAway(failure: Err): boolean {
  return ["peer-down", "peer-silent", "frame-closed", "frame-deadline"].includes(failure.code);
}

async function run(
  options: BrokerOptions,
  state: State,
  tool: ToolCall,
  signal: AbortSignal,
  onState: Waiter["onState"],
): Promise<CallEnd | null> {
  const bell = makeBell(options.clock, signal);
  state.waiters.set(tool.call, { wake: bell.ring, onState });
  let how: "request" | "fetch" = "request";
  let wasSent = false;
  let lastHeardMs = options.clock.monotonicMs();
  try {
    for (;;) {
      const asked = await ask(options, state, tool, how, signal);
      if (signal.aborted) return null;
      if (asked.ok && asked.value.is === "answered") return asked.value;
      if (asked.ok) {
        wasSent = true;
        how = "fetch";
        lastHeardMs = options.clock.monotonicMs();
        if (asked.value.is === "pending") onState(asked.value.state);
        await bell.wait(POLL_MS);
      } else if (asked.code === "not-found" && how === "fetch") {
        how = "request";
      } else if (!isAway(asked)) {
        return { is: "failed", err: asked };
      } else {
        wasSent ||= asked.code !== "peer-down";
        if (options.clock.monotonicMs() - lastHeardMs >= options.giveUpMs) {
          return { is: wasSent ? "unknown" : "failed", err: asked };
        }
        await bell.wait(RETRY_MS);
      }
      if (signal.aborted) return null;
    }
  } finally {
    state.waiters.delete(tool.call);
    bell.leave();
  }
}

/** A wait that ends early when rung; a ring while nobody waits is not lost. */
function makeBell(clock: Clock, signal: AbortSignal) {
  let rung = new AbortController();
  const ring = () => rung.abort();
  // AbortSignal.any would keep what it makes for as long as the turn lives.
  signal.addEventListener("abort", ring);
  return {
    ring,
    async wait(ms: number) {
      if (!signal.aborted) await clock.sleep(ms, rung.signal);
      rung = new AbortController();
    },
    leave: () => signal.removeEventListener("abort", ring),
  };
}

async function watch(options: BrokerOptions, state: State): Promise<void> {
  const signal = options.stopping;
  let boot: string | null = null;
  let after = -1;
  const wakeAll = () => state.waiters.forEach((waiter) => waiter.wake());
  while (!signal.aborted) {
    const reply = await call(options.path, BROKER_WATCH, { boot, after }, {
      signal,
      onEvent: (event) => {
        state.problem = null;
        if (event.kind === "watch_start") {
          if (event.body.boot !== boot || event.body.has_gap) wakeAll();
          boot = event.body.boot;
          after = event.body.seq;
          return;
        }
        after = event.body.seq;
        const waiter = state.waiters.get(event.body.call);
        if (event.kind === "call_ready") waiter?.wake();
        else if (event.kind === "call_started") {
          waiter?.onState({ state: "running", approval: null });
        } else waiter?.onState({ state: "waiting_approval", approval: event.body.approval });
      },
    });
    if (signal.aborted) return;
    if (!reply.ok && state.problem === null) {
      options.log(`brokerd: ${reply.code}: ${reply.detail}`);
    }
    state.problem = reply.ok ? null : err(reply.code, reply.detail);
    await options.clock.sleep(RETRY_MS, signal);
  }
}
