// The memory block: the text that stands in every prompt, rendered from the identity files. What
// fails the text check, or belongs to a purged session, is left out and named for the owner; the model
// sees no trace of it.
import { escapeForDisplay } from "../../shared/text/escape.ts";
import {
  type EditableFile,
  entriesOf,
  IDENTITY_FILES,
  type IdentityFile,
  sizeLine,
  textOf,
  tidied,
} from "./entries.ts";
import type { Purged } from "./purged.ts";
import { entryProblem, formProblem } from "./text_check.ts";

export type Omitted = { readonly file: string; readonly reason: string };
export type Block = { readonly text: string; readonly omitted: readonly Omitted[] };

const MAX_OMITTED = 200;

/** Renders the block; the counts in its headers are those of the files' whole texts. */
export function renderBlock(texts: Readonly<Record<IdentityFile, string>>, purged: Purged): Block {
  const problemOf = (entry: string) =>
    purged.isHidden(entry, null) ? "it came from a purged session" : entryProblem(entry);
  const omitted: Omitted[] = [];
  const checked = (
    file: IdentityFile,
    texts: readonly string[],
    problem: (text: string) => string | null,
  ) =>
    texts.filter((text) => {
      const found = problem(text);
      if (found !== null) omitted.push(omission(file, text, found));
      return found === null;
    });
  const sections = IDENTITY_FILES.map((file) => {
    const text = texts[file];
    if (file === "soul") {
      const persona = checked(file, [tidied(text)].filter((one) => one !== ""), formProblem);
      return section("soul.md", persona[0]);
    }
    return editable(file, text, checked(file, entriesOf(text), problemOf));
  });
  return { text: sections.join("\n\n"), omitted: omitted.slice(0, MAX_OMITTED) };
}

function editable(file: EditableFile, text: string, entries: readonly string[]): string {
  return section(sizeLine(file, text), entries.length === 0 ? undefined : textOf(entries));
}

function section(title: string, body: string | undefined): string {
  return `# ${title}\n${body ?? "(empty)"}`;
}

function omission(file: IdentityFile, text: string, problem: string): Omitted {
  const start = escapeForDisplay(text.slice(0, 60).toWellFormed(), "line");
  return { file: `${file}.md`, reason: `Left out as ${problem}: "${start}"`.slice(0, 900) };
}
