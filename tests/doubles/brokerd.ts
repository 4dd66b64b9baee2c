// brokerd's double for tests of its caller: the exchanges of loop-broker/broker over a real socket,
// tools as functions, no grants. It keeps count of every run by call id, so that a test can show
// that nothing ran twice, and it can wait, ask, go away and come back.
import type { Label } from "../../shared/labels/label.ts";
import { join } from "../../shared/labels/label.ts";
import type { ApprovalId, CallId, SessionId } from "../../shared/ids/ids.ts";
import { err, ok } from "../../shared/results/result.ts";
import { catalogBytes } from "../../shared/tool/catalog.ts";
import { sha256Hex } from "../../shared/tool/digest.ts";
import type { Manifest } from "../../shared/tool/manifest.ts";
import type { BodyOf } from "../../shared/wire/exchange.ts";
import { listen, type Listening, on, type Route } from "../../shared/wire/listen.ts";
import {
  type ApprovalPending,
  BROKER_WATCH,
  CALL_CANCEL,
  type CallReady,
  type CallStarted,
  RESULT_ACK,
  RESULT_FETCH,
  SESSION_OPEN,
  SESSION_RAISE,
  TOOL_CATALOG,
  TOOL_REQUEST,
  ToolResponse,
  type WatchStart,
} from "../../shared/wire/loop_broker.ts";
import type { Said } from "../../shared/wire/exchange.ts";

type Response = BodyOf<typeof ToolResponse>;
type WatchEvent = Said<
  typeof WatchStart | typeof ApprovalPending | typeof CallStarted | typeof CallReady
>;

export type ToolEnd = {
  readonly outcome?: Response["outcome"];
  readonly output?: string | Uint8Array;
  readonly code?: string;
  readonly message?: string;
  readonly label?: Label;
  readonly isCut?: boolean;
};

/** What a tool does. `until` makes the call pending; `approval` makes it wait for the owner. */
export type ToolScript = {
  readonly run: (args: unknown) => ToolEnd;
  readonly until?: Promise<unknown>;
  readonly approval?: ApprovalId;
};

export type Run = {
  readonly session: SessionId;
  readonly call: CallId;
  readonly tool: string;
  readonly args: string;
};

export type BrokerDouble = {
  readonly runs: readonly Run[];
  readonly requests: readonly Run[];
  readonly acks: readonly string[];
  readonly cancels: readonly string[];
  readonly labels: ReadonlyMap<string, Label>;
  tool(name: string, script: ToolScript | ((args: unknown) => ToolEnd)): void;
  /** Stops answering: the socket goes away. What is known stays known. */
  goAway(): Promise<void>;
  comeBack(): void;
  stop(): Promise<void>;
};

const encoder = new TextEncoder();

type Call = { readonly run: Run; response: Response | null; output: Uint8Array };
type Book = {
  readonly scripts: Map<string, ToolScript>;
  readonly calls: Map<string, Call>;
  readonly labels: Map<string, Label>;
  readonly runs: Run[];
  readonly requests: Run[];
  readonly acks: string[];
  readonly cancels: string[];
  readonly watchers: Set<(event: WatchEvent) => void>;
  readonly catalog: Uint8Array | null;
  boot: number;
  seq: number;
  audit: number;
};

const NEVER_UNIX_MS = 4_000_000_000_000;

/** @param path where to listen @param tools the catalogue that `tool_catalog` gives */
export function startBrokerDouble(path: string, tools: readonly Manifest[]): BrokerDouble {
  const book: Book = {
    scripts: new Map(),
    calls: new Map(),
    labels: new Map(),
    runs: [],
    requests: [],
    acks: [],
    cancels: [],
    watchers: new Set(),
    catalog: tools.length === 0 ? null : catalogBytes(tools),
    boot: 1,
    seq: 0,
    audit: 0,
  };
  const routes = [...sessionRoutes(book), ...callRoutes(book)];
  const open = (): Listening => listen({ path, routes, log: () => {} });
  let server: Listening | null = open();
  const goAway = async () => {
    await server?.close();
    server = null;
  };
  return {
    ...book,
    tool: (name, script) => {
      book.scripts.set(name, typeof script === "function" ? { run: script } : script);
    },
    goAway,
    comeBack: () => {
      book.boot++;
      server ??= open();
    },
    stop: goAway,
  };
}

function labelOf(book: Book, session: string): Label {
  return book.labels.get(session) ?? { class: "private", untrusted: false };
}

function tell(book: Book, event: WatchEvent): void {
  for (const watch of book.watchers) watch(event);
}

function place(book: Book, run: Run) {
  return { seq: book.seq++, session: run.session, call: run.call };
}

function finish(book: Book, call: Call, end: ToolEnd): void {
  const { session } = call.run;
  const bytes = typeof end.output === "string" ? encoder.encode(end.output) : end.output;
  call.output = bytes ?? new Uint8Array();
  const label = end.label ?? { class: "private", untrusted: false };
  book.labels.set(session, join(labelOf(book, session), label));
  const hash = sha256Hex(encoder.encode(`${book.audit}`));
  call.response = ToolResponse.shape.body.parse({
    session,
    call: call.run.call,
    outcome: end.outcome ?? "done",
    code: end.code ?? null,
    message: end.message ?? "",
    label,
    session_label: labelOf(book, session),
    bytes: call.output.length,
    sha256: sha256Hex(call.output),
    is_cut: end.isCut ?? false,
    audit: { n: book.audit++, hash },
    container: null,
    image: null,
  });
}

function begin(book: Book, run: Run): Call {
  const call: Call = { run, response: null, output: new Uint8Array() };
  book.calls.set(run.call, call);
  const script = book.scripts.get(run.tool);
  if (script === undefined) {
    finish(book, call, { outcome: "denied", code: "no_grant", message: "No grant for this tool" });
    return call;
  }
  const go = () => {
    book.runs.push(run);
    finish(book, call, script.run(JSON.parse(run.args)));
  };
  if (script.until === undefined) {
    go();
    return call;
  }
  const { approval } = script;
  if (approval !== undefined) {
    const body = { ...place(book, run), approval, expires_unix_ms: NEVER_UNIX_MS };
    tell(book, { kind: "approval_pending", body });
  }
  script.until.then(() => {
    if (call.response !== null) return;
    tell(book, { kind: "call_started", body: place(book, run) });
    go();
    tell(book, { kind: "call_ready", body: place(book, run) });
  });
  return call;
}

async function answer(book: Book, call: Call, chunk: (bytes: Uint8Array) => Promise<boolean>) {
  const { session, call: id, tool } = call.run;
  if (call.response === null) {
    const approval = book.scripts.get(tool)?.approval ?? null;
    const state = approval === null ? "running" : "waiting_approval";
    const expires_unix_ms = approval === null ? null : NEVER_UNIX_MS;
    const body = { session, call: id, state, approval, expires_unix_ms } as const;
    return ok({ kind: "pending" as const, body });
  }
  if (call.output.length > 0) await chunk(call.output);
  return ok({ kind: "tool_response" as const, body: call.response });
}

function sessionRoutes(book: Book): Route[] {
  const { catalog } = book;
  return [
    on(SESSION_OPEN, ({ session }) => {
      const catalogs = catalog === null ? [] : [sha256Hex(catalog)];
      return ok({
        kind: "session_opened",
        body: { session, label: labelOf(book, session), catalogs },
      });
    }),
    on(SESSION_RAISE, ({ session, label }) => {
      book.labels.set(session, join(labelOf(book, session), label));
      return ok({ kind: "session_raised", body: { session, label: labelOf(book, session) } });
    }),
    on(TOOL_CATALOG, async ({ digest }, io) => {
      if (catalog === null) return err("not-found", "No catalogue");
      await io.chunk(catalog);
      return ok({ kind: "tool_catalog_end", body: { digest } });
    }),
    on(BROKER_WATCH, async (body, io) => {
      const boot = `boot-${book.boot}`;
      const has_gap = body.boot !== boot;
      await io.event({ kind: "watch_start", body: { boot, seq: book.seq, has_gap } });
      const watch = (event: WatchEvent) => void io.event(event);
      book.watchers.add(watch);
      await new Promise<void>((resolve) => {
        if (io.signal.aborted) resolve();
        io.signal.addEventListener("abort", () => resolve());
      });
      book.watchers.delete(watch);
      return ok({ kind: "watch_end", body: { why: "gone" } });
    }),
  ];
}

function callRoutes(book: Book): Route[] {
  return [
    on(TOOL_REQUEST, async (body, io) => {
      const args = new TextDecoder().decode(io.upload);
      const run = { session: body.session, call: body.call, tool: body.tool, args };
      book.requests.push(run);
      return await answer(book, book.calls.get(body.call) ?? begin(book, run), io.chunk);
    }),
    on(RESULT_FETCH, async (body, io) => {
      const call = book.calls.get(body.call);
      return call === undefined ? err("not-found", body.call) : await answer(book, call, io.chunk);
    }),
    on(RESULT_ACK, ({ call }) => {
      book.acks.push(call);
      return ok({ kind: "ok", body: {} });
    }),
    on(CALL_CANCEL, ({ call }) => {
      book.cancels.push(call);
      const known = book.calls.get(call);
      if (known !== undefined && known.response === null) {
        finish(book, known, { outcome: "unknown", code: "cancelled", message: "Withdrawn" });
      }
      return ok({ kind: "ok", body: {} });
    }),
  ];
}
