// The writing side of a chained log: one record at a time, durable before it is acknowledged.
// It is made by chained_log.ts, which has checked what is on the disk, and only adds to it.
import type { Disk } from "../disk/disk.ts";
import { type Appender, attempt, mustEnd, openAppender, readBytes } from "../disk/durable.ts";
import { type Err, ok, type Result } from "../results/result.ts";
import { joinBytes } from "../wire/chunks.ts";
import { encodeUtf8 } from "../wire/codec.ts";
import { FILE_START } from "./chain_reader.ts";
import {
  damage,
  damageErr,
  type Expected,
  type Fields,
  hashLine,
  type Head,
  renderLine,
} from "./chain_record.ts";
import { scanLog } from "./chain_verify.ts";
import { nameOf, type Place, writeHead } from "./head_file.ts";

/** What the first record of a file must say beside its kind. */
export type Genesis = Fields & {
  readonly log: string;
  readonly role: string;
  readonly protocol: number;
  readonly nonce: string;
};

export interface Chain {
  /** Appends durably; the answer is what the caller may acknowledge. A failure left nothing. */
  append(fields: Fields): Result<Head>;
  /**
   * Appends several for the price of one; the answer is the last one's head. A failure left none of
   * them, but a crash before the answer may leave only the first few.
   */
  appendAll(records: readonly Fields[]): Result<Head>;
  head(): Head;
  /** Name of the file being written. */
  file(): string;
  /** Goes on in a new file of the same series; this chain is closed on success. */
  rotate(path: string, genesis: Genesis): Result<Chain>;
  close(): void;
}

/** Where a chain is written. */
export type ChainFiles = {
  readonly disk: Disk;
  readonly path: string;
  readonly headPath: string | null;
  readonly domain: string;
};

/** Writes the first record of an empty or absent file. */
export function beginChain(at: ChainFiles, next: Expected, genesis: Genesis): Result<Chain> {
  const opened = openAppender(at.disk, at.path);
  if (!opened.ok) return opened;
  const place = appendRecords(at, opened.value, next, [genesis]);
  if (place.ok) return ok(chainOf(at, opened.value, place.value));
  opened.value.close();
  return place;
}

/** Goes on after a record that is known to be the last of the file. */
export function continueChain(at: ChainFiles, last: Place): Result<Chain> {
  const opened = openAppender(at.disk, at.path);
  return opened.ok ? ok(chainOf(at, opened.value, last)) : opened;
}

function appendRecords(
  at: ChainFiles,
  appender: Appender,
  next: Expected,
  records: readonly Fields[],
): Result<Place> {
  const start = appender.size();
  let place = { n: next.n - 1, hash: next.prev, start, end: start };
  const lines: Uint8Array[] = [];
  for (const fields of records) {
    const line = renderLine({ n: place.n + 1, prev: place.hash }, fields);
    if (!line.ok) return line;
    const bytes = encodeUtf8(line.value + "\n");
    const hash = hashLine(at.domain, line.value);
    place = { n: place.n + 1, hash, start: place.end, end: place.end + bytes.length };
    lines.push(bytes);
  }
  const written = appender.append(joinBytes(lines));
  if (!written.ok || at.headPath === null) return written.ok ? ok(place) : written;
  const headed = writeHead(at.disk, at.headPath, nameOf(at.path), place);
  if (headed.ok) return ok(place);
  if (mustEnd(headed)) return headed;
  // The records were never acknowledged: without them, the next append follows the old head again.
  const cut = appender.cutTo(start);
  return cut.ok ? headed : cut;
}

function chainOf(at: ChainFiles, appender: Appender, last: Place): Chain {
  let place = last;
  let broken: Err | null = null;
  const head = () => ({ n: place.n, hash: place.hash });
  const appendAll = (records: readonly Fields[]): Result<Head> => {
    if (broken !== null) return broken;
    const next = { n: place.n + 1, prev: place.hash };
    if (records.length === 0) return ok(head());
    const appended = appendRecords(at, appender, next, records);
    if (appended.ok) place = appended.value;
    else if (mustEnd(appended)) broken = appended;
    return appended.ok ? ok(head()) : appended;
  };
  return {
    append: (fields) => appendAll([fields]),
    appendAll,
    head,
    file: () => nameOf(at.path),
    rotate: (path, genesis) => {
      if (broken !== null) return broken;
      const rotated = rotateInto({ ...at, path }, nameOf(at.path), place, genesis);
      if (rotated.ok) appender.close();
      else if (mustEnd(rotated)) broken = rotated;
      return rotated;
    },
    close: () => appender.close(),
  };
}

/** Begins the next file, or takes up one that an interrupted rotation has begun. */
function rotateInto(at: ChainFiles, file: string, last: Head, genesis: Genesis): Result<Chain> {
  const previous = { file, n: last.n, hash: last.hash };
  const next = { n: last.n + 1, prev: last.hash };
  const begin = () => beginChain(at, next, { ...genesis, previous });
  const scan = scanLog(at.disk, at.path, at.domain, {
    from: FILE_START,
    sealedBelow: 0,
    watch: null,
  });
  if (!scan.ok) return scan.code === "file-missing" ? begin() : scan;
  const found = scan.value;
  if (found.damage === null && found.last === null) {
    // Empty, or a first record cut short: it was never acknowledged and says nothing.
    const cut = cutFile(at.disk, at.path, 0);
    return cut.ok ? begin() : cut;
  }
  const isOurs = found.damage === null && found.torn === null && found.records === 1 &&
    found.previous?.file === file && found.previous.hash === last.hash;
  if (!isOurs || found.last === null) {
    const detail = "The file to go on in is neither new nor the start of this rotation";
    return damageErr(at.path, found.damage ?? damage("other_file", -1, 0, detail));
  }
  if (at.headPath !== null) {
    const headed = writeHead(at.disk, at.headPath, nameOf(at.path), found.last);
    if (!headed.ok) return headed;
  }
  return continueChain(at, found.last);
}

/** Cuts a file that no one has open, durably. */
export function cutFile(disk: Disk, path: string, size: number): Result<void> {
  const opened = openAppender(disk, path);
  if (!opened.ok) return opened;
  const cut = opened.value.cutTo(size);
  opened.value.close();
  return cut.ok ? ok(undefined) : cut;
}

/** Bytes of a file from `offset` to `end`, fewer when the file ends before. */
export function bytesFrom(
  disk: Disk,
  path: string,
  offset: number,
  end: number,
): Result<Uint8Array> {
  return attempt(() => {
    const file = disk.open(path, "read");
    try {
      file.seek(offset);
      return readBytes(file, Math.max(0, Math.min(end, file.stat().size) - offset));
    } finally {
      file.close();
    }
  });
}
