// Pieces that several sockets' messages share.
import { z } from "zod";
import { message } from "./exchange.ts";
import { ApprovalId, CallId, SessionId, Sha256, ToolName } from "../ids/ids.ts";

export const ShortText = z.string().max(1_000);
/** The last moment is the last that a Date can show. */
export const UnixMs = z.int().min(0).max(8_640_000_000_000_000);
export const Seq = z.int().min(0);

/** Where an audit log stood: the number of its last record and that record's hash. */
export const AuditHead = z.strictObject({ n: z.int().min(0), hash: Sha256 });
export type AuditHead = z.output<typeof AuditHead>;

/** What every role tells of itself. */
export const RoleStatus = {
  version: z.string().max(32),
  started_unix_ms: UnixMs,
  /** One line for a person: what this role is doing or why it cannot. */
  summary: ShortText,
  /** Stable codes of what is wrong now; empty means healthy. */
  problems: z.array(z.strictObject({ code: z.string().max(64), detail: ShortText })).max(32),
};

/** One question to the owner as it is listed; the text to decide by is fetched apart. */
export const ApprovalSummary = z.strictObject({
  approval: ApprovalId,
  session: SessionId,
  call: CallId,
  tool: ToolName,
  state: z.enum(["pending", "approved", "denied", "expired", "withdrawn"]),
  created_unix_ms: UnixMs,
  expires_unix_ms: UnixMs,
  approver: z.enum(["any", "local"]),
});
export type ApprovalSummary = z.output<typeof ApprovalSummary>;

export const AnswerOutcome = z.enum([
  "approved",
  "denied",
  "unknown",
  "expired",
  "already_answered",
  "wrong_thread",
  "local_only",
]);
export type AnswerOutcome = z.output<typeof AnswerOutcome>;

/** What brokerd says to an answer, whoever gave it. */
export const ApprovalAnswered = message("approval_answered", {
  outcome: AnswerOutcome,
  approval: ApprovalId.nullable(),
  tool: ToolName.nullable(),
});

/** What became of an answer, to the one who gave it; a sentence without its stop. */
export const OUTCOME_TEXT: Readonly<Record<AnswerOutcome, string>> = {
  approved: "Approved",
  denied: "Denied",
  unknown: "There is no question with this code",
  expired: "The question has expired; nothing was run",
  already_answered: "The question was answered before",
  wrong_thread: "The question belongs to another thread; answer it there",
  local_only: "The question is answered with bxctl only",
};
