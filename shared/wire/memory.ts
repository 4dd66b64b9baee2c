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
  request: message("memory_block", z.strictObject({})),
  replies: [message(
    "memory_block_reply",
    z.strictObject({
      /** Entries that failed the text check and were left out; for the owner, not the model. */
      omitted: z.array(z.strictObject({ file: z.string().max(64), reason: ShortText })).max(200),
    }),
  )],
  downloadMaxBytes: 262_144,
});

export const SESSION_UPDATED = exchange({
  request: message("session_updated", z.strictObject({ session: SessionId })),
  replies: [message("ok", z.strictObject({}))],
});

/** A call brokerd has decided. Arguments follow as chunks; the result's text precedes the reply. */
export const MEMORY_CALL = exchange({
  request: message(
    "memory_call",
    z.strictObject({
      session: SessionId,
      call: CallId,
      tool: z.enum(["recall", "memory"]),
      /** The session's label as brokerd knows it. */
      label: Label,
      /** Queue identity edits for review instead of applying them. */
      staged: z.boolean(),
    }),
  ),
  replies: [message(
    "memory_result",
    z.strictObject({
      outcome: z.enum(["done", "refused"]),
      code: z.string().max(64).nullable(),
      label: Label,
    }),
  )],
  uploadMaxBytes: MAX_ARGUMENT_BYTES,
  downloadMaxBytes: 262_144,
});

/** brokerd's word on a session, asked when a turn ends. */
export const SESSION_STATE = exchange({
  request: message("session_state", z.strictObject({ session: SessionId })),
  replies: [message(
    "session_state_reply",
    z.strictObject({ is_known: z.boolean(), label: Label }),
  )],
});

export const MEMORY_STATUS = exchange({
  request: message("status", z.strictObject({})),
  replies: [message(
    "memory_status",
    z.strictObject({
      ...RoleStatus,
      files: z.array(z.strictObject({
        file: z.string().max(64),
        characters: z.int().min(0),
        limit: z.int().min(0).nullable(),
      })).max(16),
      indexed_records: z.int().min(0),
      indexed_logs: z.int().min(0),
    }),
  )],
});

export const ReindexProgress = message(
  "reindex_progress",
  z.strictObject({ logs: z.int().min(0), total_logs: z.int().min(0), records: z.int().min(0) }),
);

export const REINDEX = exchange({
  request: message("reindex", z.strictObject({})),
  events: [ReindexProgress],
  replies: [message(
    "reindexed",
    z.strictObject({
      logs: z.int().min(0),
      records: z.int().min(0),
      notes: z.int().min(0),
      skipped: z.array(ShortText).max(200),
    }),
  )],
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
  request: message(
    "recall",
    z.strictObject({ query: z.string().min(1).max(500), k: z.int().min(1).max(50) }),
  ),
  replies: [message("recalled", z.strictObject({ hits: z.array(RecallHit).max(50) }))],
});
