// One turn, from its user record to its end: ask the model, make the calls it wants, ask again.
//
// 1. What is next comes from the log alone, so a turn goes on after a restart where it stood.
// 2. A record is durable before anything that follows from it: an answer before its calls are made,
//    a result before brokerd may forget it, a label before the text it covers, the reply before it is
//    delivered.
// 3. A turn that cannot go on ends with a notice; only a disk that refuses leaves it unfinished.
import type { LoopdConfig } from "../../shared/config/loopd.ts";
import { CallId, type SessionId, type TurnId, ulid } from "../../shared/ids/ids.ts";
import { assertNever, type Err, err, ok, type Result } from "../../shared/results/result.ts";
import type { ErrorCode } from "../../shared/results/codes.ts";
import { ERRORS } from "../../shared/results/codes.ts";
import type { LoggedCall, SessionRecord } from "../../shared/session_log/records.ts";
import { encodeUtf8 } from "../../shared/wire/codec.ts";
import type { Broker } from "./broker.ts";
import { cacheLoss, type CacheTally, isForeign } from "./cache.ts";
import type { Answer, Piece } from "./completion.ts";
import type { Hub } from "./hub.ts";
import type { Model } from "./model.ts";
import type { Outbox } from "./outbox.ts";
import type { Ports } from "./ports.ts";
import { extendPrefix, recordsOf, requestBody, type SentPrefix, turnOrder } from "./request.ts";
import type { SessionFile } from "./session_files.ts";
import { slotOf } from "./session_kind.ts";
import type { Slots } from "./slots.ts";
import { isArguments } from "./tool_arguments.ts";
import { answerUnanswered, performCall } from "./turn_calls.ts";
import { nextStep } from "./turn_step.ts";

/** What every turn uses. */
export interface House {
  readonly ports: Ports;
  readonly config: LoopdConfig;
  /** Aborts when the process stops; a turn is left where it stands then. */
  readonly stopping: AbortSignal;
  readonly model: Model;
  readonly broker: Broker;
  readonly slots: Slots;
  readonly hub: Hub;
  readonly outbox: Outbox;
  /** Holds when the model server is as recorded; may ask it. */
  readonly ready: () => Promise<Result<null>>;
  /** The last session that used each slot. */
  readonly slotUsers: Map<number, string>;
  readonly cache: CacheTally;
  /** What is under way and no turn waits for. */
  readonly background: Set<Promise<void>>;
}

/** Lets `work`, which never fails, go on beside the turns; a stop waits for it. */
export function aside({ background }: House, work: Promise<void>): void {
  const done: Promise<void> = work.finally(() => background.delete(done));
  background.add(done);
}

/** A session with its files open. */
export interface OpenSession {
  readonly file: SessionFile;
  sent: SentPrefix | undefined;
  /** Whether the last request that this process sent was answered; false when it sent none. */
  isAnswered: boolean;
  /** Digests of the catalogues in force, once brokerd knows the session. */
  catalogs: readonly string[] | null;
}

export interface Turn {
  readonly house: House;
  readonly session: OpenSession;
  readonly turn: TurnId;
  /** Aborts when the owner cancels or the process stops. */
  readonly signal: AbortSignal;
  /** Whether it stays where it stands: the process stops, and the owner had not cancelled before. */
  readonly isLeft: () => boolean;
  /** Begins a new session with this turn's message; null when that would be no way on. */
  readonly carryOn: () => Promise<Result<SessionId | null>>;
}

/** Runs a turn to its end. A failure is the disk's: nothing was lost, and it may be run again. */
export async function runTurn(turn: Turn): Promise<Result<null>> {
  let asked = 0;
  for (;;) {
    if (turn.isLeft()) return ok(null);
    const { file } = turn.session;
    const records = recordsOf(file.records, turn.turn);
    const step = nextStep(records, turn.house.config.inference.tool_calls);
    const wasCancelled = turn.signal.aborted && step.is !== "ended" && step.is !== "reply";
    if (wasCancelled && !(step.is === "stop" && step.why.code === "turn-cancelled")) {
      const noted = note(turn, "turn-cancelled", ERRORS["turn-cancelled"].what);
      if (!noted.ok) return noted;
      continue;
    }
    switch (step.is) {
      case "ended":
        return ok(null);
      case "reply":
        return deliverAndEnd(turn, { is: "reply", code: null, text: step.text }, "answered");
      case "stop": {
        const answered = answerUnanswered(turn, step.unanswered, step.why.code);
        return answered.ok ? await endWithNotice(turn, step.why) : answered;
      }
      case "call": {
        const done = await performCall(turn, step.call, step.repeats);
        if (!done.ok) return done;
        break;
      }
      case "ask": {
        // A notice says already how this turn ended; only its end is still to be written.
        if (turn.house.outbox.hasFor(turn.turn)) return endTurn(turn, "failed");
        const done = await askModel(turn, asked++ === 0 ? "fresh" : "back");
        if (!done.ok && isDisk(done)) return done;
        if (!done.ok && !turn.signal.aborted) return await endWithNotice(turn, done);
        break;
      }
      default:
        return assertNever(step);
    }
  }
}

function isDisk(failure: Err): boolean {
  return failure.code.startsWith("disk-");
}

async function askModel(turn: Turn, as: "fresh" | "back"): Promise<Result<null>> {
  const { house, session } = turn;
  const { file } = session;
  const slot = slotOf(file.id, house.config);
  const onPlace = (place: number) => house.hub.state(file.id, turn.turn, "queued", { place });
  const release = await house.slots.acquire({ slot, as, signal: turn.signal, onPlace });
  if (release === null) return err("turn-cancelled", "Left the queue");
  const otherUser = house.slotUsers.get(slot);
  try {
    const asked = await askHoldingSlot(turn, slot);
    if (!asked.ok) return asked;
    const loss = cacheLoss(turn.turn, asked.value.answer.timings, file.records, {
      nowUnixMs: house.ports.clock.nowUnixMs(),
      hasOtherUser: otherUser !== undefined && otherUser !== file.id,
      isFirstSight: asked.value.isFirstSight,
    });
    if (asked.value.answer.timings !== null) house.cache.take(loss);
    if (loss !== null && isForeign(loss)) {
      const done = await house.model.erase(slot);
      house.ports.log(`slot ${slot} holds a foreign entry; ${done ? "erased" : "not erasable"}`);
    }
    const kept = appendAnswer(turn, asked.value.answer);
    if (kept.ok) session.isAnswered = true;
    return kept.ok && loss !== null ? file.append(loss) : kept;
  } finally {
    house.slotUsers.set(slot, file.id);
    if (turn.signal.aborted) aside(house, house.model.whenFree(slot).then(release));
    else release();
  }
}

async function askHoldingSlot(
  turn: Turn,
  slot: number,
): Promise<Result<{ readonly answer: Answer; readonly isFirstSight: boolean }>> {
  const { house, session } = turn;
  const { model, thinking_tokens } = house.config.inference;
  const ready = await readyOrCancelled(turn);
  if (!ready.ok) return ready;
  const { baseline, records, id } = session.file;
  const body = requestBody(baseline, records, turn.turn, { model, slot });
  const sent = extendPrefix(session.sent, body.messages);
  if (!sent.ok) return sent;
  session.sent = sent.value;
  let isFirstSight = session.isAnswered;
  session.isAnswered = false;
  const used = recordsOf(records, turn.turn).reduce(
    (sum, record) => sum + (record.kind === "assistant" ? thoughtTokens(record) : 0),
    0,
  );
  house.hub.state(id, turn.turn, "reading", { percent: 0 });
  const asked = await house.model.ask(body.bytes, {
    slot,
    signal: turn.signal,
    thinkingLeft: Math.max(1, thinking_tokens - used),
    onPiece: tellPieces(turn),
    onRetry: (failure, partial) => {
      isFirstSight = false;
      const came = partial === "" ? "" : ` Until then it had said:\n${partial.slice(0, 8_000)}`;
      note(turn, failure.code, `Tried again. ${failure.detail}.${came}`);
      house.hub.state(id, turn.turn, "reading", { percent: 0 });
    },
  });
  return asked.ok ? ok({ answer: asked.value, isFirstSight }) : asked;
}

/** Waits for the self-test; one who cancels does not, while it goes on for the others. */
function readyOrCancelled({ house, signal }: Turn): Promise<Result<null>> {
  return new Promise((resolve) => {
    const leave = () =>
      house.stopping.aborted || resolve(err("turn-cancelled", "Left the self-test"));
    signal.addEventListener("abort", leave);
    house.ready().then((done) => {
      signal.removeEventListener("abort", leave);
      resolve(done);
    });
  });
}

/** Thoughts of earlier answers of the turn; the log has their text, so about four bytes a token. */
function thoughtTokens(record: Extract<SessionRecord, { kind: "assistant" }>): number {
  return Math.ceil(record.reasoning_content.length / 4);
}

const STATES = { thinking: "thinking", call: "calling", answer: "writing" } as const;

function tellPieces(turn: Turn): (piece: Piece) => void {
  const { hub } = turn.house;
  const { id } = turn.session.file;
  let now = "";
  let percent = 0;
  return (piece) => {
    if (piece.is === "progress") {
      if (piece.percent === percent) return;
      percent = piece.percent;
      return hub.state(id, turn.turn, "reading", { percent });
    }
    const state = STATES[piece.is];
    if (now !== state) hub.state(id, turn.turn, state);
    now = state;
    if (piece.is !== "call") hub.delta(id, turn.turn, piece.is, piece.text);
  };
}

/** Stores an answer as it came, but for arguments that no server could be shown again. */
function appendAnswer(turn: Turn, answer: Answer): Result<null> {
  const { file } = turn.session;
  const { clock, random } = turn.house.ports;
  const calls: LoggedCall[] = [];
  for (const one of answer.calls) {
    const isShowable = isArguments(one.arguments);
    const artifact = isShowable ? ok(null) : file.archive(encodeUtf8(one.arguments));
    if (!artifact.ok) return artifact;
    calls.push({
      call: CallId.parse(`c-${ulid(clock.nowUnixMs(), random)}`),
      name: one.name.slice(0, 256).toWellFormed(),
      arguments: isShowable ? one.arguments : "{}",
      artifact: artifact.value,
    });
  }
  return file.append({
    kind: "assistant",
    turn: turn.turn,
    content: answer.content,
    reasoning_content: answer.reasoning,
    tool_calls: calls,
    finish: answer.finish,
    timings: answer.timings,
  });
}

function note(turn: Turn, code: ErrorCode, text: string): Result<null> {
  return turn.session.file.append({
    kind: "notice",
    turn: turn.turn,
    code,
    text: text.toWellFormed().slice(0, 16_000),
  });
}

/** What happened, what was kept, what to do. */
async function endWithNotice(turn: Turn, failure: Err): Promise<Result<null>> {
  const { what, todo } = ERRORS[failure.code];
  const detail = failure.detail === "" ? "" : ` (${failure.detail.slice(0, 500)})`;
  let wayOn = todo;
  if (failure.code === "session-full") {
    const carried = await turn.carryOn();
    if (turn.house.stopping.aborted) return ok(null);
    if (!carried.ok && isDisk(carried)) return carried;
    if (carried.ok && carried.value !== null) {
      wayOn = `It is being answered in the new session ${carried.value}; go on there with ` +
        `bxctl chat --session ${carried.value}.`;
    }
  }
  const text = `${what}${detail} Your message is kept in the session. ${wayOn}`;
  const outcome = failure.code === "turn-cancelled" ? "cancelled" : "failed";
  turn.house.ports.log(`turn ${turn.turn} ${outcome}: ${failure.code}: ${failure.detail}`);
  if (outcome === "failed") {
    const noted = note(turn, failure.code, text);
    if (!noted.ok) return noted;
  }
  return deliverAndEnd(turn, { is: "notice", code: failure.code, text }, outcome);
}

type Outcome = "answered" | "failed" | "cancelled";

function deliverAndEnd(
  turn: Turn,
  said: { readonly is: "reply" | "notice"; readonly code: ErrorCode | null; readonly text: string },
  outcome: Outcome,
): Result<null> {
  const { file } = turn.session;
  const user = recordsOf(file.records, turn.turn).find((record) => record.kind === "user");
  if (!turn.house.outbox.hasFor(turn.turn)) {
    const put = turn.house.outbox.put({
      session: file.id,
      turn: turn.turn,
      message_id: user?.kind === "user" ? user.message_id : null,
      label: file.label(),
      ...said,
    });
    if (!put.ok) return put;
  }
  return endTurn(turn, outcome);
}

function endTurn(turn: Turn, outcome: Outcome): Result<null> {
  const { file } = turn.session;
  return file.append({
    kind: "turn_end",
    turn: turn.turn,
    outcome,
    so_far: { turns: turnOrder(file.records).length, label: file.label() },
  });
}
