// What every command gets, and the one way commands fail and list.
import { parseArgs, type ParseArgsConfig } from "node:util";
import type { Clock } from "../../shared/clock/clock.ts";
import type { Random } from "../../shared/clock/random.ts";
import { ERRORS } from "../../shared/results/codes.ts";
import { type Err, err, messageOf, ok, type Result } from "../../shared/results/result.ts";
import { escapeJson } from "../../shared/text/escape.ts";
import { canonicalText, decodeUtf8, parseCanonicalText } from "../../shared/wire/codec.ts";
import { joinBytes } from "../../shared/wire/chunks.ts";
import { call, type CallOptions } from "../../shared/wire/dial.ts";
import type { AnyExchange, ReplyOf, RequestOf } from "../../shared/wire/exchange.ts";
import { type SocketName, socketPath } from "../../shared/wire/sockets.ts";
import { shown, type Terminal, tint } from "./terminal.ts";

export const EXIT_OK = 0;
export const EXIT_FAILED = 1;
export const EXIT_USAGE = 2;

export interface Context {
  readonly terminal: Terminal;
  readonly home: string;
  readonly clock: Clock;
  readonly random: Random;
  /** Print JSON instead of text. */
  readonly wantsJson: boolean;
}

/** One command and its forms, each by the word that follows the command's name; "" needs no such word. */
export interface Command {
  readonly summary: string;
  readonly forms: Readonly<Record<string, Form>>;
}

/** One way to write a command: `run` gets the words after it and returns the exit status. */
export interface Form {
  readonly usage: string;
  run(context: Context, args: readonly string[]): Promise<number>;
}

type Options = NonNullable<ParseArgsConfig["options"]>;
type Words<T extends Options> = ReturnType<
  typeof parseArgs<{ args: string[]; options: T; allowPositionals: true; strict: true }>
>;

/** What a form without flags does. */
export type Run = (context: Context, words: Words<Record<never, never>>) => Promise<number>;

/** A word or flag of a command. */
export const WORD = { type: "string" } as const;
export const FLAG = { type: "boolean" } as const;
export const COUNT = { type: "string", short: "n" } as const;

/**
 * A form whose words are read strictly before it runs: `least` to `most` without a flag among them, and
 * the flags of `options`. `--json` is taken by the program itself.
 */
export function form<T extends Options>(
  usage: string,
  [least, most]: readonly [number, number],
  options: T,
  run: (context: Context, words: Words<T>, usage: string) => Promise<number>,
): Form {
  return {
    usage,
    run(context, args) {
      const words = parseWords(args, options, usage, most);
      if (!words.ok) return Promise.resolve(fail(context, words));
      if (words.value.positionals.length < least) return Promise.resolve(misused(context, usage));
      return run(context, words.value, usage);
    },
  };
}

/** Asks a role on one of the owner's sockets. */
export function ask<X extends AnyExchange>(
  context: Context,
  socket: SocketName,
  exchange: X,
  body: RequestOf<X>,
  options: CallOptions<X> = {},
): Promise<Result<ReplyOf<X>>> {
  return call(socketPath(context.home, socket), exchange, body, options);
}

/** As `ask`, for an exchange whose reply follows a text: gives both. */
export async function askText<X extends AnyExchange>(
  context: Context,
  socket: SocketName,
  exchange: X,
  body: RequestOf<X>,
): Promise<Result<{ text: string; reply: ReplyOf<X> }>> {
  const pieces: Uint8Array[] = [];
  const onChunk = (bytes: Uint8Array) => void pieces.push(bytes);
  const reply = await ask(context, socket, exchange, body, { onChunk });
  if (!reply.ok) return reply;
  const text = decodeUtf8(joinBytes(pieces));
  return text.ok ? ok({ text: text.value, reply: reply.value }) : text;
}

/** Tells the owner what failed, why, and what to do; the JSON form is the same for every command. */
export function fail(context: Context, failure: Err): number {
  const { what, todo } = ERRORS[failure.code];
  if (context.wantsJson) {
    const error = { code: failure.code, what, detail: failure.detail, todo };
    printJson(context, { error });
  } else {
    const head = tint(context.terminal, "red", failure.code);
    context.terminal.err(`${head}: ${what}\n  ${shown(failure.detail)}\n  ${todo}\n`);
  }
  return failure.code === "usage" ? EXIT_USAGE : EXIT_FAILED;
}

/** Prints a value as one line of JSON that is safe on a terminal too. */
export function printJson(context: Context, value: unknown): void {
  context.terminal.out(`${escapeJson(canonicalText(value))}\n`);
}

/** Prints a listing: its JSON as one line, or its text. */
export function print(context: Context, value: unknown, text: string): number {
  if (context.wantsJson) printJson(context, value);
  else context.terminal.out(text);
  return EXIT_OK;
}

/** Asks, and prints what is answered: its JSON, or the text that `render` makes. */
export async function askAndPrint<X extends AnyExchange>(
  context: Context,
  socket: SocketName,
  exchange: X,
  body: RequestOf<X>,
  render: (found: ReplyOf<X>["body"]) => string,
): Promise<number> {
  const reply = await ask(context, socket, exchange, body);
  if (!reply.ok) return fail(context, reply);
  const found = reply.value.body;
  return print(context, found, render(found));
}

/** Says how a command is written. */
export function misused(context: Context, usage: string): number {
  return fail(context, err("usage", `usage: bxctl ${usage}`));
}

function parseWords<T extends Options>(
  args: readonly string[],
  options: T,
  usage: string,
  most: number,
): Result<Words<T>> {
  try {
    const words = parseArgs({ args: [...args], options, allowPositionals: true, strict: true });
    const more = words.positionals[most];
    return more === undefined
      ? ok(words)
      : err("usage", `${more} is too much; usage: bxctl ${usage}`);
  } catch (thrown) {
    return err("usage", `${messageOf(thrown)}; usage: bxctl ${usage}`);
  }
}

/** The lines of a stored log as values; one that cannot be read says so. */
export function storedRecords(text: string): unknown[] {
  return text.split("\n").filter((line) => line !== "").map((line) => {
    const parsed = parseCanonicalText(line);
    return parsed.ok ? parsed.value : { unreadable: line };
  });
}

/** A whole number within bounds out of a command's word. Fails with `usage`. */
export function wholeNumber(
  word: string | undefined,
  fallback: number,
  least: number,
  most: number,
): Result<number> {
  if (word === undefined) return ok(fallback);
  const value = Number(word);
  return /^[0-9]{1,9}$/.test(word) && value >= least && value <= most
    ? ok(value)
    : err("usage", `${word} is not a whole number from ${least} to ${most}`);
}
