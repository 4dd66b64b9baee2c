// The real terminal. Input is read line by line, so one reader serves the chat and its questions.
import { joinBytes } from "../../shared/wire/chunks.ts";
import { decodeLossy, encodeUtf8 } from "../../shared/wire/codec.ts";
import type { Terminal } from "./terminal.ts";

const MAX_LINE_BYTES = 1_048_576;

/**
 * The process's own terminal; colour only when both outputs are one, and never when NO_COLOR is set.
 * `exit` ends the process when a hidden prompt is interrupted.
 */
export function denoTerminal(exit: (status: number) => never): Terminal {
  const nextLine = lineReader();
  return {
    out: (text) => writeAll(Deno.stdout, text),
    err: (text) => writeAll(Deno.stderr, text),
    readLine: nextLine,
    readHidden: (prompt) => Deno.stdin.isTerminal() ? typedUnseen(prompt, exit) : nextLine(),
    isInteractive: Deno.stdin.isTerminal() && Deno.stderr.isTerminal(),
    hasColor: Deno.stdout.isTerminal() && Deno.stderr.isTerminal() && !Deno.noColor,
    columns: columns(),
  };
}

function columns(): number {
  try {
    return Deno.consoleSize().columns;
  } catch {
    // Not a terminal: a width that wraps nowhere.
    return 1_000;
  }
}

function writeAll(to: { writeSync(bytes: Uint8Array): number }, text: string): void {
  let rest: Uint8Array = encodeUtf8(text);
  while (rest.length > 0) rest = rest.subarray(to.writeSync(rest));
}

const ENDS = [["SIGTERM", 143], ["SIGHUP", 129]] as const;

/**
 * Asks and reads keys until the line ends, echo off. Ctrl-C comes as a key, so that the terminal is put right
 * before the program ends; other control keys do nothing, and Ctrl-D is no answer.
 */
async function typedUnseen(
  prompt: string,
  exit: (status: number) => never,
): Promise<string | null> {
  const typed: number[] = [];
  const key = new Uint8Array(1);
  const leave = (status: number): never => {
    Deno.stdin.setRaw(false);
    Deno.stderr.writeSync(encodeUtf8("\n"));
    return exit(status);
  };
  const ends = ENDS.map(([signal, status]) => [signal, () => leave(status)] as const);
  for (const [signal, end] of ends) Deno.addSignalListener(signal, end);
  // What is typed as soon as the prompt is there is not shown any more.
  Deno.stdin.setRaw(true);
  try {
    writeAll(Deno.stderr, prompt);
    for (;;) {
      const [byte] = (await Deno.stdin.read(key)) === null ? [4] : key;
      if (byte === undefined || byte === 4) return null;
      if (byte === 3) leave(130);
      if (byte === 10 || byte === 13) return decodeLossy(Uint8Array.from(typed));
      // A character may have several bytes; the last of them goes with the ones that continue it.
      if (byte === 8 || byte === 127) { while (((typed.pop() ?? 0) & 0xc0) === 0x80); }
      else if (byte >= 32) typed.push(byte);
    }
  } finally {
    Deno.stdin.setRaw(false);
    for (const [signal, end] of ends) Deno.removeSignalListener(signal, end);
  }
}

function lineReader(): () => Promise<string | null> {
  let held = new Uint8Array(0);
  let isAtEnd = false;
  return async () => {
    for (;;) {
      const end = held.indexOf(10);
      if (end >= 0 || (isAtEnd && held.length > 0)) {
        const line = decodeLossy(held.subarray(0, end < 0 ? held.length : end));
        held = held.slice(end < 0 ? held.length : end + 1);
        return line.replace(/\r$/, "");
      }
      if (isAtEnd || held.length > MAX_LINE_BYTES) return null;
      const block = new Uint8Array(65_536);
      const read = await Deno.stdin.read(block);
      if (read === null) isAtEnd = true;
      else held = joinBytes([held, block.subarray(0, read)]);
    }
  };
}
