// Guards: whatever call of the disk fails, and wherever the machine dies, no acknowledged record is
// lost, what is left opens again, and a chain that goes on after a failure has no gap.
import { ok as assert, strictEqual } from "node:assert";
import {
  type Fault,
  type FaultyDisk,
  faultyDisk,
  SimulatedCrash,
} from "../../tests/doubles/faulty_disk.ts";
import {
  bytesOf,
  diskOf,
  diskWithLog,
  HEAD,
  LOG,
  must,
  optionsFor,
} from "../../tests/doubles/chain_fixture.ts";
import { mustEnd } from "../disk/durable.ts";
import type { Result } from "../results/result.ts";
import type { Head } from "./chain_record.ts";
import { openChain } from "./chained_log.ts";
import { readChain } from "./chain_reader.ts";
import { verifyChain } from "./chain_verify.ts";
import type { Chain } from "./chain_writer.ts";
import { readHead } from "./head_file.ts";

const NEXT = "/d/b.jsonl";
// BOXMAKER_TEST_FULL=1 cuts unsynced writes at every byte and takes every second crash (some minutes).
const CUTS = Deno.env.get("BOXMAKER_TEST_FULL") === "1" ? "every_byte" : "edges";
const KINDS = ["io", "no_space", "short", "crash"] as const;

type Scenario = {
  readonly name: string;
  readonly world: () => FaultyDisk;
  readonly act: (run: Run) => void;
};

/** One run: acknowledges as a role would, and stops as one must. */
type Run = {
  readonly disk: FaultyDisk;
  readonly acked: Head[];
  /** Counts a success; throws Ended when the process would have to end. */
  take<T>(result: Result<T>): T | null;
};
class Ended extends Error {}

function startRun(disk: FaultyDisk): Run {
  const take = <T>(result: Result<T>): T | null => {
    if (result.ok) return result.value;
    if (mustEnd(result)) throw new Ended(result.detail);
    return null;
  };
  return { disk, acked: [], take };
}

function appendSome(run: Run, chain: Chain): void {
  for (let i = 0; i < 2; i++) {
    const head = run.take(chain.append({ kind: "x", i }));
    if (head !== null) run.acked.push(head);
  }
}

function openAndAppend(run: Run): void {
  const opened = run.take(openChain(optionsFor(run.disk)));
  if (opened === null) return;
  run.acked.push(opened.chain.head());
  appendSome(run, opened.chain);
  opened.chain.close();
}

function openAndRotate(run: Run): void {
  const opened = run.take(openChain(optionsFor(run.disk)));
  if (opened === null) return;
  const next = run.take(opened.chain.rotate(NEXT, optionsFor(run.disk).genesis));
  if (next !== null) run.acked.push(next.head());
  appendSome(run, next ?? opened.chain);
  (next ?? opened.chain).close();
}

const worldOf = (cutLog: number, headOf: number) => () => {
  const log = bytesOf(diskWithLog(3), LOG);
  const head = headOf === 0 ? null : bytesOf(diskWithLog(headOf), HEAD);
  return diskOf(log.subarray(0, log.length - cutLog), head);
};

const SCENARIOS: readonly Scenario[] = [
  { name: "first start", world: () => faultyDisk(["/d"]), act: openAndAppend },
  { name: "whole", world: worldOf(0, 3), act: openAndAppend },
  { name: "longer", world: worldOf(0, 2), act: openAndAppend },
  { name: "torn", world: worldOf(5, 2), act: openAndAppend },
  {
    name: "genesis torn",
    world: () => diskOf(bytesOf(diskWithLog(1), LOG).subarray(0, 9), null),
    act: openAndAppend,
  },
  {
    name: "genesis without a head",
    world: () => diskOf(bytesOf(diskWithLog(1), LOG), null),
    act: openAndAppend,
  },
  { name: "rotation", world: worldOf(0, 3), act: openAndRotate },
];

/** Opens what is left as a restart does, and finds every acknowledged record in it. */
function recover(disk: FaultyDisk, acked: readonly Head[], where: string): void {
  const stored = must(readHead(disk, HEAD));
  const path = stored === null ? LOG : `/d/${stored.file}`;
  const opened = openChain(optionsFor(disk, { path }));
  if (!opened.ok) throw new Error(`${where}: refused: ${opened.detail}`);
  const { chain } = opened.value;
  const paths = path === LOG ? [LOG] : [LOG, NEXT];
  let last = { n: -1, hash: "" };
  for (const one of paths) {
    const report = must(verifyChain(disk, one, "audit", { head: null, depth: "parsed" }));
    strictEqual(report.verdict, null, `${where}: ${report.verdict?.detail}`);
    if (last.n >= 0) strictEqual(report.previous?.hash, last.hash, `${where}: ${one}`);
    last = report.last ?? last;
  }
  strictEqual(`${last.n}:${last.hash}`, `${chain.head().n}:${chain.head().hash}`, where);
  const there = new Map<number, string>();
  for (const one of paths) {
    for (const record of readChain(disk, one, "audit")) {
      there.set(must(record).n, must(record).hash);
    }
  }
  for (const { n, hash } of acked) strictEqual(there.get(n), hash, `${where}: record ${n} is lost`);
  chain.close();
}

type Tally = { runs: number; disks: number };

/** One run under one fault; returns whether the fault was met. */
function runUnder(scenario: Scenario, fault: Fault, tally: Tally): boolean {
  const disk = scenario.world();
  const run = startRun(disk);
  const where = `${scenario.name} ${JSON.stringify(fault)}`;
  const before = disk.calls();
  disk.setFault(fault);
  try {
    scenario.act(run);
  } catch (thrown) {
    if (!(thrown instanceof SimulatedCrash) && !(thrown instanceof Ended)) throw thrown;
  }
  const met = disk.calls() - before >= fault.failAt;
  tally.runs++;
  if (disk.hasCrashed() || disk.pendingChanges() > 0) {
    for (const left of disk.afterCrash(CUTS)) {
      recover(left, run.acked, where);
      tally.disks++;
    }
  }
  if (!disk.hasCrashed()) recover(disk.afterKill(), run.acked, `${where}, killed`);
  return met;
}

Deno.test("Chain no acknowledged record is lost when any one call fails, once and for good", () => {
  const tally = { runs: 0, disks: 0 };
  for (const scenario of SCENARIOS) {
    for (const kind of KINDS) {
      for (const lasting of kind === "crash" ? ["once"] as const : ["once", "for_good"] as const) {
        let failAt = 1;
        while (runUnder(scenario, { failAt, kind, lasting, seed: failAt }, tally)) failAt++;
        assert(failAt > 10, `${scenario.name} makes no calls`);
      }
    }
  }
  console.log(
    `${tally.runs} runs under faults, ${tally.disks} disks after a crash, none lost a record`,
  );
});

Deno.test("Chain no acknowledged record is lost when a crash meets the mending of a crash", () => {
  const tally = { runs: 0, disks: 0 };
  for (const scenario of SCENARIOS) {
    // A log that begins has few such disks; of the others the short form takes one in six.
    const step = CUTS === "every_byte" || scenario.name.includes("genesis") ? 1 : 6;
    for (const left of disksAfterCrashes(scenario).filter((_, i) => i % step === 0)) {
      // Each call of the start that mends what was left.
      const again: Scenario = { ...scenario, world: () => left.afterKill(), act: openWherever };
      let failAt = 1;
      while (runUnder(again, { failAt, kind: "crash", lasting: "once", seed: failAt }, tally)) {
        failAt++;
      }
    }
  }
  console.log(`${tally.runs} second crashes, ${tally.disks} disks after them, none refused`);
});

/** Every different disk that one crash of a scenario can leave. */
function disksAfterCrashes(scenario: Scenario): FaultyDisk[] {
  const found = new Map<string, FaultyDisk>();
  for (let failAt = 1;; failAt++) {
    const disk = scenario.world();
    disk.setFault({ failAt, kind: "crash", lasting: "once", seed: failAt });
    try {
      scenario.act(startRun(disk));
      return [...found.values()];
    } catch (thrown) {
      if (!(thrown instanceof SimulatedCrash)) throw thrown;
    }
    for (const left of disk.afterCrash("edges")) {
      const at = (path: string) => {
        try {
          return bytesOf(left, path).toHex();
        } catch {
          return "absent";
        }
      };
      found.set([LOG, NEXT, HEAD].map(at).join(" "), left);
    }
  }
}

function openWherever(run: Run): void {
  const stored = must(readHead(run.disk, HEAD));
  const path = stored === null ? LOG : `/d/${stored.file}`;
  const opened = run.take(openChain(optionsFor(run.disk, { path })));
  if (opened === null) return;
  run.acked.push(opened.chain.head());
  appendSome(run, opened.chain);
  opened.chain.close();
}

Deno.test("Chain after a full disk it goes on without a gap once there is room", () => {
  const disk = faultyDisk(["/d"]);
  const { chain } = must(openChain(optionsFor(disk)));
  let refused = 0;
  for (let failAt = 1; failAt < 25; failAt++) {
    disk.setFault({ failAt, kind: "no_space", lasting: "once", seed: failAt });
    const appended = chain.append({ kind: "x", failAt });
    disk.setFault(null);
    if (appended.ok) continue;
    if (mustEnd(appended)) break;
    strictEqual(appended.code, "disk-full");
    refused++;
    must(chain.append({ kind: "after", failAt }));
  }
  assert(refused > 0, "no append was ever refused");
  recover(disk.afterKill(), [chain.head()], "after a full disk");
});

Deno.test("Chain after a failed sync it refuses everything", () => {
  const disk = faultyDisk(["/d"]);
  const { chain } = must(openChain(optionsFor(disk)));
  disk.setFault({ failAt: 2, kind: "io", lasting: "once", seed: 0 });
  const results = [chain.append({ kind: "x" }), chain.append({ kind: "y" })];
  for (const result of results) assert(!result.ok && mustEnd(result));
  const rotated = chain.rotate(NEXT, optionsFor(disk).genesis);
  assert(!rotated.ok && mustEnd(rotated));
});
