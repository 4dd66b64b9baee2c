// Paths and lines as a tool prints them: one line each, nothing invisible, and two different names
// never look the same. Unusual code points appear as \u{...}, a backslash as two.

const UNUSUAL =
  /[\\\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800\u{1D159}\uFFFD]|(?! )\p{Zs}/gu;
const UNUSUAL_IN_LINE = /(?!\t)[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

/** A file's name or relative path for display; injective. */
export function shownName(name: string): string {
  return name.replace(UNUSUAL, (point) => point === "\\" ? "\\\\" : escaped(point));
}

/** One line of a file for display: tabs stay, invisible code points are shown, the end is cut. */
export function shownLine(line: string, maxUnits: number): string {
  const shown = line.slice(0, maxUnits).replace(UNUSUAL_IN_LINE, escaped);
  return line.length > maxUnits ? `${shown} ... (${line.length} characters)` : shown;
}

function escaped(point: string): string {
  return `\\u{${(point.codePointAt(0) ?? 0).toString(16).toUpperCase()}}`;
}
