// The memory tool: one call in, one answer for the model out. What a session may do is decided by the
// label that brokerd gives: what has been read decides who may change what stands in every prompt.
//
// 1. A session that has read untrusted text, or text of a class above private, edits no identity
//    file: its `add` becomes a note with that label, its other edits are refused.
// 2. A failed edit answers with the file as it is, so that the next try can be right.
import { z } from "zod";
import { mustEnd } from "../../shared/disk/durable.ts";
import { coversLabel, type Label, SESSION_START } from "../../shared/labels/label.ts";
import { type Err, err, ok, type Result } from "../../shared/results/result.ts";
import { decodeUtf8, parseJson } from "../../shared/wire/codec.ts";
import { Edit } from "./edits.ts";
import { fullness, tidied } from "./entries.ts";
import type { MemoryStore, Origin } from "./memory_store.ts";
import { entryProblem } from "./text_check.ts";

const MemoryArguments = z.discriminatedUnion("action", [
  ...Edit.options,
  z.strictObject({ action: z.literal("note"), text: z.string().max(32_000) }),
]);
type MemoryArguments = z.output<typeof MemoryArguments>;

/** What a tool call comes to. A refusal is an answer too; its `code` is stable. */
export type Answer = {
  readonly outcome: "done" | "refused";
  readonly code: string | null;
  readonly label: Label;
  readonly text: string;
};

function done(text: string): Answer {
  return { outcome: "done", code: null, label: SESSION_START, text };
}

/** A refusal in the model's words. */
export function refused(failure: Err, more = ""): Answer {
  const text = `Refused (${failure.code}): ${failure.detail}${more}`;
  return { outcome: "refused", code: failure.code, label: SESSION_START, text };
}

/** Parses a tool's arguments by its schema; fails with `arguments-invalid`, naming what is wrong. */
export function parseArguments<S extends z.ZodType>(
  schema: S,
  bytes: Uint8Array,
): Result<z.output<S>> {
  const text = decodeUtf8(bytes);
  const value = text.ok ? parseJson(text.value) : text;
  if (!value.ok) return err("arguments-invalid", value.detail);
  const parsed = schema.safeParse(value.value);
  if (parsed.success) return ok(parsed.data);
  return err("arguments-invalid", z.prettifyError(parsed.error).slice(0, 800));
}

/**
 * Carries out one call of the memory tool. With `staged` an identity edit is queued for the owner's
 * review. Fails only with `disk-failed`, after which the process must end.
 */
export function runMemory(
  store: MemoryStore,
  origin: Origin,
  how: "apply" | "stage",
  bytes: Uint8Array,
): Result<Answer> {
  const args = parseArguments(MemoryArguments, bytes);
  if (!args.ok) return ok(refused(args));
  const answer = args.value.action === "note"
    ? noted(store, origin, args.value.text, "Noted in notes.md.")
    : identity(store, origin, how, args.value);
  return answer.ok || mustEnd(answer) ? answer : ok(refused(answer, state(store, args.value)));
}

function noted(
  store: MemoryStore,
  origin: Origin,
  written: string,
  said: string,
): Result<Answer> {
  const text = tidied(written);
  const problem = entryProblem(text);
  if (problem !== null) {
    return err("memory-text-refused", `The note cannot be kept as ${problem}`);
  }
  const kept = store.note(text, origin);
  return kept.ok ? ok(done(said + aboutLineEnds(written))) : kept;
}

function identity(
  store: MemoryStore,
  origin: Origin,
  how: "apply" | "stage",
  edit: Edit,
): Result<Answer> {
  // Every prompt that holds these files begins with this label. brokerd asks no owner for the rest.
  if (!coversLabel(SESSION_START, origin.label)) return instead(store, origin, edit);
  if (how === "stage") {
    const staged = store.stage(edit, origin);
    if (!staged.ok) return staged;
    return ok(done(`Queued for the owner's review; ${edit.file}.md is unchanged until then.`));
  }
  const after = store.edit(edit, origin);
  if (!after.ok) return after;
  const size = fullness(edit.file, after.value);
  const said = `${edit.file}.md updated (${size}); it takes effect in the next session.`;
  const fresh = "entries" in edit ? edit.entries : [edit];
  return ok(done(said + aboutLineEnds(fresh.map((one) => "text" in one ? one.text : "").join())));
}

function instead(store: MemoryStore, origin: Origin, edit: Edit): Result<Answer> {
  const why = origin.label.untrusted
    ? "this session has read untrusted content"
    : `this session has read text of class ${origin.label.class}`;
  if (edit.action !== "add") {
    return err("memory-untrusted", `${edit.action} is not possible as ${why}; only note is`);
  }
  const how = origin.label.untrusted ? "untrusted" : origin.label.class;
  const said = `Noted in notes.md as ${how} instead of being added to ${edit.file}.md, as ${why}.`;
  return noted(store, origin, edit.text, said);
}

function aboutLineEnds(written: string): string {
  return written.includes("\r") ? " Line ends were changed to one form." : "";
}

/** The file an edit was about as it is now, as far as the block would show it. */
function state(store: MemoryStore, args: MemoryArguments): string {
  const now = args.action === "note" ? null : store.block([args.file]);
  if (!now?.ok) return "";
  const { text, omitted: { length } } = now.value;
  const more = length === 0 ? "" : ` (${length} more entries are not shown)`;
  return `\n\nEntries are separated by a line holding only §.${more}\n${text}`;
}
