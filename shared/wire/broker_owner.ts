// What brokerd answers to bxctl on owner-broker/admin. This socket is the owner: what comes in here
// may answer any question, stop the house and read the audit log.
import { z } from "zod";
import { ApprovalId, SessionId, Sha256, ToolName } from "../ids/ids.ts";
import { DataClass, Label } from "../labels/label.ts";
import { exchange, message } from "./exchange.ts";
import { MAX_ARGUMENT_BYTES, MAX_OUTPUT_BYTES } from "./limits.ts";
import { ApprovalAnswered, ApprovalSummary, AuditHead, RoleStatus, ShortText } from "./parts.ts";

export const BROKER_STATUS = exchange({
  request: message("status", {}),
  replies: [message("broker_status", {
    ...RoleStatus,
    is_stopped: z.boolean(),
    grants: z.int().min(0),
    grant_problems: z.int().min(0),
    approvals_pending: z.int().min(0),
    calls_running: z.int().min(0),
    runtime: z.strictObject({
      is_ready: z.boolean(),
      detail: ShortText,
      image: z.string().max(128).nullable(),
      catalog: Sha256.nullable(),
    }),
    egress: z.strictObject({ is_reachable: z.boolean(), detail: ShortText }),
    audit: AuditHead,
  })],
});

export const APPROVALS_LIST = exchange({
  request: message("approvals_list", {
    include_answered: z.boolean(),
    limit: z.int().min(1).max(200),
  }),
  replies: [message("approvals", { items: z.array(ApprovalSummary).max(200) })],
});

/** The rendering precedes the reply as UTF-8 lines, already escaped, complete, in order. */
export const APPROVAL_SHOW = exchange({
  request: message("approval_show", { approval: ApprovalId }),
  replies: [message("approval", { summary: ApprovalSummary, code: z.string().max(32) })],
  downloadMaxBytes: 4_194_304,
});

export const APPROVAL_ANSWER = exchange({
  request: message("approval_answer", {
    code: z.string().max(64),
    answer: z.enum(["approve", "deny"]),
  }),
  replies: [ApprovalAnswered],
});

const StopState = message("stop_state", {
  is_stopped: z.boolean(),
  was_stopped: z.boolean(),
  ended: z.int().min(0),
});

/** Refuses every new effect at once, ends what runs, and stays so over restarts. */
export const STOP = exchange({
  request: message("stop", { why: ShortText }),
  replies: [StopState],
});
export const RESUME = exchange({ request: message("resume", {}), replies: [StopState] });

/** The last `count` audit lines up to record `end` precede the reply, oldest first, as stored. */
export const AUDIT_TAIL = exchange({
  request: message("audit_tail", {
    count: z.int().min(1).max(10_000),
    end: z.int().min(0).optional(),
  }),
  replies: [message("audit_tail_end", { head: AuditHead, lines: z.int().min(0) })],
  downloadMaxBytes: MAX_OUTPUT_BYTES,
});

export const VerifyProgress = message("verify_progress", {
  records: z.int().min(0),
  bytes: z.int().min(0),
  total_bytes: z.int().min(0),
});

export const AUDIT_VERIFY = exchange({
  request: message("audit_verify", { against: AuditHead.nullable() }),
  events: [VerifyProgress],
  replies: [message("audit_verified", {
    is_whole: z.boolean(),
    records: z.int().min(0),
    files: z.int().min(0),
    head: AuditHead.nullable(),
    finding: ShortText,
  })],
});

/**
 * Declares a damaged log lost from a point on and goes on after it. Without the very finding that the
 * owner was shown it only tells it. It may end brokerd, which then starts with the new file.
 */
export const AUDIT_REPAIR = exchange({
  request: message("audit_repair", { finding: ShortText.nullable() }),
  replies: [
    message("audit_repaired", {
      is_done: z.boolean(),
      finding: ShortText,
      head: AuditHead.nullable(),
    }),
  ],
});

export const GrantSummary = z.strictObject({
  name: z.string().max(255),
  is_built_in: z.boolean(),
  sha256: Sha256.nullable(),
  tool: z.string().max(64).nullable(),
  mode: z.enum(["auto", "ask", "deny"]).nullable(),
  max_taint: DataClass.nullable(),
  /** Also a time before 1970, as a file may say. */
  expires_unix_ms: z.int().min(-8.64e15).max(8.64e15).nullable(),
  /** Origins that it lets be reached. */
  hosts: z.array(z.string().max(300)).max(32).optional(),
  /** Each with the file's line where it is known; empty means the grant counts. */
  problems: z.array(ShortText).max(32),
});
export type GrantSummary = z.output<typeof GrantSummary>;

export const GRANTS_CHECK = exchange({
  request: message("grants_check", {}),
  replies: [message("grants", { items: z.array(GrantSummary).max(1_000) })],
});

/** Keeps a secret that brokerd.toml names; its one line follows as chunks. */
export const SECRET_SET = exchange({
  request: message("secret_set", { name: z.string().regex(/^[a-z][a-z0-9_]{0,31}$/) }),
  replies: [message("secret_kept", { was_there: z.boolean() })],
  uploadMaxBytes: 16_384,
});

/** Evaluates without doing anything. The arguments' JSON text follows as chunks. */
export const GRANTS_EXPLAIN = exchange({
  request: message("grants_explain", {
    tool: ToolName,
    session: SessionId.nullable(),
    label: Label,
  }),
  replies: [message("grants_explained", {
    verdict: z.enum(["auto", "ask", "deny"]),
    code: z.string().max(64),
    lines: z.array(ShortText).max(500),
  })],
  uploadMaxBytes: MAX_ARGUMENT_BYTES,
});
