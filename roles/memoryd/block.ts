// The memory block: the text that stands in every prompt, rendered from the identity files. What
// fails the text check, or belongs to a purged session, is left out and named for the owner; the model
// sees no trace of it.
import { ok, type Result } from "../../shared/results/result.ts";
import { escapeForDisplay } from "../../shared/text/escape.ts";
import { entriesOf, fullness, type IdentityFile, textOf, tidied } from "./entries.ts";
import type { Purged } from "./purged.ts";
import { entryProblem, formProblem } from "./text_check.ts";

type Omitted = { readonly file: string; readonly reason: string };
export type Block = { readonly text: string; readonly omitted: readonly Omitted[] };

const MAX_OMITTED = 200;

/** The block of these files, or the first failure of `read`. */
export function renderBlock(
  files: readonly IdentityFile[],
  read: (file: IdentityFile) => Result<string>,
  purged: Purged,
): Result<Block> {
  const parts: Block[] = [];
  for (const file of files) {
    const text = read(file);
    if (!text.ok) return text;
    parts.push(renderFile(file, text.value, purged));
  }
  return ok({
    text: parts.map(({ text }) => text).join("\n\n"),
    omitted: parts.flatMap(({ omitted }) => omitted).slice(0, MAX_OMITTED),
  });
}

/** One file's part of the block; the counts in its head are those of the file's whole text. */
function renderFile(file: IdentityFile, text: string, purged: Purged): Block {
  const isSoul = file === "soul";
  const problemOf = (entry: string) => {
    if (isSoul) return formProblem(entry);
    return purged.isHidden(entry) ? "it came from a purged session" : entryProblem(entry);
  };
  const found = (isSoul ? [tidied(text)].filter((one) => one !== "") : entriesOf(text))
    .map((entry) => ({ entry, problem: problemOf(entry) }));
  const shown = found.filter(({ problem }) => problem === null).map(({ entry }) => entry);
  const head = isSoul ? "soul.md" : `${file}.md (${fullness(file, text)})`;
  return {
    text: `# ${head}\n${shown.length === 0 ? "(empty)" : textOf(shown)}`,
    omitted: found.flatMap(({ entry, problem }) => {
      if (problem === null) return [];
      const start = escapeForDisplay(entry.slice(0, 60).toWellFormed(), "line");
      const reason = `Left out as ${problem}: "${start}"`.slice(0, 900);
      return [{ file: `${file}.md`, reason }];
    }),
  };
}
