// All sessions of this house: takes messages, runs their turns, takes up what a crash has left.
//
// 1. A message is durable before it is accepted, and accepted once: again with the same id gives the
//    same turn.
// 2. Turns of one session run one after another; of different sessions side by side.
// 3. Before the first record of a turn is written its session is marked, so that a start finds it.
import { type MessageId, SessionId, TurnId, ulid } from "../../shared/ids/ids.ts";
import { type Label, SESSION_START } from "../../shared/labels/label.ts";
import type { ErrorCode } from "../../shared/results/codes.ts";
import { type Err, err, ok, type Result } from "../../shared/results/result.ts";
import { decodeUtf8, encodeUtf8 } from "../../shared/wire/codec.ts";
import { type BaselineParts, newBaseline } from "./baseline.ts";
import type { Memory } from "./memory.ts";
import type { OpenSessions } from "./open_sessions.ts";
import { turnOrder } from "./request.ts";
import { createSession, openSession, type SessionFile } from "./session_files.ts";
import { sessionKind } from "./session_kind.ts";
import { isFromElsewhere, shownMessage } from "./tool_result.ts";
import { aside, type House, type OpenSession, runTurn } from "./turn.ts";

/** Idle sessions whose files stay open, as the next message most likely comes to one of them. */
const KEPT_OPEN = 16;
/** Why a turn's signal aborts when the owner cancels. */
const CANCELLED = "cancelled";
/** A turn that the disk stopped is tried again after this long. */
const DISK_RETRY_MS = 15_000;

export interface Message {
  readonly session: SessionId;
  readonly messageId: MessageId;
  readonly text: string;
  /** Of a text that is not the owner's own words. */
  readonly label: Label | null;
}

export type Sessions = ReturnType<typeof makeSessions>;

type Accepted = { readonly turn: TurnId; readonly isDuplicate: boolean };

export interface SessionsOptions {
  readonly house: House;
  readonly memory: Memory;
  readonly marks: OpenSessions;
  readonly root: string;
  readonly examples: BaselineParts["examples"];
  readonly refusal: () => Err | null;
}

interface Live extends OpenSession {
  readonly queue: TurnId[];
  running: { readonly turn: TurnId; readonly abort: AbortController } | null;
  worker: Promise<void> | null;
}

interface All extends SessionsOptions {
  readonly live: Map<SessionId, Live>;
  /** One task at a time for each session. */
  readonly order: Map<SessionId, Promise<unknown>>;
  problem: Err | null;
  omitted: string;
}

export function makeSessions(options: SessionsOptions) {
  const all: All = { ...options, live: new Map(), order: new Map(), problem: null, omitted: "" };
  const lives = () => [...all.live.values()];
  const { slots, stopping, background } = all.house;
  stopping.addEventListener("abort", () => lives().forEach((live) => live.running?.abort.abort()));
  const waiting = () => lives().reduce((sum, live) => sum + live.queue.length, slots.waiting());
  return {
    /** Fails with `queue-full`, `self-test-failed`, `memory-unavailable`, `session-damaged`, or the disk's codes. */
    submit: (message: Message): Promise<Result<Accepted>> =>
      inOrder(all, message.session, () => submit(all, message, waiting())),
    /** Cancels the turn that is running; null when there is none. */
    cancel(session: SessionId): TurnId | null {
      const running = all.live.get(session)?.running ?? null;
      running?.abort.abort(CANCELLED);
      return running?.turn ?? null;
    },
    /** Takes up the unfinished turns of the marked sessions. */
    async recover(): Promise<void> {
      for (const session of all.marks.list()) {
        await inOrder(all, session, () => Promise.resolve(recoverOne(all, session)));
      }
    },
    counts() {
      const begun = lives().filter((live) => live.running).length;
      return { running: begun - slots.waiting(), waiting: waiting() };
    },
    isBusy: (session: SessionId) => isBusy(all.live.get(session)),
    /** What went wrong with the disk last, while it is wrong. */
    problem: () => all.problem,
    /** Closes the files once every turn has stopped where it stands. */
    async stop(): Promise<void> {
      await Promise.all([...all.order.values(), ...lives().map((live) => live.worker)]);
      await Promise.all(background);
      lives().forEach((live) => shut(all, live));
    },
  };
}

function isBusy(live: Live | undefined): boolean {
  return live !== undefined && (live.running !== null || live.queue.length > 0);
}

function shut(all: All, live: Live): void {
  live.file.close();
  all.live.delete(live.file.id);
}

function inOrder<T>(all: All, session: SessionId, task: () => Promise<T>): Promise<T> {
  const before = all.order.get(session) ?? Promise.resolve();
  const done = before.then(task, task);
  const settled = done.then(() => {}, () => {}).finally(() => {
    if (all.order.get(session) === settled) all.order.delete(session);
  });
  all.order.set(session, settled);
  return done;
}

async function submit(all: All, message: Message, waiting: number): Promise<Result<Accepted>> {
  const { house } = all;
  const opened = await openOrCreate(all, message.session);
  if (!opened.ok) return opened;
  const { file } = opened.value;
  const known = file.records.find((record) =>
    record.kind === "user" && record.message_id === message.messageId
  );
  if (known?.kind === "user") return ok({ turn: known.turn, isDuplicate: true });
  const refused = all.refusal();
  if (refused !== null) return refused;
  const most = house.config.sessions.queued_turns;
  if (waiting >= most) {
    return err("queue-full", `${waiting} turns are waiting, at most ${most} may`);
  }
  if (message.label !== null) {
    const why = "text that the message brings in";
    const known = await house.broker.open(message.session, sessionKind(message.session));
    if (!known.ok) return known;
    const raised = await house.broker.raise(message.session, message.label, why);
    if (!raised.ok) return raised;
    const noted = file.raise(raised.value, why);
    if (!noted.ok) return noted;
  }
  // Nothing is waited for from here on, or a sweep could take the mark of an idle session off again.
  const marked = all.marks.mark(message.session);
  if (!marked.ok) return marked;
  const { clock, random } = house.ports;
  const turn = TurnId.parse(`t-${ulid(clock.nowUnixMs(), random)}`);
  const content = shownMessage(message.text, message.label);
  const isExact = content === message.text;
  const artifact = isExact ? ok(null) : file.archive(encodeUtf8(message.text));
  if (!artifact.ok) return artifact;
  const written = file.append({
    kind: "user",
    turn,
    message_id: message.messageId,
    content,
    artifact: artifact.value,
  });
  if (!written.ok) return written;
  enqueue(all, opened.value, turn);
  return ok({ turn, isDuplicate: false });
}

async function openOrCreate(all: All, session: SessionId): Promise<Result<Live>> {
  const there = all.live.get(session);
  if (there !== undefined) return ok(there);
  const folder = `${all.root}/${session}`;
  const opened = openSession(all.house.ports, folder);
  if (opened.ok) return ok(keep(all, opened.value));
  if (opened.code !== "not-found") return opened;
  // A refused message begins no session: its memory would be old by the time of one that is taken.
  const refused = all.refusal();
  if (refused !== null) return refused;
  const block = await all.memory.block();
  if (!block.ok) return block;
  tellOmitted(all, session, block.value.omitted);
  const known = await all.house.broker.open(session, sessionKind(session));
  const made = createSession(all.house.ports, folder, {
    ...newBaseline({ ...all, ...all.house }, session, block.value.text),
    label: known.ok ? known.value.label : SESSION_START,
  });
  if (!made.ok) return made;
  return ok(keep(all, made.value));
}

/** Entries that the model does not get are the owner's to know, once as long as they are the same. */
function tellOmitted(all: All, session: SessionId, omitted: readonly string[]): void {
  const lines = omitted.join("\n");
  if (lines === all.omitted) return;
  all.omitted = lines;
  const text = `These memory entries were left out of the prompt:\n${lines}`;
  if (lines !== "") tellOwner(all, session, "memory-entry-omitted", text);
}

/** A notice about a session that belongs to no turn. */
function tellOwner({ house }: All, session: SessionId, code: ErrorCode, text: string): void {
  house.ports.log(`session ${session}: ${code}: ${text}`);
  const none = { turn: null, message_id: null, label: SESSION_START };
  house.outbox.put({ session, ...none, is: "notice", code, text });
}

/** Keeps a session open, and runs the turns that its log has begun and not ended. */
function keep(all: All, file: SessionFile): Live {
  if (file.repair !== null) tellOwner(all, file.id, "session-repaired", file.repair);
  const idle = [...all.live.values()].filter((live) =>
    !isBusy(live) && !all.order.has(live.file.id)
  );
  if (idle.length >= KEPT_OPEN && idle[0] !== undefined) shut(all, idle[0]);
  const live: Live = {
    file,
    sent: undefined,
    isAnswered: false,
    catalogs: null,
    queue: [],
    running: null,
    worker: null,
  };
  all.live.set(file.id, live);
  const ended = new Set(file.records.flatMap((one) => one.kind === "turn_end" ? [one.turn] : []));
  for (const turn of turnOrder(file.records)) {
    if (!ended.has(turn)) enqueue(all, live, turn);
  }
  return live;
}

function enqueue(all: All, live: Live, turn: TurnId): void {
  live.queue.push(turn);
  live.worker ??= work(all, live);
}

async function work(all: All, live: Live): Promise<void> {
  const { house, memory, marks } = all;
  const { stopping } = house;
  for (let turn = live.queue.shift(); turn !== undefined; turn = live.queue.shift()) {
    const abort = new AbortController();
    const { signal } = abort;
    const id = turn;
    live.running = { turn, abort };
    const isLeft = () => stopping.aborted && signal.reason !== CANCELLED;
    const carryOn = () => carryMessage(all, live, id);
    for (;;) {
      // A restarted brokerd may have other tools.
      live.catalogs = null;
      const done = await runTurn({ house, session: live, turn, signal, isLeft, carryOn });
      if (stopping.aborted) return;
      all.problem = done.ok ? null : done;
      if (done.ok) break;
      house.ports.log(`turn ${turn}: ${done.code}: ${done.detail}`);
      await house.ports.clock.sleep(DISK_RETRY_MS, stopping);
    }
    live.running = null;
    aside(house, memory.updated(live.file.id));
  }
  live.worker = null;
  marks.sweep((session) => isBusy(all.live.get(session)));
}

/** Submits a turn's message to a session of its own, as this one is full. The same turn gives the same one. */
async function carryMessage(
  all: All,
  { file }: Live,
  turn: TurnId,
): Promise<Result<SessionId | null>> {
  const user = file.records.find((record) => record.kind === "user" && record.turn === turn);
  // A thread has its place, and a message that fills a session by itself would fill the next one.
  const isFirst = turnOrder(file.records)[0] === turn;
  if (user?.kind !== "user" || isFirst || sessionKind(file.id) !== "chat") return ok(null);
  const session = SessionId.parse(turn.replace(/^t-/, "chat-"));
  const exact = user.artifact === null
    ? ok(encodeUtf8(user.content))
    : file.artifact(user.artifact);
  const text = exact.ok ? decodeUtf8(exact.value) : exact;
  if (!text.ok) return text;
  const label = isFromElsewhere(user.content) ? file.label() : null;
  const message = { session, messageId: user.message_id, text: text.value, label };
  const done = await inOrder(all, session, () => submit(all, message, 0));
  return done.ok ? ok(session) : done;
}

function recoverOne(all: All, session: SessionId): void {
  if (all.live.has(session)) return;
  const opened = openSession(all.house.ports, `${all.root}/${session}`);
  if (opened.ok) {
    const live = keep(all, opened.value);
    if (!isBusy(live)) shut(all, live);
  } else if (opened.code !== "not-found") {
    const text = `The session ${session} cannot be continued: ${opened.detail}`;
    tellOwner(all, session, opened.code, text);
  }
}
