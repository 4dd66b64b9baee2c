import { deepStrictEqual, match, ok as assert, strictEqual, throws } from "node:assert";
import fc from "fast-check";
import { faultyDisk } from "../../tests/doubles/faulty_disk.ts";
import { isObject } from "./chain_record.ts";
import {
  AWKWARD,
  bytesOf,
  diskOf,
  diskWithLog,
  fill,
  HEAD,
  LOG,
  must,
  optionsFor,
  outcomeOf,
} from "../../tests/doubles/chain_fixture.ts";
import { openChain } from "./chained_log.ts";
import { readChain } from "./chain_reader.ts";
import { verifyChain } from "./chain_verify.ts";
import { freshHead, type HeadFile, readHead, writeHead } from "./head_file.ts";

const CHECKS = ["full", "tail"] as const;
const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
const bytes = (written: string) => new TextEncoder().encode(written);
const linesOf = (log: Uint8Array) => text(log).split("\n").slice(0, -1);

Deno.test("openChain() refuses every row of the table that a crash does not explain", () => {
  const disk = diskWithLog(6);
  const log = bytesOf(disk, LOG);
  const head = bytesOf(disk, HEAD);
  const stored = must(readHead(disk, HEAD));
  assert(stored !== null);
  const five = bytes(linesOf(log).slice(0, 5).map((line) => line + "\n").join(""));
  const other = bytesOf(diskWithLog(6, { domain: "session" }), LOG);
  const rows: readonly (readonly [string, Uint8Array | null, Uint8Array | null])[] = [
    ["shorter_than_head", five, head],
    ["shorter_than_head", log.subarray(0, -1), head],
    ["shorter_than_head", new Uint8Array(), head],
    ["head_missing", log, null],
    ["log_missing", null, head],
    ["head_invalid", log, bytes("{}")],
    ["head_invalid", log, bytes("")],
    ["head_invalid", log, bytes(text(head).replaceAll('"end":', '"end":1'))],
    ["head_invalid", log, head.subarray(0, -1)],
    ["other_file", log, freshHead({ ...stored, file: "other.jsonl" })],
    ["hash_differs", log, freshHead({ ...stored, hash: "0".repeat(64) })],
    ["chain_broken", other, head],
  ];
  for (const [expected, planted, plantedHead] of rows) {
    for (const check of CHECKS) {
      const opened = openChain(optionsFor(diskOf(planted, plantedHead), { check }));
      assert(!opened.ok, `${expected} ${check} was opened`);
      strictEqual(opened.code, "log-broken");
      strictEqual(opened.damage?.name, expected, check);
    }
  }
});

Deno.test("writeHead() spoiled at any byte leaves the head before it or the one it writes", () => {
  const head = (n: number): HeadFile => ({
    v: 1,
    file: "a.jsonl",
    n,
    hash: String(n % 10).repeat(64),
    start: n,
    end: n + 1,
  });
  const disk = diskOf(null, freshHead(head(4)));
  for (const n of [5, 6, 7]) {
    const before = bytesOf(disk, HEAD).slice();
    must(writeHead(disk, HEAD, "a.jsonl", head(n)));
    const after = bytesOf(disk, HEAD).slice();
    for (let cut = 0; cut <= after.length; cut++) {
      const torn = join(after.subarray(0, cut), before.subarray(cut));
      const read = must(readHead(diskOf(null, torn), HEAD));
      assert(read?.n === n || read?.n === n - 1, `cut at ${cut}: ${read?.n}`);
      deepStrictEqual(read, head(read.n));
    }
  }
});

Deno.test("openChain() accepts what a crash leaves, and says so in a record", () => {
  const disk = diskWithLog(6);
  const log = bytesOf(disk, LOG);
  const shorter = diskWithLog(4);
  const head = bytesOf(shorter, HEAD);
  const four = bytesOf(shorter, LOG);
  deepStrictEqual(log.subarray(0, four.length), four);
  const genesisOnly = bytesOf(diskWithLog(1), LOG);
  const holed = log.slice();
  holed.fill(0, four.length + 20, holed.length - 3);
  const fused = bytes(text(holed).replaceAll("\n", "") + "\n").subarray(four.length - 4);
  const rows: readonly (readonly [string, Uint8Array, Uint8Array | null, number])[] = [
    ["whole", log, bytesOf(disk, HEAD), 0],
    ["longer", log, head, 2],
    ["torn", log.subarray(0, -1), head, 1],
    ["torn", log.subarray(0, four.length + 1), head, 0],
    ["longer", genesisOnly, null, 1],
    ["torn", genesisOnly.subarray(0, 30), null, 0],
    ["torn", join(four, fused), head, 0],
    ["torn", join(four, new Uint8Array(4096)), head, 0],
    ["new", new Uint8Array(), null, 0],
  ];
  for (const [expected, planted, plantedHead, extra] of rows) {
    for (const check of CHECKS) {
      const world = diskOf(planted, plantedHead);
      const { chain, finding } = must(openChain(optionsFor(world, { check })));
      strictEqual(finding.found, expected, check);
      strictEqual(finding.extraRecords, extra);
      strictEqual(finding.cutBytes > 0, expected === "torn");
      strictEqual(finding.cutSha256.length, expected === "torn" ? 64 : 0);
      const last = JSON.parse(linesOf(bytesOf(world, LOG)).at(-1) ?? "");
      strictEqual(last.kind === "repair", expected === "torn" || expected === "longer");
      if (expected === "torn") strictEqual(last.cutSha256, finding.cutSha256);
      const report = must(
        verifyChain(world, LOG, "audit", { head: chain.head(), depth: "parsed" }),
      );
      strictEqual(report.verdict, null);
      chain.close();
      strictEqual(outcomeOf(openChain(optionsFor(world, { check }))), "whole");
    }
  }
});

function join(a: Uint8Array, b: Uint8Array): Uint8Array {
  return new Uint8Array([...a, ...b]);
}

Deno.test("openChain() without a head cuts a torn tail and still refuses a broken chain", () => {
  const log = bytesOf(diskWithLog(5, { headPath: null }), LOG);
  const options = { headPath: null };
  strictEqual(outcomeOf(openChain(optionsFor(diskOf(log, null), options))), "whole");
  strictEqual(outcomeOf(openChain(optionsFor(diskOf(log.subarray(0, -9), null), options))), "torn");
  const [first = "", second = "", ...rest] = linesOf(log);
  const swapped = bytes([second, first, ...rest].join("\n") + "\n");
  strictEqual(outcomeOf(openChain(optionsFor(diskOf(swapped, null), options))), "no_genesis");
  const nul = join(log, bytes("\0\n"));
  strictEqual(outcomeOf(openChain(optionsFor(diskOf(nul, null), options))), "nul");
});

Deno.test("openChain() names each kind of damage in the middle of a log", () => {
  const lines = linesOf(bytesOf(diskWithLog(6, { headPath: null }), LOG));
  const third = lines[3] ?? "";
  const rows: readonly (readonly [string, string])[] = [
    ["nul", third.slice(0, 90) + "\0" + third.slice(90)],
    ["lone_surrogate", third.slice(0, -1) + ',"x":"\\ud800"}'],
    ["not_canonical", third.replace('"time"', ' "time"')],
    ["not_canonical", third.slice(0, -1) + ',"kind":"decision"}'],
    ["not_json", third.slice(0, -1) + ',"x":1e400}'],
    ["not_canonical", third.slice(0, -1) + ',"x":-0}'],
    ["not_canonical", third.slice(0, -1) + ',"b":1,"1":1}'],
    ["not_canonical", third.slice(0, -1) + ',"x":"\\u0041"}'],
    ["fused", third + third],
    ["odd_separator", third + "\u2028" + "x"],
    ["not_json", third.slice(1)],
    ["not_json", third.slice(0, -1) + ',"x":' + "[".repeat(40) + "]".repeat(40) + "}"],
    ["not_json", "\ufeff" + third],
    ["not_a_record", "[1]"],
    ["not_a_record", '{"v":1,"n":3}'],
    ["not_a_record", third.replace('{"v":1,', "{").replace("}", ',"v":1}')],
    ["newer_version", third.replace('{"v":1', '{"v":2')],
    ["too_long_line", third.slice(0, -2) + "x".repeat(4_194_304) + '"}'],
    ["records_repeated", lines[2] ?? ""],
    ["records_missing", lines[4] ?? ""],
    ["chain_broken", third.replace(/"prev":"./, '"prev":"z')],
  ];
  for (const [expected, line] of rows) {
    const planted = bytes(lines.with(3, line).join("\n") + "\n");
    const opened = openChain(optionsFor(diskOf(planted, null), { headPath: null }));
    assert(!opened.ok, `${expected} was opened`);
    strictEqual(opened.damage?.name, expected, line.slice(0, 200));
    strictEqual(opened.damage?.atRecord, 3);
    match(opened.detail, /^\/d\/audit\.jsonl is damaged \(\w+\) at record 3, byte \d+: /);
  }
});

Deno.test("Chain.append() refuses what its own reader would not take and leaves nothing", () => {
  const disk = faultyDisk(["/d"]);
  const { chain } = must(openChain(optionsFor(disk)));
  const before = bytesOf(disk, LOG);
  let deep: unknown = 1;
  for (let i = 0; i < 40; i++) deep = [deep];
  const refused = [
    chain.append({ kind: "x", deep }),
    chain.append({ kind: "x", text: "y".repeat(4_194_304) }),
    chain.append({ kind: "x", n: 7 }),
    chain.append({ kind: "x", prev: "" }),
    chain.append({ kind: "x", v: 1 }),
    chain.appendAll([{ kind: "good" }, { kind: "x", deep }]),
  ];
  for (const result of refused) assert(!result.ok && result.code === "record-invalid");
  throws(() => chain.append({ kind: "x", big: 1n }), TypeError);
  deepStrictEqual(bytesOf(disk, LOG), before);
  must(chain.append({ kind: "x", text: "z".repeat(4_000_000) }));
  must(chain.append({ kind: "x", text: "cut in \ud83d", ["\udfff"]: 1 }));
  chain.close();
  strictEqual(outcomeOf(openChain(optionsFor(disk))), "whole");
});

Deno.test("readChain() gives back exactly what was appended, one line each, from any record", () => {
  const value = fc.jsonValue({ maxDepth: 3 });
  fc.assert(
    fc.property(fc.array(value, { maxLength: 8 }), (values) => {
      const disk = faultyDisk(["/d"]);
      const { chain } = must(openChain(optionsFor(disk)));
      const all = [...values, AWKWARD];
      must(chain.appendAll(all.map((one) => ({ kind: "x", one }))));
      chain.close();
      const records = [...readChain(disk, LOG, "audit")].map(must);
      strictEqual(linesOf(bytesOf(disk, LOG)).length, all.length + 1);
      deepStrictEqual(
        records.slice(1).map(({ value }) => isObject(value) ? value.one : null),
        JSON.parse(JSON.stringify(all)),
      );
      for (const { n, hash, end } of records) {
        const from = { offset: end, next: { n: n + 1, prev: hash } };
        const rest = [...readChain(disk, LOG, "audit", from)].map(must);
        deepStrictEqual(rest, records.slice(n + 1));
      }
    }),
    { numRuns: 50 },
  );
});

Deno.test("readChain() stops before a line its writer is in the middle of, and names damage", () => {
  const log = bytesOf(diskWithLog(4), LOG);
  const cut = [...readChain(diskOf(log.subarray(0, -5), null), LOG, "audit")];
  strictEqual(cut.length, 3);
  assert(cut.every((result) => result.ok));
  const wrong = [...readChain(diskOf(log, null), LOG, "session")];
  const last = wrong.at(-1);
  assert(last !== undefined && !last.ok && last.code === "log-broken");
  const [absent] = [...readChain(faultyDisk(["/d"]), LOG, "audit")];
  assert(absent !== undefined && !absent.ok && absent.code === "file-missing");
});

Deno.test("Chain.rotate() goes on counting in the next file", () => {
  const disk = diskWithLog(4);
  const genesis = optionsFor(disk).genesis;
  const first = must(openChain(optionsFor(disk))).chain;
  const second = must(first.rotate("/d/b.jsonl", { ...genesis, nonce: "n1" }));
  fill(second, 2);
  const third = must(second.rotate("/d/c.jsonl", genesis));
  const head = must(third.append({ kind: "x" }));
  third.close();
  strictEqual(head.n, 8);
  strictEqual(must(readHead(disk, HEAD))?.file, "c.jsonl");
  strictEqual(outcomeOf(openChain(optionsFor(disk))), "other_file");
  for (const check of CHECKS) {
    strictEqual(outcomeOf(openChain(optionsFor(disk, { path: "/d/c.jsonl", check }))), "whole");
  }
  const early = bytesOf(disk, "/d/b.jsonl");
  const lone = openChain(optionsFor(diskOf(early, null)));
  assert(!lone.ok && lone.damage?.name === "head_missing");
});

Deno.test("Chain.rotate() takes up its own interrupted start and refuses any other file", () => {
  const at = (planted: string | null) => {
    const disk = diskWithLog(3);
    const { chain } = must(openChain(optionsFor(disk)));
    const genesis = optionsFor(disk).genesis;
    const previous = { file: "audit.jsonl", ...chain.head() };
    const { n, hash } = chain.head();
    const line = JSON.stringify({ v: 1, n: n + 1, prev: hash, ...genesis, previous }) + "\n";
    if (planted !== null) disk.plant("/d/b.jsonl", bytes(planted === "" ? line : planted));
    if (planted === "half") disk.plant("/d/b.jsonl", bytes(line.slice(0, 40)));
    if (planted === "more") disk.plant("/d/b.jsonl", bytes(line + "{}\n"));
    const rotated = chain.rotate("/d/b.jsonl", genesis);
    chain.close();
    if (!rotated.ok) return rotated.code;
    fill(rotated.value, 1);
    rotated.value.close();
    return outcomeOf(openChain(optionsFor(disk, { path: "/d/b.jsonl" })));
  };
  strictEqual(at(null), "whole");
  strictEqual(at(""), "whole");
  strictEqual(at("half"), "whole");
  strictEqual(at("more"), "log-broken");
  strictEqual(at(text(bytesOf(diskWithLog(1), LOG))), "log-broken");
});

Deno.test("openChain() at the tail touches the disk as often for a long log as for a short one", () => {
  const callsFor = (records: number): number => {
    const disk = faultyDisk(["/d"]);
    const { chain } = must(openChain(optionsFor(disk)));
    must(chain.appendAll(Array.from({ length: records }, (_, i) => ({ kind: "x", i }))));
    must(chain.append({ kind: "last" }));
    chain.close();
    const before = disk.calls();
    strictEqual(outcomeOf(openChain(optionsFor(disk, { check: "tail" }))), "whole");
    return disk.calls() - before;
  };
  strictEqual(callsFor(20_000), callsFor(2));
});
