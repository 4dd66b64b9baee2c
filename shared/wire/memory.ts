// memoryd's three sockets: loop-memory/memory (loopd), broker-memory/memory (brokerd) and
// owner-memory/admin (bxctl); and broker-memory/broker, on which brokerd answers memoryd.
import { z } from "zod";
import { CallId, SessionId } from "../ids/ids.ts";
import { DataClass, Label } from "../labels/label.ts";
import { exchange, message } from "./exchange.ts";
import { MAX_ARGUMENT_BYTES } from "./limits.ts";
import { RoleStatus, ShortText, UnixMs } from "./parts.ts";

/** The rendered block precedes the reply. Refused with `memory-unavailable` rather than left out. */
export const MEMORY_BLOCK = exchange({
  request: message("memory_block", {}),
  replies: [message("memory_block_reply", {
    /** Entries that failed the text check and were left out; for the owner, not the model. */
    omitted: z.array(z.strictObject({ file: z.string().max(64), reason: ShortText })).max(200),
  })],
  downloadMaxBytes: 262_144,
});

export const SESSION_UPDATED = exchange({
  request: message("session_updated", { session: SessionId }),
  replies: [message("ok", {})],
});

/** A call brokerd has decided. Arguments follow as chunks; the result's text precedes the reply. */
export const MEMORY_CALL = exchange({
  request: message("memory_call", {
    session: SessionId,
    call: CallId,
    tool: z.enum(["recall", "memory"]),
    /** The session's label as brokerd knows it. */
    label: Label,
    /** Queue identity edits for review instead of applying them. */
    staged: z.boolean(),
  }),
  replies: [message("memory_result", {
    outcome: z.enum(["done", "refused"]),
    code: z.string().max(64).nullable(),
    label: Label,
  })],
  uploadMaxBytes: MAX_ARGUMENT_BYTES,
  downloadMaxBytes: 262_144,
});

/** brokerd's word on a session, asked when a turn ends. */
export const SESSION_STATE = exchange({
  request: message("session_state", { session: SessionId }),
  replies: [message("session_state_reply", { is_known: z.boolean(), label: Label })],
});

export const MEMORY_STATUS = exchange({
  request: message("status", {}),
  replies: [message("memory_status", {
    ...RoleStatus,
    files: z.array(z.strictObject({
      file: z.string().max(64),
      characters: z.int().min(0),
      limit: z.int().min(0).nullable(),
    })).max(16),
    indexed_records: z.int().min(0),
    indexed_logs: z.int().min(0),
  })],
});

/** Looks at every file of memory and at all of the index; empty findings mean that all is well. */
export const MEMORY_CHECK = exchange({
  request: message("memory_check", {}),
  replies: [message("memory_checked", {
    findings: z.array(z.strictObject({ code: z.string().max(64), detail: ShortText })).max(200),
  })],
});

export const ReindexProgress = message("reindex_progress", {
  logs: z.int().min(0),
  total_logs: z.int().min(0),
  records: z.int().min(0),
});

export const REINDEX = exchange({
  request: message("reindex", {}),
  events: [ReindexProgress],
  replies: [message("reindexed", {
    logs: z.int().min(0),
    records: z.int().min(0),
    notes: z.int().min(0),
    skipped: z.array(ShortText).max(200),
  })],
});

export const RecallHit = z.strictObject({
  tag: z.enum(["identity", "memory", "memory-tainted"]),
  /** `session <id> epoch <e> record <n>` or `notes.md entry <n>`. */
  source: z.string().max(200),
  time_unix_ms: UnixMs.nullable(),
  who: z.string().max(64),
  class: DataClass,
  untrusted: z.boolean(),
  snippet: z.string().max(600),
});
export type RecallHit = z.output<typeof RecallHit>;

/** The owner's own search: the same index and ranking as the tool. */
export const OWNER_RECALL = exchange({
  request: message("recall", { query: z.string().min(1).max(500), k: z.int().min(1).max(50) }),
  replies: [message("recalled", { hits: z.array(RecallHit).max(50) })],
});

const EditableName = z.enum(["memory", "user"]);

/** The newest lines of the journal of memory, newest last. */
export const MEMORY_LOG = exchange({
  request: message("memory_log", { limit: z.int().min(1).max(200) }),
  replies: [message("memory_lines", {
    lines: z.array(z.strictObject({
      n: z.int().min(0),
      time_unix_ms: UnixMs,
      kind: z.string().max(32),
      file: z.string().max(64).nullable(),
      action: z.string().max(32).nullable(),
      session: SessionId.nullable(),
    })).max(200),
  })],
});

/** One line of the journal; its JSON text precedes the reply. */
export const MEMORY_SHOW = exchange({
  request: message("memory_show", { n: z.int().min(0) }),
  replies: [message("memory_shown", {})],
  downloadMaxBytes: 1_048_576,
});

/** Puts back what the latest edit of a file replaced. */
export const MEMORY_UNDO = exchange({
  request: message("memory_undo", { file: EditableName }),
  replies: [
    message("memory_undone", {
      file: EditableName,
      characters: z.int().min(0),
      limit: z.int().min(0),
    }),
  ],
});

/**
 * The edits that wait for review. With a call, that edit as JSON text precedes the reply: `edit`,
 * and `before` and `after` of its file, or the `problem` that keeps it from being applied.
 */
export const MEMORY_STAGED = exchange({
  request: message("memory_staged", { call: CallId.nullable() }),
  replies: [message("memory_waiting", {
    staged: z.array(z.strictObject({
      call: CallId,
      session: SessionId,
      time_unix_ms: UnixMs,
      action: z.string().max(32),
      file: EditableName,
    })).max(1_000),
  })],
  downloadMaxBytes: 2_097_152,
});

export const MEMORY_REVIEW = exchange({
  request: message("memory_review", { call: CallId, decision: z.enum(["apply", "drop"]) }),
  replies: [message("memory_reviewed", {})],
});

/**
 * Lists what a session brought in, and with `hide` hides it for good. The list as JSON text precedes
 * the reply: `entries` of `{file, text}`, and `notes`.
 */
export const MEMORY_PURGE = exchange({
  request: message("memory_purge", {
    session: SessionId,
    why: z.string().max(500),
    mode: z.enum(["list", "hide"]),
  }),
  replies: [
    message("memory_purged", {
      entries: z.int().min(0),
      notes: z.int().min(0),
      is_hidden: z.boolean(),
    }),
  ],
  downloadMaxBytes: 67_108_864,
});

/** What waits, what is hidden, and which texts recall has found most often. */
export const MEMORY_OVERVIEW = exchange({
  request: message("memory_overview", {}),
  replies: [message("memory_seen", {
    staged: z.int().min(0),
    purged_sessions: z.int().min(0),
    recalls: z.int().min(0),
    /** Recalls that found nothing. */
    in_vain: z.int().min(0),
    found: z.array(z.strictObject({
      source: z.string().max(200),
      hits: z.int().min(1),
      last_unix_ms: UnixMs,
    })).max(50),
  })],
});
