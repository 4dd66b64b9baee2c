// The owner's terminal as a port, and the few ways text may reach it.
// Invariant: stored or received text is escaped before it is written, whatever it came from; only
// this program's own words and colours go out as they are.
import { escapeForDisplay, escapeProse } from "../../shared/text/escape.ts";

export interface Terminal {
  /** Writes to standard output, where results go. */
  out(text: string): void;
  /** Writes to standard error, where progress, questions and complaints go. */
  err(text: string): void;
  /** The next line typed, without its end; null at the end of input. */
  readLine(): Promise<string | null>;
  /** As `readLine` after `prompt`, but what is typed is not shown; without a terminal nothing is asked. */
  readHidden(prompt: string): Promise<string | null>;
  readonly isInteractive: boolean;
  readonly hasColor: boolean;
  readonly columns: number;
}

export type Tint = "dim" | "bold" | "red" | "green" | "yellow";
const CODES: Record<Tint, string> = { dim: "2", bold: "1", red: "31", green: "32", yellow: "33" };

/** A text of one line, escaped, and coloured on a terminal that wants it. */
export function tint(terminal: Terminal, how: Tint, text: string): string {
  return terminal.hasColor ? `\x1b[${CODES[how]}m${shown(text)}\x1b[0m` : shown(text);
}

/** Foreign text of one line. */
export function shown(text: string): string {
  return escapeForDisplay(text, "line");
}

/** Prose of a person or model, or text that is escaped already: keeps its line breaks and tabs. */
export function shownLines(text: string): string {
  return escapeProse(text);
}

/** Columns aligned by their widest cell; the last column runs free. Cells are escaped here. */
export function table(rows: readonly (readonly string[])[]): string {
  const cells = rows.map((row) => row.map(shown));
  const widths: number[] = [];
  for (const row of cells) {
    row.slice(0, -1).forEach((cell, i) => widths[i] = Math.max(widths[i] ?? 0, [...cell].length));
  }
  const pad = (cell: string, i: number, row: readonly string[]) =>
    i === row.length - 1 ? cell : cell + " ".repeat((widths[i] ?? 0) - [...cell].length);
  return cells.map((row) => row.map(pad).join("  ").trimEnd() + "\n").join("");
}

/** A line that replaces itself on a terminal and is silent elsewhere. */
export interface ProgressLine {
  show(text: string): void;
  clear(): void;
}

export function progressLine(terminal: Terminal): ProgressLine {
  let isShown = false;
  const wipe = () => {
    if (isShown) terminal.err("\r\x1b[K");
    isShown = false;
  };
  return {
    show(text) {
      if (!terminal.isInteractive) return;
      wipe();
      terminal.err(tint(terminal, "dim", text.slice(0, terminal.columns - 1)));
      isShown = true;
    },
    clear: wipe,
  };
}

/** `3 s`, `5 min`, `2 h` for a span of milliseconds, rounded down; `now` below one second. */
export function span(ms: number): string {
  const seconds = Math.floor(ms / 1_000);
  if (seconds < 1) return "now";
  if (seconds < 120) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 120 ? `${minutes} min` : `${Math.floor(minutes / 60)} h`;
}
