// The rules of editing an identity file, as a pure function from entries to entries. An entry is
// named by its exact text, so an edit made for another state of the file fails and changes nothing.
import { z } from "zod";
import { err, ok, type Result } from "../../shared/results/result.ts";
import { characters, type EditableFile, fullness, LIMITS, textOf, tidied } from "./entries.ts";
import { entryProblem } from "./text_check.ts";

const entry = z.string().max(8_000);
const file = z.enum(["memory", "user"]);

/** One line of a consolidation: the fate of a current entry, or a new one. */
const Fate = z.union([
  z.strictObject({ old: entry, keep: z.literal(true) }),
  z.strictObject({ old: entry, text: entry }),
  z.strictObject({ old: entry, move: z.literal(true) }),
  z.strictObject({ old: entry, drop: z.literal(true) }),
  z.strictObject({ text: entry }),
]);
type Fate = z.output<typeof Fate>;

export const Edit = z.discriminatedUnion("action", [
  z.strictObject({ action: z.literal("add"), file, text: entry }),
  z.strictObject({ action: z.literal("replace"), file, old: entry, text: entry }),
  z.strictObject({ action: z.literal("remove"), file, old: entry }),
  z.strictObject({ action: z.literal("consolidate"), file, entries: z.array(Fate).max(400) }),
]);
export type Edit = z.output<typeof Edit>;

/** What an edit takes out of an identity file; it goes to notes.md, so nothing is deleted. */
export type Leaving = { readonly kind: "moved" | "dropped"; readonly text: string };

export type Edited = { readonly entries: readonly string[]; readonly leaving: readonly Leaving[] };

/**
 * The entries after `edit`. Fails with `memory-no-match`, `memory-duplicate`, `memory-incomplete`,
 * `memory-text-refused` or `memory-over-limit`; the detail tells the model what would succeed.
 */
export function applyEdit(edit: Edit, current: readonly string[]): Result<Edited> {
  const fates = fatesOf(edit, current);
  const edited = fates.ok ? consolidated(edit.file, fates.value, current) : fates;
  if (!edited.ok) return edited;
  const { entries } = edited.value;
  const fresh = entries.filter((text) => !current.includes(text));
  for (const text of fresh) {
    const problem = entryProblem(text);
    if (problem !== null) {
      return err("memory-text-refused", `The entry cannot be kept as ${problem}`);
    }
  }
  const count = (list: readonly string[], text: string) => list.filter((x) => x === text).length;
  // The owner's own doubles may stay; an edit may not make one.
  if (entries.some((text) => count(entries, text) > Math.max(1, count(current, text)))) {
    return err("memory-duplicate", `${edit.file}.md would hold the same entry twice`);
  }
  return overLimit(edit.file, entries) ?? edited;
}

function overLimit(name: EditableFile, entries: readonly string[]): Result<never> | null {
  const text = textOf(entries);
  if (characters(text) <= LIMITS[name]) return null;
  const size = `${name}.md would be ${fullness(name, text)}`;
  return err("memory-over-limit", `${size}; use consolidate to move entries to the archive`);
}

/** An edit of any kind as what becomes of each entry. */
function fatesOf(edit: Edit, current: readonly string[]): Result<readonly Fate[]> {
  if (edit.action === "consolidate") return ok(edit.entries);
  const kept = current.map((old): Fate => ({ old, keep: true }));
  if (edit.action === "add") return ok([...kept, { text: edit.text }]);
  const old = tidied(edit.old);
  const count = current.filter((entry) => entry === old).length;
  if (count !== 1) {
    const found = count === 0 ? "matches no entry" : `matches ${count} entries`;
    return err("memory-no-match", `"old" ${found} of ${edit.file}.md; give one entry's whole text`);
  }
  if (edit.action === "replace" && tidied(edit.text) === old) {
    return err("memory-duplicate", `${edit.file}.md already holds this entry`);
  }
  const fate: Fate = edit.action === "remove" ? { old, drop: true } : { old, text: edit.text };
  return ok(kept.with(current.indexOf(old), fate));
}

function consolidated(
  name: EditableFile,
  fates: readonly Fate[],
  current: readonly string[],
): Result<Edited> {
  const open = [...current];
  const entries: string[] = [];
  const leaving: Leaving[] = [];
  for (const fate of fates) {
    if (!("old" in fate)) {
      entries.push(tidied(fate.text));
      continue;
    }
    const old = tidied(fate.old);
    const at = open.indexOf(old);
    if (at < 0) {
      const named = current.includes(old) ? "is named twice" : "matches no entry";
      return err("memory-no-match", `An "old" ${named} of ${name}.md: ${old.slice(0, 80)}`);
    }
    open.splice(at, 1);
    if ("keep" in fate) entries.push(old);
    else if ("move" in fate) leaving.push({ kind: "moved", text: old });
    else if ("drop" in fate) leaving.push({ kind: "dropped", text: old });
    else {
      entries.push(tidied(fate.text));
      if (tidied(fate.text) !== old) leaving.push({ kind: "dropped", text: old });
    }
  }
  if (open.length === 0) return ok({ entries, leaving });
  return err("memory-incomplete", `${open.length} entries of ${name}.md have no fate`);
}
