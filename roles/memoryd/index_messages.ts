// What memoryd and its search Worker say to each other. The Worker reads what models and pages wrote,
// so memoryd checks what it says as it would check a peer.
import { z } from "zod";
import { SessionId } from "../../shared/ids/ids.ts";
import { DataClass } from "../../shared/labels/label.ts";
import type { Result } from "../../shared/results/result.ts";
import { type Counts, Row } from "./index_db.ts";

export const Ask = z.discriminatedUnion("kind", [
  /** `home` is the absolute home folder. */
  z.strictObject({ kind: z.literal("open"), id: z.int(), home: z.string(), max_class: DataClass }),
  z.strictObject({ kind: z.literal("search"), id: z.int(), query: z.string(), k: z.int() }),
  /** Read what is new: of one session, or of notes.md when it is null. */
  z.strictObject({ kind: z.literal("update"), id: z.int(), session: SessionId.nullable() }),
  /** After `close` nothing is answered. */
  z.strictObject({ kind: z.enum(["reindex", "counts", "check", "close"]), id: z.int() }),
]);
export type Ask = z.output<typeof Ask>;

/** One found text, ready to be shown. */
export const Hit = z.strictObject({
  ...Row.omit({ text: true }).shape,
  snippet: z.string().max(600),
});
export type Hit = z.output<typeof Hit>;

/** `partial`: the index is being built, so something may be missing. */
export const Hits = z.strictObject({ hits: z.array(Hit).max(50), partial: z.boolean() });
export type Hits = z.output<typeof Hits>;

const count = z.int().min(0);

/** How far a rebuild is. */
export const Progressed = z.strictObject({ logs: count, total_logs: count, records: count });
export type OnStep = (step: z.output<typeof Progressed>) => void;

/** What can be asked of the index, on either side of the Worker. */
export interface Index {
  /** The best `k` texts for a question. Fails with `recall-late` or `memory-index-damaged`. */
  search(question: string, k: number): Promise<Result<Hits>>;
  /** Has what is new read: of a session, or of notes.md. A later search sees it, once this ends. */
  update(session: SessionId | null): Promise<void>;
  /** Builds the index anew while the old one goes on answering. */
  reindex(onStep: OnStep): Promise<Result<Counts>>;
  counts(): Promise<Result<Counts>>;
  /** Looks at all of the index. Fails with `memory-index-damaged`; it is then built anew. */
  check(): Promise<Result<null>>;
  /** Has the index closed, and sealed where it can be; the last thing that is asked. */
  close(): Promise<void>;
}

/** Anything the Worker says; any of it shows that the Worker is alive. */
export const Told = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("progress"), id: z.int(), step: Progressed }),
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
