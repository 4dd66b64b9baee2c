// The frame of every tool: one line in, exact bytes out, one result, and an end that is certain.
//
// 1. Standard input carries one JSON line `{"args":{...},"secrets":{...}}` and then stays open; when
//    it ends, whoever asked is gone and the tool ends at once.
// 2. Standard output carries frames only. A result says how many bytes were sent. (It names no hash:
//    the receiver hashes, and loading a hash that streams would more than double a tool's start.)
// 3. A failure is a code and a sentence the model can act on; an exception is `internal`.
import { decodeUtf8, encodeUtf8, parseJson } from "../wire/codec.ts";
import { err, messageOf, ok, type Result } from "../results/result.ts";
import type { Random } from "../clock/random.ts";
import type { Files } from "./files.ts";
import { MAX_PIECE_BYTES, outputFrame, resultFrame } from "./frames.ts";

/** Longest call line: arguments, secrets and their framing. */
export const MAX_CALL_BYTES = 1_048_576;

/** The process around a tool. */
export interface Host {
  /** The next bytes of standard input, or null at its end. */
  read(): Promise<Uint8Array | null>;
  /** Writes all of `bytes` to standard output. */
  write(bytes: Uint8Array): Promise<void>;
  exit(status: number): void;
  readonly files: Files;
  readonly random: Random;
}

/** What a body returns when it failed: `code` for programs, `message` for the model. */
export type ToolOutcome = Result<string, string>;

export interface ToolCall {
  readonly args: Readonly<Record<string, unknown>>;
  readonly secrets: Readonly<Record<string, unknown>>;
  readonly files: Files;
  readonly random: Random;
  /** Sends output; text is sent as UTF-8. Pieces are gathered, order is kept. */
  write(piece: Uint8Array | string): Promise<void>;
}

/** The work of a tool. Success may carry a note beside the output (empty for none). */
export type ToolBody = (call: ToolCall) => Promise<ToolOutcome>;

/** Status of a tool whose caller went away. */
export const EXIT_ABANDONED = 3;

/** Runs one call and ends the process. */
export async function serveTool(body: ToolBody, host: Host): Promise<void> {
  const line = await readCall(host);
  if (!line.ok) return host.exit(EXIT_ABANDONED);
  const watch = watchInput(host);
  const out = outputOf(host);
  let outcome: ToolOutcome;
  try {
    outcome = await body({
      ...line.value,
      files: host.files,
      random: host.random,
      write: out.write,
    });
    await out.flush();
  } catch (thrown) {
    outcome = err("internal", `The tool failed: ${messageOf(thrown)}`);
  }
  await host.write(resultFrame(resultJson(outcome, out.sent())));
  host.exit(0);
  await watch;
}

type Call = Pick<ToolCall, "args" | "secrets">;

async function readCall(host: Host): Promise<Result<Call, "no-call">> {
  const pieces: number[][] = [];
  let length = 0;
  for (let piece = await host.read(); piece !== null; piece = await host.read()) {
    const end = piece.indexOf(10);
    const part = end < 0 ? piece : piece.subarray(0, end);
    length += part.length;
    if (length > MAX_CALL_BYTES) return err("no-call", "The call line is too long");
    pieces.push([...part]);
    if (end >= 0) return parseCall(Uint8Array.from(pieces.flat()));
  }
  return err("no-call", "Standard input ended before a call came");
}

function parseCall(bytes: Uint8Array): Result<Call, "no-call"> {
  const text = decodeUtf8(bytes);
  const value = text.ok ? parseJson(text.value) : text;
  if (!value.ok) return err("no-call", value.detail);
  const call = value.value;
  if (!isRecord(call) || !isRecord(call["args"]) || !isRecord(call["secrets"])) {
    return err("no-call", "The call line has another form");
  }
  return ok({ args: call["args"], secrets: call["secrets"] });
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The dead-man switch: nothing but the end of input is expected after the call line. */
async function watchInput(host: Host): Promise<void> {
  for (let piece = await host.read(); piece !== null; piece = await host.read());
  host.exit(EXIT_ABANDONED);
}

function outputOf(host: Host) {
  const gathered = new Uint8Array(MAX_PIECE_BYTES);
  let filled = 0;
  let total = 0;
  async function flush(): Promise<void> {
    if (filled === 0) return;
    const piece = gathered.slice(0, filled);
    filled = 0;
    total += piece.length;
    await host.write(outputFrame(piece));
  }
  async function write(piece: Uint8Array | string): Promise<void> {
    const bytes = typeof piece === "string" ? encodeUtf8(piece) : piece;
    for (let from = 0; from < bytes.length;) {
      const part = bytes.subarray(from, from + gathered.length - filled);
      gathered.set(part, filled);
      filled += part.length;
      from += part.length;
      if (filled === gathered.length) await flush();
    }
  }
  return { write, flush, sent: () => total };
}

function resultJson(outcome: ToolOutcome, bytes: number): string {
  const result = outcome.ok
    ? { ok: true, bytes, note: outcome.value.slice(0, 1_000) }
    : { ok: false, code: outcome.code, message: outcome.detail.slice(0, 1_000) };
  return JSON.stringify(result);
}

/** A text argument. Throws when it is absent: brokerd checks arguments against the manifest. */
export function textArgument(call: ToolCall, name: string): string {
  const value = call.args[name];
  if (typeof value !== "string") throw new TypeError(`Argument ${name} is not a text`);
  return value;
}

/** A text argument that may be left out. */
export function optionalText(call: ToolCall, name: string): string | null {
  return call.args[name] === undefined ? null : textArgument(call, name);
}

/** A whole number, or `otherwise` when left out. */
export function countArgument(call: ToolCall, name: string, otherwise: number): number {
  const value = call.args[name] ?? otherwise;
  if (typeof value !== "number" || !Number.isSafeInteger(value)) {
    throw new TypeError(`Argument ${name} is not a whole number`);
  }
  return value;
}

/** A yes or no, or no when left out. */
export function flagArgument(call: ToolCall, name: string): boolean {
  const value = call.args[name] ?? false;
  if (typeof value !== "boolean") throw new TypeError(`Argument ${name} is not yes or no`);
  return value;
}
