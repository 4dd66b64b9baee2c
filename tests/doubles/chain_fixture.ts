// Logs for the tests of shared/chain: a chain in memory with records of every awkward kind.
import type { Result } from "../../shared/results/result.ts";
import { type FaultyDisk, faultyDisk } from "./faulty_disk.ts";
import { type ChainOptions, openChain, type OpenResult } from "../../shared/chain/chained_log.ts";
import type { Chain } from "../../shared/chain/chain_writer.ts";

export const LOG = "/d/audit.jsonl";
export const HEAD = "/d/head.json";

/** Unwraps a success. */
export function must<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(`${result.code}: ${result.detail}`);
  return result.value;
}

/** Options of a chain in `disk` with a head file. */
export function optionsFor(disk: FaultyDisk, change: Partial<ChainOptions> = {}): ChainOptions {
  return {
    disk,
    path: LOG,
    headPath: HEAD,
    domain: "audit",
    genesis: { kind: "open", log: "L", role: "brokerd", protocol: 1, nonce: "n0" },
    repair: (finding) => ({ kind: "repair", ...finding }),
    check: "full",
    ...change,
  };
}

export const AWKWARD = [
  "line\nfeed\r\n",
  "\u2028\u2029\u0085",
  "\u001b[2J\u0000",
  '"}\n{"v":1,"n":0,"prev":"',
  "\u{1f600} \ufeff \u202e",
  "\\u0041",
];

/** Appends `count` records to a chain. */
export function fill(chain: Chain, count: number): void {
  for (let i = 0; i < count; i++) {
    must(chain.append({ kind: "decision", time: `t${i}`, text: AWKWARD[i % AWKWARD.length] }));
  }
}

/** A disk with a log of `records` records (the first is the genesis) and its head. */
export function diskWithLog(records: number, change: Partial<ChainOptions> = {}): FaultyDisk {
  const disk = faultyDisk(["/d"]);
  const { chain } = must(openChain(optionsFor(disk, change)));
  fill(chain, records - 1);
  chain.close();
  return disk;
}

/** The bytes of a file. */
export function bytesOf(disk: FaultyDisk, path: string): Uint8Array {
  const file = disk.open(path, "read");
  const bytes = new Uint8Array(file.stat().size);
  file.read(bytes);
  file.close();
  return bytes;
}

/** A disk with exactly this log and head; null leaves the file out. */
export function diskOf(log: Uint8Array | null, head: Uint8Array | null): FaultyDisk {
  const disk = faultyDisk(["/d"]);
  if (log !== null) disk.plant(LOG, log);
  if (head !== null) disk.plant(HEAD, head);
  return disk;
}

/** The name of what an open found or refused. */
export function outcomeOf(opened: OpenResult): string {
  if (!opened.ok) return opened.damage?.name ?? opened.code;
  opened.value.chain.close();
  return opened.value.finding.found;
}
