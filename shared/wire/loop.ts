// What loopd answers to gatewayd on gateway-loop/loop and, the same kinds, to bxctl on
// owner-loop/admin; the owner's socket takes a few more.
//
// Nothing here waits for a model or a person: a turn is accepted at once, and one `watch` per caller
// carries what happens later. Outbox items are durable and numbered; states and deltas are not, and
// are lost with the connection. The text of a message or an outbox item travels as chunks.
import { z } from "zod";
import { ApprovalId, CallId, MessageId, SessionId, ToolName, TurnId } from "../ids/ids.ts";
import { Label } from "../labels/label.ts";
import { CacheLossRecord } from "../session_log/records.ts";
import { assertNever } from "../results/result.ts";
import { type BodyOf, exchange, message } from "./exchange.ts";
import { MAX_MESSAGE_BYTES, MAX_OUTPUT_BYTES } from "./limits.ts";
import { RoleStatus, Seq, ShortText, UnixMs } from "./parts.ts";

const Ok = message("ok", {});

/** The message's text follows as chunks. Idempotent by `message_id` within the session. */
export const TURN_SUBMIT = exchange({
  request: message("turn_submit", {
    session: SessionId,
    message_id: MessageId,
    /** A label the text brings in, for example of an attachment; null for the owner's own words. */
    label: Label.nullable(),
  }),
  replies: [
    message("turn_accepted", { session: SessionId, turn: TurnId, is_duplicate: z.boolean() }),
  ],
  uploadMaxBytes: MAX_MESSAGE_BYTES,
});

export const TURN_CANCEL = exchange({
  request: message("turn_cancel", { session: SessionId }),
  replies: [message("turn_cancelled", { turn: TurnId.nullable() })],
});

/** What a turn is doing; volatile. `place` counts from 1 when queued; `percent` is of the prompt. */
export const TurnState = message("turn_state", {
  session: SessionId,
  turn: TurnId,
  state: z.enum(["queued", "reading", "thinking", "writing", "calling", "waiting_approval"]),
  place: z.int().min(1).nullable(),
  percent: z.int().min(0).max(100).nullable(),
  tool: ToolName.nullable(),
  call: CallId.nullable(),
  approval: ApprovalId.nullable(),
});

/** What a turn is doing, in words. */
export function stateText({ state, place, percent, tool }: BodyOf<typeof TurnState>): string {
  switch (state) {
    case "queued":
      return place === null ? "queued" : `queued, place ${place}`;
    case "reading":
      return percent === null ? "reading" : `reading ${percent} %`;
    case "thinking":
    case "writing":
      return state;
    case "calling":
      return `calling ${tool ?? "a tool"}`;
    case "waiting_approval":
      return "waiting for your approval";
    default:
      return assertNever(state);
  }
}

/** A piece of the model's text as it streams; volatile. */
export const TurnDelta = message("turn_delta", {
  session: SessionId,
  turn: TurnId,
  channel: z.enum(["thinking", "answer"]),
  text: z.string().max(8_000),
});

/** Something durable for the owner: fetched by number, delivered at least once until acknowledged. */
export const OutboxItem = message("outbox_item", {
  n: Seq,
  session: SessionId,
  turn: TurnId.nullable(),
  message_id: MessageId.nullable(),
  kind: z.enum(["reply", "notice"]),
  /** A stable code for a notice, null for a reply. */
  code: z.string().max(64).nullable(),
  label: Label,
  created_unix_ms: UnixMs,
  bytes: z.int().min(0),
});

const WatchEnd = message("watch_end", { why: ShortText });

/** Sends every outbox item numbered above `after`, then what happens from now on. Never ends by itself. */
export const LOOP_WATCH = exchange({
  request: message("watch", { after: z.int().min(-1) }),
  events: [TurnState, TurnDelta, OutboxItem],
  replies: [WatchEnd],
});

export const OUTBOX_FETCH = exchange({
  request: message("outbox_fetch", { n: Seq }),
  replies: [OutboxItem],
  downloadMaxBytes: MAX_MESSAGE_BYTES,
});

/** Says that item `n` reached the owner; it is not sent again. */
export const OUTBOX_ACK = exchange({
  request: message("outbox_ack", { n: Seq }),
  replies: [Ok],
});

export const LOOP_STATUS = exchange({
  request: message("status", {}),
  replies: [message("loop_status", {
    ...RoleStatus,
    sessions: z.int().min(0),
    turns_running: z.int().min(0),
    turns_waiting: z.int().min(0),
    outbox_pending: z.int().min(0),
    /** "ok", "not-yet-run", "running", "not-applicable: ..." or "failed: ..." per check. */
    self_test: z.array(z.strictObject({ check: z.string().max(64), state: ShortText })).max(16),
    model: z.strictObject({
      is_reachable: z.boolean(),
      build: z.string().max(200).nullable(),
      model: z.string().max(200).nullable(),
      n_ctx: z.int().min(0).nullable(),
      slots: z.int().min(0).nullable(),
    }),
    /** Requests since loopd began that came with measurements, and those that reused otherwise. */
    cache: z.strictObject({
      measured: z.int().min(0),
      losses: z.int().min(0),
      last: CacheLossRecord.omit({ kind: true, turn: true }).nullable(),
    }),
  })],
});

export const SessionSummary = z.strictObject({
  session: SessionId,
  started_unix_ms: UnixMs,
  turns: z.int().min(0),
  records: z.int().min(0),
  epoch: z.int().min(0),
  label: Label,
  state: z.enum(["idle", "running", "damaged"]),
});
export type SessionSummary = z.output<typeof SessionSummary>;

/** Newest first; `before` is the last session of the page before. */
export const SESSIONS_LIST = exchange({
  request: message("sessions_list", {
    before: SessionId.nullable(),
    limit: z.int().min(1).max(200),
  }),
  replies: [message("sessions", { items: z.array(SessionSummary).max(200) })],
});

/** The exact bytes of one epoch's log precede the reply. */
export const SESSION_LOG = exchange({
  request: message("session_log", { session: SessionId, epoch: z.int().min(0).nullable() }),
  replies: [message("session_log_end", { session: SessionId, epoch: z.int().min(0) })],
  downloadMaxBytes: MAX_OUTPUT_BYTES,
});

export const SESSION_VERIFY = exchange({
  request: message("session_verify", { session: SessionId }),
  replies: [message("session_verified", {
    session: SessionId,
    is_whole: z.boolean(),
    records: z.int().min(0),
    finding: ShortText,
  })],
});

/** How each request of a session's newest epoch found the server's cache, oldest first; tokens. */
export const CACHE_REPORT = exchange({
  request: message("cache_report", {
    /** Null is the session that began last. */
    session: SessionId.nullable(),
    limit: z.int().min(1).max(1_000),
  }),
  replies: [message("cache_uses", {
    session: SessionId,
    epoch: z.int().min(0),
    items: z.array(z.strictObject({
      turn: TurnId,
      time_unix_ms: UnixMs,
      reused: z.int().min(0),
      read: z.int().min(0),
      written: z.int().min(0),
      /** Null when nobody can say. */
      expected: z.int().min(0).nullable(),
      cause: ShortText,
    })).max(1_000),
  })],
});

/** The baseline's token bill, by the server's own count when it answers. */
export const PROMPT_BILL = exchange({
  request: message("prompt_bill", {}),
  replies: [message("prompt_bill", {
    lines: z.array(z.strictObject({ part: ShortText, tokens: z.int().min(0) })).max(64),
    total: z.int().min(0),
    budget: z.int().min(0),
    counted_by: z.enum(["server", "estimate"]),
  })],
});
