// What a tool writes on its standard output: exact output bytes in pieces, then one result.
//
//   O <length>\n<bytes>      a piece of the output, any bytes
//   R <length>\n<JSON>       the result; nothing may follow
//
// 1. The end is certain: without an R frame the call has no result.
// 2. The reader never holds more than one header line and one bounded result in memory.
// 3. A byte out of place is a problem that ends reading; nothing is repaired or skipped.
import { encodeUtf8 } from "../wire/codec.ts";

/** Longest piece a tool sends at once. */
export const MAX_PIECE_BYTES = 65_536;
/** Longest result frame. */
export const MAX_RESULT_BYTES = 16_384;

const MAX_HEADER_BYTES = 16;
const NEWLINE = 10;

/** One output piece as it goes onto the pipe. */
export function outputFrame(piece: Uint8Array): Uint8Array<ArrayBuffer> {
  return framed("O", piece);
}

/** The result as it goes onto the pipe. */
export function resultFrame(json: string): Uint8Array<ArrayBuffer> {
  return framed("R", encodeUtf8(json));
}

function framed(kind: "O" | "R", body: Uint8Array): Uint8Array<ArrayBuffer> {
  const head = encodeUtf8(`${kind} ${body.length}\n`);
  const frame = new Uint8Array(head.length + body.length);
  frame.set(head);
  frame.set(body, head.length);
  return frame;
}

export interface FrameReader {
  /** Takes the next bytes of the pipe; returns what is wrong with them, or null. */
  push(chunk: Uint8Array): string | null;
  /** The result's bytes once its frame is whole. */
  result(): Uint8Array | null;
}

type State =
  | { readonly at: "header"; line: number[] }
  | { readonly at: "output"; left: number }
  | { readonly at: "result"; bytes: Uint8Array; filled: number };

/** A reader that hands each run of output bytes to `onOutput` as soon as it has come. */
export function frameReader(onOutput: (bytes: Uint8Array) => void): FrameReader {
  let state: State = { at: "header", line: [] };
  let done: Uint8Array | null = null;
  let problem: string | null = null;

  function step(chunk: Uint8Array, from: number): number {
    if (state.at === "header") return header(chunk, from);
    if (state.at === "output") {
      const piece = chunk.subarray(from, from + state.left);
      if (piece.length > 0) onOutput(piece);
      state.left -= piece.length;
      if (state.left === 0) state = { at: "header", line: [] };
      return from + piece.length;
    }
    const piece = chunk.subarray(from, from + state.bytes.length - state.filled);
    state.bytes.set(piece, state.filled);
    state.filled += piece.length;
    if (state.filled === state.bytes.length) done = state.bytes;
    return from + piece.length;
  }

  function header(chunk: Uint8Array, from: number): number {
    if (state.at !== "header") return from;
    const byte = chunk[from] ?? NEWLINE;
    if (byte !== NEWLINE) {
      state.line.push(byte);
      if (state.line.length > MAX_HEADER_BYTES) problem = "The tool wrote outside its frames";
      return from + 1;
    }
    const match = /^([OR]) ([1-9][0-9]{0,8})$/.exec(String.fromCharCode(...state.line));
    const length = Number(match?.[2]);
    if (match === null) problem = "The tool wrote outside its frames";
    else if (match[1] === "O") state = { at: "output", left: length };
    else if (length > MAX_RESULT_BYTES) problem = "The tool's result is too long";
    else state = { at: "result", bytes: new Uint8Array(length), filled: 0 };
    return from + 1;
  }

  return {
    push(chunk) {
      let from = 0;
      while (from < chunk.length && problem === null) {
        if (done !== null) problem = "The tool wrote after its result";
        else from = step(chunk, from);
      }
      return problem;
    },
    result: () => done,
  };
}
