// What memoryd and its search Worker say to each other. The Worker reads what models and pages wrote,
// so memoryd checks what it says as it would check a peer.
import { z } from "zod";
import { SessionId } from "../../shared/ids/ids.ts";
import { DataClass, Label } from "../../shared/labels/label.ts";

export const Ask = z.discriminatedUnion("kind", [
  z.strictObject({
    kind: z.literal("open"),
    id: z.int(),
    /** The absolute home folder. */
    home: z.string(),
    max_class: DataClass,
  }),
  z.strictObject({ kind: z.literal("search"), id: z.int(), query: z.string(), k: z.int() }),
  /** Read what is new: of one session, or of notes.md when it is null. */
  z.strictObject({ kind: z.literal("update"), id: z.int(), session: SessionId.nullable() }),
  z.strictObject({ kind: z.literal("reindex"), id: z.int() }),
  z.strictObject({ kind: z.literal("counts"), id: z.int() }),
]);
export type Ask = z.output<typeof Ask>;

/** One found text, ready to be shown. */
export const Hit = z.strictObject({
  /** `<session>/<epoch>` or `notes.md`. */
  log: z.string().max(200),
  record: z.int().min(0),
  time_unix_ms: z.int().min(0),
  who: z.string().max(64),
  tag: z.enum(["identity", "experience"]),
  label: Label,
  snippet: z.string().max(600),
});
export type Hit = z.output<typeof Hit>;

export const Hits = z.strictObject({
  hits: z.array(Hit).max(50),
  /** The index is being built, so something may be missing. */
  partial: z.boolean(),
});
export type Hits = z.output<typeof Hits>;

export const Counts = z.strictObject({
  logs: z.int().min(0),
  rows: z.int().min(0),
  notes: z.int().min(0),
  /** Logs that were skipped, each with the reason. */
  skipped: z.array(z.string().max(1_000)).max(200),
});
export type Counts = z.output<typeof Counts>;

/** Anything the Worker says; any of it shows that the Worker is alive. */
export const Told = z.discriminatedUnion("kind", [
  z.strictObject({
    kind: z.literal("progress"),
    id: z.int(),
    logs: z.int().min(0),
    total_logs: z.int().min(0),
    records: z.int().min(0),
  }),
  z.strictObject({ kind: z.literal("done"), id: z.int(), value: z.unknown() }),
  z.strictObject({
    kind: z.literal("failed"),
    id: z.int(),
    code: z.string().max(64),
    detail: z.string().max(2_000),
  }),
  z.strictObject({ kind: z.literal("log"), line: z.string().max(2_000) }),
]);
export type Told = z.output<typeof Told>;
