// What brokerd answers to loopd on loop-broker/broker.
//
// A request is answered at once: decided and finished, or `pending`. What comes later is told on one
// `watch`; its numbers belong to one life of brokerd (`boot`), so after a gap or a new boot loopd
// asks again for each open call by its id, which joins or answers and never repeats.
import { z } from "zod";
import { ApprovalId, CallId, SessionId, Sha256, ToolName, TurnId } from "../ids/ids.ts";
import { Label } from "../labels/label.ts";
import { exchange, message } from "./exchange.ts";
import { MAX_ARGUMENT_BYTES, MAX_OUTPUT_BYTES } from "./limits.ts";
import { AuditHead, Seq, ShortText, UnixMs } from "./parts.ts";

export const SESSION_OPEN = exchange({
  request: message("session_open", {
    session: SessionId,
    kind: z.enum(["main", "chat", "job", "run"]),
    job: z.string().max(64).nullable(),
    workspace: z.string().max(4_096).nullable(),
  }),
  replies: [message("session_opened", {
    session: SessionId,
    label: Label,
    /** Digests of the tool catalogues now in force, the toolkit's own first. */
    catalogs: z.array(Sha256).max(32),
  })],
});

/** Raises the session's label; it can only go up. */
export const SESSION_RAISE = exchange({
  request: message("session_raise", { session: SessionId, label: Label, why: ShortText }),
  replies: [message("session_raised", { session: SessionId, label: Label })],
});

/** The catalogue's canonical bytes precede the reply. */
export const TOOL_CATALOG = exchange({
  request: message("tool_catalog", { digest: Sha256 }),
  replies: [message("tool_catalog_end", { digest: Sha256 })],
  downloadMaxBytes: 4_194_304,
});

export const ToolResponse = message("tool_response", {
  session: SessionId,
  call: CallId,
  outcome: z.enum(["done", "failed", "denied", "unknown", "run_local"]),
  /** Why a call was denied or failed: a reason or error code; null when done. */
  code: z.string().max(64).nullable(),
  /** One or two sentences for the model and the owner; empty when done. */
  message: z.string().max(4_000),
  /** The label of the output. */
  label: Label,
  /** The session's label after this call. */
  session_label: Label,
  bytes: z.int().min(0),
  sha256: Sha256,
  /** Whether output beyond the cap was dropped. */
  is_cut: z.boolean(),
  audit: AuditHead,
  container: z.string().max(64).nullable(),
  image: z.string().max(128).nullable(),
});

export const Pending = message("pending", {
  session: SessionId,
  call: CallId,
  state: z.enum(["queued", "running", "waiting_approval"]),
  approval: ApprovalId.nullable(),
  expires_unix_ms: UnixMs.nullable(),
});

/** The arguments' JSON text follows as chunks. A finished call's exact output precedes the response. */
export const TOOL_REQUEST = exchange({
  request: message("tool_request", {
    session: SessionId,
    turn: TurnId,
    call: CallId,
    tool: ToolName,
    /** The last audit head this caller was shown. */
    witness: AuditHead.nullable(),
  }),
  replies: [ToolResponse, Pending],
  uploadMaxBytes: MAX_ARGUMENT_BYTES,
  downloadMaxBytes: MAX_OUTPUT_BYTES,
});

/** Asks for a call by id alone: finished, still pending, or `not-found`. */
export const RESULT_FETCH = exchange({
  request: message("result_fetch", { session: SessionId, call: CallId }),
  replies: [ToolResponse, Pending],
  downloadMaxBytes: MAX_OUTPUT_BYTES,
});

/** Says that the result is durable on the caller's side; its output need not be kept. */
export const RESULT_ACK = exchange({
  request: message("result_ack", { session: SessionId, call: CallId }),
  replies: [message("ok", {})],
});

/** Withdraws a call: a question is closed, a running container is ended. */
export const CALL_CANCEL = exchange({
  request: message("call_cancel", { session: SessionId, call: CallId }),
  replies: [message("ok", {})],
});

const Place = { seq: Seq, session: SessionId, call: CallId };

export const ApprovalPending = message("approval_pending", {
  ...Place,
  approval: ApprovalId,
  expires_unix_ms: UnixMs,
});
export const CallStarted = message("call_started", Place);
/** The call is finished: fetch its result. */
export const CallReady = message("call_ready", Place);
/** Where the numbers of this life of brokerd stand; sent first, and after anything was dropped. */
export const WatchStart = message("watch_start", {
  boot: z.string().max(64),
  seq: Seq,
  has_gap: z.boolean(),
});

export const BROKER_WATCH = exchange({
  request: message("watch", { boot: z.string().max(64).nullable(), after: z.int().min(-1) }),
  events: [WatchStart, ApprovalPending, CallStarted, CallReady],
  replies: [message("watch_end", { why: ShortText })],
});
