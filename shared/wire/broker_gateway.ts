// Between brokerd and gatewayd: questions and notices out, answers in.
// gatewayd serves broker-gateway/gateway, brokerd serves broker-gateway/broker.
import { z } from "zod";
import { ApprovalId, SessionId } from "../ids/ids.ts";
import { exchange, message } from "./exchange.ts";
import { ApprovalAnswered, ShortText, UnixMs } from "./parts.ts";

const Ok = message("ok", {});

/** The rendering's escaped lines follow as chunks; the code stands in the last line. Idempotent. */
export const APPROVAL_POST = exchange({
  request: message("approval_post", {
    approval: ApprovalId,
    session: SessionId,
    expires_unix_ms: UnixMs,
  }),
  replies: [Ok],
  uploadMaxBytes: 4_194_304,
});

export const APPROVAL_CLOSED = exchange({
  request: message("approval_closed", { approval: ApprovalId, outcome: ShortText }),
  replies: [Ok],
});

/** A line from brokerd to the owner, for example the daily audit head. */
export const NOTICE_POST = exchange({
  request: message("notice_post", { id: z.string().max(64), text: ShortText }),
  replies: [Ok],
});

/**
 * An answer and where it was typed: the thread's session and, when the thread was made for one
 * question, that question. Whether this is the question's thread is for brokerd to say.
 */
export const GATEWAY_ANSWER = exchange({
  request: message("approval_answer", {
    code: z.string().max(64),
    answer: z.enum(["approve", "deny"]),
    session: SessionId,
    approval: ApprovalId.nullable(),
  }),
  replies: [ApprovalAnswered],
});

export const GATEWAY_STOP = exchange({
  request: message("stop", { why: ShortText }),
  replies: [message("stop_state", { is_stopped: z.boolean() })],
});
