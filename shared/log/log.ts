// The one logger of a role: one line on stderr per entry, `TIME ROLE LEVEL message`.
//
// 1. Whatever is in a message stays on its line: line ends, escapes and invisible characters are
//    shown as escapes, so no value can forge an entry or reach a terminal as a command.
// 2. A message is a template around values; a secret among them is written as `[secret]`.
import { type Clock, isoTime } from "../clock/clock.ts";
import type { Err } from "../results/result.ts";
import { escapeForDisplay } from "../text/escape.ts";

const MAX_MESSAGE_UNITS = 16_384;

export interface Log {
  info(message: string): void;
  warn(message: string): void;
  error(message: string): void;
  /** A failure with its code, as `error`: `what: code: detail`. */
  failure(what: string, failure: Err<string>): void;
}

/** Makes a logger; `write` gets each entry with its line feed. */
export function makeLog(role: string, clock: Clock, write: (line: string) => void): Log {
  const entry = (level: string) => (message: string) => {
    const cut = message.length > MAX_MESSAGE_UNITS
      ? `${message.slice(0, MAX_MESSAGE_UNITS)} [${message.length - MAX_MESSAGE_UNITS} more]`
      : message;
    write(`${isoTime(clock.nowUnixMs())} ${role} ${level} ${escapeForDisplay(cut, "line")}\n`);
  };
  const error = entry("error");
  return {
    info: entry("info"),
    warn: entry("warn"),
    error,
    failure: (what, { code, detail }) => error(`${what}: ${code}: ${detail}`),
  };
}
