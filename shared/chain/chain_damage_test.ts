// Guards: no flipped bit, cut, swap, deletion, repetition, splice or rewrite of a log with a head is
// taken for the log that was written, and no bytes at all crash the reader. Every flip is held
// against the head; BOXMAKER_TEST_FULL=1 tries every way of opening for all of them (about a minute).
import { ok as assert, strictEqual } from "node:assert";
import fc from "fast-check";
import {
  bytesOf,
  diskOf,
  diskWithLog,
  HEAD,
  LOG,
  must,
  optionsFor,
  outcomeOf,
} from "../../tests/doubles/chain_fixture.ts";
import { hashLine } from "./chain_record.ts";
import { openChain } from "./chained_log.ts";
import { readChain } from "./chain_reader.ts";
import { verifyChain } from "./chain_verify.ts";
import { readHead } from "./head_file.ts";

const RECORDS = 40;
const WORLD = diskWithLog(RECORDS);
const WHOLE = bytesOf(WORLD, LOG);
const HEAD_BYTES = bytesOf(WORLD, HEAD);
const STORED = must(readHead(WORLD, HEAD));
const BARE_HEAD = { n: STORED?.n ?? -1, hash: STORED?.hash ?? "" };
const LINES = new TextDecoder().decode(WHOLE).split("\n").slice(0, -1);

/** Whether a verifier that knows the head takes these bytes for the log. */
function passes(log: Uint8Array, depth: "parsed" | "sealed"): boolean {
  const report = must(verifyChain(diskOf(log, null), LOG, "audit", { head: BARE_HEAD, depth }));
  return report.verdict === null;
}

function opens(log: Uint8Array): boolean {
  const outcome = outcomeOf(openChain(optionsFor(diskOf(log, HEAD_BYTES), { check: "full" })));
  return ["new", "whole", "longer", "torn"].includes(outcome);
}

function refusedEverywhere(log: Uint8Array, what: string): void {
  for (const depth of ["parsed", "sealed"] as const) {
    assert(!passes(log, depth), `${what} ${depth}`);
  }
  assert(!opens(log), what);
}

const logOf = (lines: readonly string[]) =>
  new TextEncoder().encode(lines.map((line) => line + "\n").join(""));

Deno.test("verifyChain() detects every single-bit flip of a 40-record log with a head", () => {
  assert(passes(WHOLE, "parsed") && passes(WHOLE, "sealed") && opens(WHOLE));
  const isFull = Deno.env.get("BOXMAKER_TEST_FULL") === "1";
  let flips = 0;
  let looked = 0;
  let unseen = 0;
  for (let at = 0; at < WHOLE.length; at++) {
    for (let bit = 0; bit < 8; bit++) {
      const flipped = WHOLE.slice();
      flipped[at] = (flipped[at] ?? 0) ^ (1 << bit);
      if (passes(flipped, "sealed")) throw new Error(`byte ${at} bit ${bit} was not seen`);
      flips++;
      if (!isFull && bit !== (at * 5 + 3) % 8) continue;
      if (isFull || at % 8 === 0) refusedEverywhere(flipped, `byte ${at} bit ${bit}`);
      looked++;
      const alone = verifyChain(diskOf(flipped, null), LOG, "audit", {
        head: null,
        depth: "parsed",
      });
      if (must(alone).verdict === null || must(alone).verdict?.name === "torn") unseen++;
    }
  }
  strictEqual(flips, WHOLE.length * 8);
  console.log(
    `${flips} flips, none passes with the head; of ${looked}, ${unseen} pass or look torn without it`,
  );
});

Deno.test("openChain() and readChain() meet every prefix without a crash, and only the whole passes", () => {
  let whole = 0;
  for (let length = 0; length <= WHOLE.length; length++) {
    const prefix = WHOLE.subarray(0, length);
    if (length < WHOLE.length) {
      assert(!passes(prefix, "sealed"), `prefix ${length}`);
      if (length % 16 === 0) refusedEverywhere(prefix, `prefix ${length}`);
    }
    const disk = diskOf(prefix, null);
    const alone = must(verifyChain(disk, LOG, "audit", { head: null, depth: "sealed" }));
    if (alone.verdict === null) whole++;
    for (const record of readChain(disk, LOG, "audit")) assert(record.ok);
    if (length % 8 !== 0) continue;
    const opened = openChain(optionsFor(disk, { headPath: null }));
    assert(["new", "whole", "torn"].includes(outcomeOf(opened)), `prefix ${length}`);
  }
  strictEqual(whole, RECORDS);
});

Deno.test("verifyChain() refuses every swap, deletion and repetition of a record", () => {
  for (let i = 0; i < RECORDS; i++) {
    refusedEverywhere(logOf(LINES.toSpliced(i, 1)), `deleted ${i}`);
    refusedEverywhere(logOf(LINES.toSpliced(i, 0, LINES[i] ?? "")), `repeated ${i}`);
    for (let j = i + 1; j < RECORDS; j += 3) {
      const swapped = LINES.with(i, LINES[j] ?? "").with(j, LINES[i] ?? "");
      assert(!passes(logOf(swapped), "parsed"), `swapped ${i} ${j}`);
    }
  }
});

/** The lines from `at` on, with the text of one changed and every hash after it made to fit. */
function rewritten(at: number): string[] {
  const lines = [...LINES];
  let prev = hashLine("audit", LINES[at - 1] ?? "");
  for (let i = at; i < lines.length; i++) {
    let line = (lines[i] ?? "").replace(/"prev":"[^"]*"/, `"prev":"${prev}"`);
    if (i === at) line = line.replace(/"time":"t/, '"time":"T');
    lines[i] = line;
    prev = hashLine("audit", line);
  }
  return lines;
}

Deno.test("verifyChain() refuses a rewrite of the same length with every hash recomputed", () => {
  for (let at = 1; at < RECORDS; at++) {
    const log = logOf(rewritten(at));
    strictEqual(log.length, WHOLE.length);
    refusedEverywhere(log, `rewritten ${at}`);
    const alone = verifyChain(diskOf(log, null), LOG, "audit", { head: null, depth: "parsed" });
    strictEqual(must(alone).verdict, null, "the rewrite itself is whole");
  }
});

Deno.test("verifyChain() refuses any splice of two logs, of one domain or of two", () => {
  const genesis = { kind: "open", log: "M", role: "brokerd", protocol: 1, nonce: "n1" };
  for (const change of [{ genesis }, { genesis, domain: "session" }]) {
    const other = new TextDecoder().decode(bytesOf(diskWithLog(RECORDS, change), LOG)).split("\n");
    for (let at = 0; at < RECORDS; at++) {
      const spliced = [...LINES.slice(0, at), ...other.slice(at, RECORDS)];
      refusedEverywhere(logOf(spliced), `spliced at ${at}`);
    }
  }
});

Deno.test("openChain() and readChain() end with a value or a name, whatever the bytes", () => {
  const piece = fc.oneof(
    fc.uint8Array({ maxLength: 40 }),
    fc.constantFrom(...LINES.slice(0, 4).map((line) => new TextEncoder().encode(line + "\n"))),
    fc.constantFrom("\n", "\0", "\r\n", "{}\n", "\u2028", '{"v":1,"n":0,"prev":"').map((text) =>
      new TextEncoder().encode(text)
    ),
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 8 }), fc.boolean(), (pieces, hasHead) => {
      const log = new Uint8Array(pieces.flatMap((one) => [...one]));
      const disk = diskOf(log, hasHead ? HEAD_BYTES : null);
      for (const record of readChain(disk, LOG, "audit")) if (!record.ok) break;
      const opened = openChain(optionsFor(disk));
      if (opened.ok) opened.value.chain.close();
      else strictEqual(opened.code, "log-broken");
    }),
    { numRuns: 500 },
  );
});
