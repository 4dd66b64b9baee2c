// The text of an identity file: what an entry is, how entries are joined, how a file is measured.
//
// 1. Entries are split by a line holding only `§`; an entry never contains such a line, so what is
//    written is what is read back.
// 2. Sizes are counted in Unicode scalar values over the file's whole text.

export type IdentityFile = "soul" | "memory" | "user";
/** The two files that the memory tool may change. */
export type EditableFile = Exclude<IdentityFile, "soul">;

/** In the order in which the block shows them. */
export const IDENTITY_FILES = ["soul", "memory", "user"] as const;

/** Those that the memory tool may change. */
export const EDITABLE_FILES = ["memory", "user"] as const;

/** The most characters a file may have. */
export const LIMITS: Readonly<Record<IdentityFile, number>> = {
  soul: 4_000,
  memory: 2_200,
  user: 1_375,
};

const SEPARATOR = "§";

/** Number of Unicode scalar values. */
export function characters(text: string): number {
  return [...text].length;
}

/** `1,474`, the same on every machine. */
export function grouped(count: number): string {
  return String(count).replace(/\B(?=(?:\d{3})+$)/g, ",");
}

/** `1,474 of 2,200 characters` */
export function fullness(file: IdentityFile, text: string): string {
  return `${grouped(characters(text))} of ${grouped(LIMITS[file])} characters`;
}

/** One form of line end, no blank ends: the form in which an entry is stored and compared. */
export function tidied(text: string): string {
  return text.replace(/\r\n?/g, "\n").trim();
}

/** Whether a line would split the entry it stands in. */
export function isSeparator(line: string): boolean {
  return line.trim() === SEPARATOR;
}

/** The entries of a file, tidied; blank ones are passed over. */
export function entriesOf(text: string): string[] {
  const entries: string[][] = [[]];
  for (const line of tidied(text).split("\n")) {
    if (isSeparator(line)) entries.push([]);
    else entries.at(-1)?.push(line);
  }
  return entries.map((lines) => tidied(lines.join("\n"))).filter((entry) => entry !== "");
}

/** The text of a file with these entries. */
export function textOf(entries: readonly string[]): string {
  return entries.join(`\n${SEPARATOR}\n`);
}
