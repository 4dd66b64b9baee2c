// Guards the output protocol of tools: exact bytes, a certain end, nothing repaired.
import { deepStrictEqual, strictEqual } from "node:assert";
import fc from "fast-check";
import { frameReader, MAX_RESULT_BYTES, outputFrame, resultFrame } from "./frames.ts";

function join(parts: readonly Uint8Array[]): Uint8Array {
  return Uint8Array.from(parts.flatMap((part) => [...part]));
}

function read(stream: Uint8Array, cuts: readonly number[] = []) {
  const output: number[] = [];
  const reader = frameReader((bytes) => output.push(...bytes));
  let problem: string | null = null;
  let from = 0;
  for (const cut of [...cuts.toSorted((a, b) => a - b), stream.length]) {
    problem = reader.push(stream.subarray(from, cut)) ?? problem;
    from = cut;
  }
  return { output, problem, result: reader.result() };
}

const text = (value: string) => new TextEncoder().encode(value);

Deno.test("frameReader() takes nothing that a program writes past the frames", () => {
  const evil = [
    "hello\n",
    "O -1\n",
    "O 01\nx",
    "O 1 \nx",
    "o 1\nx",
    "X 1\nx",
    "O 9999999999\n",
    "O 0\n",
    "R 0\n",
    `R ${MAX_RESULT_BYTES + 1}\n`,
    "O 1\nxy\n",
    "O 1\r\nx",
    "\u0000\n",
    "O 12345678901234567",
  ];
  for (const stream of evil) strictEqual(typeof read(text(stream)).problem, "string", stream);
});

Deno.test("frameReader() refuses a byte after the result", () => {
  const stream = join([resultFrame("{}"), text("\n")]);
  strictEqual(typeof read(stream).problem, "string");
});

Deno.test("frameReader() has no result when the stream ends early, at any byte", () => {
  const stream = join([outputFrame(text("abc")), resultFrame('{"ok":true}')]);
  for (let length = 0; length < stream.length; length++) {
    const { problem, result } = read(stream.subarray(0, length));
    deepStrictEqual([problem, result], [null, null]);
  }
});

Deno.test("frameReader() gives back every byte, however the pipe cuts the stream", () => {
  const pieces = fc.array(fc.uint8Array({ minLength: 1, maxLength: 300 }), { maxLength: 8 });
  fc.assert(fc.property(pieces, fc.array(fc.nat(3_000), { maxLength: 12 }), (all, cuts) => {
    const stream = join([...all.map(outputFrame), resultFrame('{"ok":true}')]);
    const inside = cuts.filter((cut) => cut <= stream.length);
    const { output, problem, result } = read(stream, inside);
    strictEqual(problem, null);
    deepStrictEqual(output, [...join(all)]);
    strictEqual(new TextDecoder().decode(result ?? new Uint8Array()), '{"ok":true}');
  }));
});

Deno.test("frameReader() never throws on any bytes", () => {
  fc.assert(fc.property(fc.uint8Array({ maxLength: 400 }), (bytes) => void read(bytes)));
});
