// Opens a hash-chained log that has one writer and a head file.
//
// 1. Order of an append: line, sync, head by replace, then the caller is told `(n, hash)`. A caller
//    that got a head will find that record after any crash.
// 2. At open every difference between log and head is named. What a crash of the writer explains is
//    mended and recorded in the log itself; anything else is refused, and nothing is ever rewritten.
// 3. After `disk-failed` the chain refuses everything: its process must end.
// 4. `time` and all else a record says come from the caller; the chain sets v, n and prev.
import { type Disk, DiskError } from "../disk/disk.ts";
import { attempt } from "../disk/durable.ts";
import { type Err, ok, type Result } from "../results/result.ts";
import { FILE_START } from "./chain_reader.ts";
import {
  type Damage,
  damage,
  damageErr,
  type Fields,
  hashLineBytes,
  MAX_LINE_BYTES,
  NO_PREVIOUS,
} from "./chain_record.ts";
import { compareWithHead, type Scan, scanLog } from "./chain_verify.ts";
import {
  beginChain,
  bytesFrom,
  type Chain,
  type ChainFiles,
  continueChain,
  cutFile,
  type Genesis,
} from "./chain_writer.ts";
import { type HeadFile, nameOf, readHead, writeHead } from "./head_file.ts";
import { sha256Hex } from "../tool/digest.ts";

/**
 * What was found at open. `longer`: whole records beyond the head were accepted. `torn`: a last line
 * that was never acknowledged was cut (and records beyond the head may have been accepted as well).
 */
export type OpenFinding = {
  readonly found: "new" | "whole" | "longer" | "torn";
  readonly extraRecords: number;
  readonly cutBytes: number;
  /** SHA-256 of the bytes cut, empty when none were. */
  readonly cutSha256: string;
};

export type ChainOptions = ChainFiles & {
  readonly genesis: Genesis;
  /** The record that says what was mended; asked for only after `longer` or `torn`. */
  readonly repair: (finding: OpenFinding) => Fields;
  /**
   * `full` parses and hashes every record; `tail` looks at the head's own record and beyond, so its
   * cost does not grow with the log.
   */
  readonly check: "full" | "tail";
};

export type OpenedChain = { readonly chain: Chain; readonly finding: OpenFinding };
/** As a Result; a refusal for damage (`log-broken`) also carries the damage itself. */
export type OpenResult =
  | { readonly ok: true; readonly value: OpenedChain }
  | (Err & { readonly damage?: Damage });

/** Opens or begins a log. See `OpenFinding` for what is mended and DamageName for what is refused. */
export function openChain(o: ChainOptions): OpenResult {
  const head = o.headPath === null ? ok(null) : readHead(o.disk, o.headPath);
  if (!head.ok) return head;
  const size = fileSize(o.disk, o.path);
  if (!size.ok) return size;
  const misplaced = placeProblem(o, head.value, size.value);
  if (misplaced !== null) return damageErr(o.path, misplaced);
  if (head.value === null && (size.value ?? 0) === 0) {
    const chain = beginChain(o, { n: 0, prev: NO_PREVIOUS }, o.genesis);
    const finding = { found: "new", extraRecords: 0, cutBytes: 0, cutSha256: "" } as const;
    return chain.ok ? ok({ chain: chain.value, finding }) : chain;
  }
  const scan = scanFor(o, head.value);
  if (!scan.ok) return scan;
  const broken = refusalOf(o, head.value, scan.value);
  return broken === null ? mend(o, head.value, scan.value) : damageErr(o.path, broken);
}

/** The file's size, null when there is none. */
function fileSize(disk: Disk, path: string): Result<number | null> {
  return attempt(() => {
    try {
      const facts = disk.lstat(path);
      if (facts.kind !== "file") throw new DiskError("io", `Cannot open ${path} as it is no file`);
      return facts.size;
    } catch (thrown) {
      if (thrown instanceof DiskError && thrown.kind === "not_found") return null;
      throw thrown;
    }
  });
}

function placeProblem(o: ChainOptions, head: HeadFile | null, size: number | null): Damage | null {
  if (head === null) return null;
  if (head.file !== nameOf(o.path)) {
    return damage("other_file", -1, 0, `The head is in ${head.file}`);
  }
  return size === null ? damage("log_missing", head.n, 0, "There is a head but no log") : null;
}

function scanFor(o: ChainOptions, head: HeadFile | null): Result<Scan> {
  const watch = head?.n ?? null;
  const full = () => scanLog(o.disk, o.path, o.domain, { from: FILE_START, sealedBelow: 0, watch });
  if (head === null || o.check === "full") return full();
  const quick = scanTail(o, head);
  // Whatever is wrong gets its name from a scan that parses everything.
  if (!quick.ok || compareWithHead(quick.value, head) !== null) return full();
  return quick;
}

function scanTail(o: ChainOptions, head: HeadFile): Result<Scan> {
  const end = Math.min(head.end, head.start + MAX_LINE_BYTES + 1);
  const line = bytesFrom(o.disk, o.path, head.start, end);
  if (!line.ok) return line;
  const isThere = line.value.length === head.end - head.start;
  const watched = isThere ? hashLineBytes(o.domain, line.value) : null;
  const from = { offset: head.end, next: { n: head.n + 1, prev: head.hash } };
  const scan = scanLog(o.disk, o.path, o.domain, { from, sealedBelow: 0, watch: null });
  if (!scan.ok) return scan;
  return ok({ ...scan.value, last: scan.value.last ?? head, watched });
}

function refusalOf(o: ChainOptions, head: HeadFile | null, scan: Scan): Damage | null {
  const { last, torn } = scan;
  if (head !== null) {
    const found = compareWithHead(scan, head);
    if (found !== null) return found;
    // The head's own record is there, so a torn line can only lie beyond it.
    return placeIsTrue(head, scan)
      ? null
      : damage("head_invalid", head.n, head.start, "Wrong place");
  }
  if (scan.damage !== null) return scan.damage;
  if (torn?.why === "nul") return damage("nul", -1, torn.offset, "The last line holds NUL bytes");
  if (o.headPath === null || last === null || last.n === 0) return null;
  return damage("head_missing", last.n, 0, `The log has ${last.n + 1} records and no head`);
}

function placeIsTrue(head: HeadFile, scan: Scan): boolean {
  const { last } = scan;
  if (last === null) return false;
  return last.n === head.n
    ? last.end === head.end && last.start === head.start
    : last.end > head.end;
}

function mend(o: ChainOptions, head: HeadFile | null, scan: Scan): OpenResult {
  const extraRecords = o.headPath === null ? 0 : (scan.last?.n ?? -1) - (head?.n ?? -1);
  let finding: OpenFinding = {
    found: extraRecords > 0 ? "longer" : "whole",
    extraRecords,
    cutBytes: 0,
    cutSha256: "",
  };
  if (scan.torn !== null) {
    const cut = cutTorn(o, scan.torn.offset);
    if (!cut.ok) return cut;
    finding = { ...finding, found: "torn", ...cut.value };
  }
  if (head === null && o.headPath !== null && scan.last !== null) {
    // A first record without a head gets it before a second one may follow.
    const headed = writeHead(o.disk, o.headPath, nameOf(o.path), scan.last);
    if (!headed.ok) return headed;
  }
  const chain = scan.last === null
    ? beginChain(o, { n: 0, prev: NO_PREVIOUS }, o.genesis)
    : continueChain(o, scan.last);
  if (!chain.ok) return chain;
  if (finding.found !== "whole") {
    const said = chain.value.append(o.repair(finding));
    if (!said.ok) {
      chain.value.close();
      return said;
    }
  }
  return ok({ chain: chain.value, finding });
}

function cutTorn(
  o: ChainOptions,
  offset: number,
): Result<Pick<OpenFinding, "cutBytes" | "cutSha256">> {
  const bytes = bytesFrom(o.disk, o.path, offset, Infinity);
  if (!bytes.ok) return bytes;
  const cut = cutFile(o.disk, o.path, offset);
  if (!cut.ok) return cut;
  return ok({ cutBytes: bytes.value.length, cutSha256: sha256Hex(bytes.value) });
}
