// Goes on from a damaged audit log when the owner says so.
//
// 1. Nothing is rewritten or removed: a damaged file keeps its bytes under another name.
// 2. The chain goes on from the last acknowledged head, and its next record says what was found, what
//    counts as lost, and the digest of what was put aside.
// 3. A crash in between leaves a log that is refused as before, and the repair can be asked for again.
import { createHash } from "node:crypto";
import { readChain } from "../../shared/chain/chain_reader.ts";
import { type Head, NO_PREVIOUS } from "../../shared/chain/chain_record.ts";
import { beginChain, type Chain, type Genesis } from "../../shared/chain/chain_writer.ts";
import { readHead } from "../../shared/chain/head_file.ts";
import type { Disk } from "../../shared/disk/disk.ts";
import { attempt, moveFile, readText } from "../../shared/disk/durable.ts";
import { ok, type Result } from "../../shared/results/result.ts";
import { parseCanonicalText } from "../../shared/wire/codec.ts";
import { AUDIT_DOMAIN, type AuditRecord, auditRecordOf, type Declared } from "./audit_records.ts";
import type { Broken } from "./audit_verify.ts";

const KEPT = /^[0-9]{4}-[0-9]{2}\.jsonl\.broken-[0-9]+$/;

/** Size and SHA-256 of a file. */
export function digestOf(disk: Disk, path: string): Result<{ bytes: number; sha256: string }> {
  return attempt(() => {
    const file = disk.open(path, "read");
    try {
      const hash = createHash("sha256");
      const piece = new Uint8Array(1_048_576);
      let bytes = 0;
      for (let got = file.read(piece); got > 0; got = file.read(piece)) {
        hash.update(piece.subarray(0, got));
        bytes += got;
      }
      return { bytes, sha256: hash.digest("hex") };
    } finally {
      file.close();
    }
  });
}

/** Puts a damaged file aside; what the log must say about it. */
export function putAside(
  disk: Disk,
  folder: string,
  broken: Broken,
  finding: string,
): Result<Declared> {
  const { file, from, to } = broken;
  const path = `${folder}/${file}`;
  const said = { file, finding: finding.slice(0, 1_000), from, to };
  const digest = digestOf(disk, path);
  if (!digest.ok && digest.code !== "file-missing") return digest;
  if (!digest.ok) return ok({ ...said, kept_as: null, bytes: 0, sha256: "" });
  const kept_as = freeName(disk, folder, file);
  const moved = moveFile(disk, path, `${folder}/${kept_as}`);
  return moved.ok ? ok({ ...said, ...digest.value, kept_as }) : moved;
}

function freeName(disk: Disk, folder: string, file: string): string {
  for (let i = 1;; i++) {
    const name = `${file}.broken-${i}`;
    if (!attempt(() => disk.lstat(`${folder}/${name}`)).ok) return name;
  }
}

/** Goes on in a new file after the newest one is damaged. `file`: the new one's name. */
export function beginAfter(
  disk: Disk,
  folder: string,
  file: string,
  genesis: Genesis,
  broken: Broken,
  finding: string,
): Result<Chain> {
  const headPath = `${folder}/head.json`;
  const stored = readHead(disk, headPath);
  const anchor: Head | null = stored.ok && stored.value !== null
    ? { n: stored.value.n, hash: stored.value.hash }
    : lastWhole(disk, `${folder}/${broken.file}`);
  const lost = { ...broken, to: anchor?.n ?? -1 };
  const repaired = putAside(disk, folder, lost, finding);
  if (!repaired.ok) return repaired;
  // A head that cannot be read, and what an interrupted rotation has begun, make room as well.
  const inTheWay = [...(stored.ok ? [] : ["head.json"]), ...(file === broken.file ? [] : [file])];
  for (const name of inTheWay) {
    const moved = moveFile(disk, `${folder}/${name}`, `${folder}/${freeName(disk, folder, name)}`);
    if (!moved.ok && moved.code !== "file-missing") return moved;
  }
  const before = repaired.value.kept_as ?? broken.file;
  const previous = anchor === null ? {} : { previous: { file: before, ...anchor } };
  const next = { n: (anchor?.n ?? -1) + 1, prev: anchor?.hash ?? NO_PREVIOUS };
  const at = { disk, path: `${folder}/${file}`, headPath, domain: AUDIT_DOMAIN };
  return beginChain(at, next, { ...genesis, ...previous, repaired: repaired.value });
}

/** The last record of a file before any damage. */
export function lastWhole(disk: Disk, path: string): Head | null {
  let last: Head | null = null;
  for (const item of readChain(disk, path, AUDIT_DOMAIN)) {
    if (item.ok) last = { n: item.value.n, hash: item.value.hash };
  }
  return last;
}

/**
 * Every record that can be read at all in files that were put aside, `of` one file or all: their labels
 * and starts still count, as they can only restrict.
 */
export function* keptRecords(disk: Disk, folder: string, of: string): Generator<AuditRecord> {
  const names = attempt(() => disk.list(folder).map((entry) => entry.name));
  for (const name of names.ok ? names.value : []) {
    if (!KEPT.test(name) || !name.startsWith(of)) continue;
    const text = readText(disk, `${folder}/${name}`, 1_073_741_824);
    for (const line of text.ok ? text.value.split("\n") : []) {
      const value = parseCanonicalText(line);
      const record = value.ok ? auditRecordOf(value.value) : null;
      if (record !== null) yield record;
    }
  }
}
