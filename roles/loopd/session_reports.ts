// What the owner is told about sessions: the list, one epoch's exact log, what a verification found.
// All of it is read from the files at the time of asking.
import { hashLine } from "../../shared/chain/chain_record.ts";
import type { HeadFile } from "../../shared/chain/head_file.ts";
import type { Disk } from "../../shared/disk/disk.ts";
import { attempt, readBytes, readWhole } from "../../shared/disk/durable.ts";
import type { SessionId } from "../../shared/ids/ids.ts";
import { SESSION_START } from "../../shared/labels/label.ts";
import { err, ok, type Result } from "../../shared/results/result.ts";
import { cacheUses } from "../../shared/session_log/cache_use.ts";
import { parseSessionRecord, SESSION_LOG_DOMAIN } from "../../shared/session_log/records.ts";
import { decodeUtf8, parseCanonicalText } from "../../shared/wire/codec.ts";
import type { SessionSummary } from "../../shared/wire/loop.ts";
import { MAX_OUTPUT_BYTES } from "../../shared/wire/limits.ts";
import {
  epochFiles,
  labelOf,
  newestEpoch,
  readEpoch,
  readRecords,
  readStored,
  sessionIds,
} from "./session_files.ts";
import { turnOrder } from "./request.ts";

/** Sessions by the time they began, newest first, from the one after `before`. */
export function listSessions(
  disk: Disk,
  root: string,
  page: { readonly before: SessionId | null; readonly limit: number },
  isBusy: (session: SessionId) => boolean,
): Result<SessionSummary[]> {
  const ids = sessionIds(disk, root);
  if (!ids.ok) return ids;
  const begun = ids.value.flatMap((id) => {
    const facts = attempt(() => disk.stat(epochFiles(`${root}/${id}`, 0).baseline));
    return facts.ok ? [{ id, at: facts.value.modifiedUnixMs }] : [];
  }).sort((a, b) => b.at - a.at || (a.id < b.id ? 1 : -1));
  const from = page.before === null ? 0 : begun.findIndex(({ id }) => id === page.before) + 1;
  if (from === 0 && page.before !== null) return err("not-found", `No session ${page.before}`);
  return ok(
    begun.slice(from, from + page.limit).map(({ id, at }) => summary(disk, root, id, at, isBusy)),
  );
}

function summary(
  disk: Disk,
  root: string,
  session: SessionId,
  startedUnixMs: number,
  isBusy: (session: SessionId) => boolean,
): SessionSummary {
  const folder = `${root}/${session}`;
  const newest = newestEpoch(disk, folder);
  const epoch = newest.ok ? newest.value : 0;
  const { log } = epochFiles(folder, epoch);
  const stored = readStored(disk, folder, epoch);
  const quick = stored.ok ? totalsOf(disk, log, stored.value.head) : null;
  const isAltered = quick === "altered";
  // Only a session that is running, or was cut short, has to be read as a whole.
  const records = stored.ok && quick === null ? readEpoch(disk, log, stored.value) : ok([]);
  // A log may be ahead of its head while it is written, never behind it.
  const isShort = quick === null && stored.ok && records.ok &&
    records.value.length <= stored.value.head.n;
  const isDamaged = !stored.ok || !records.ok || isShort || isAltered;
  const found = records.ok ? records.value : [];
  const label = stored.ok ? labelOf(stored.value.baseline, found) : SESSION_START;
  return {
    session,
    started_unix_ms: Math.max(0, Math.floor(startedUnixMs)),
    turns: turnOrder(found).length,
    records: found.length,
    label,
    ...(isAltered ? {} : quick),
    epoch,
    state: isDamaged ? "damaged" : isBusy(session) ? "running" : "idle",
  };
}

/** What the last record says of all before it, when it is the end of a turn and the log ends there. */
function totalsOf(disk: Disk, path: string, { n, start, end, hash }: HeadFile) {
  const last = attempt(() => {
    const file = disk.open(path, "read");
    try {
      file.seek(start);
      return file.stat().size === end ? readBytes(file, end - start - 1) : null;
    } finally {
      file.close();
    }
  });
  if (!last.ok || last.value === null) return null;
  const text = decodeUtf8(last.value);
  if (!text.ok || hashLine(SESSION_LOG_DOMAIN, text.value) !== hash) return "altered";
  const value = parseCanonicalText(text.value);
  const record = value.ok ? parseSessionRecord(value.value) : value;
  if (!record.ok || record.value.kind !== "turn_end" || !record.value.so_far) return null;
  return { ...record.value.so_far, records: n + 1 };
}

/** How each request of an epoch found the cache, the last `limit` of them. */
export function cacheReport(disk: Disk, root: string, asked: SessionId | null, limit: number) {
  const newest = asked === null
    ? listSessions(disk, root, { before: null, limit: 1 }, () => false)
    : ok([{ session: asked }]);
  if (!newest.ok) return newest;
  const session = newest.value[0]?.session;
  if (session === undefined) return err("not-found", "There is no session yet");
  const epoch = newestEpoch(disk, `${root}/${session}`);
  if (!epoch.ok) return epoch;
  const records = readRecords(disk, epochFiles(`${root}/${session}`, epoch.value).log);
  if (!records.ok) return records;
  return ok({ session, epoch: epoch.value, items: cacheUses(records.value).slice(-limit) });
}

/** The exact bytes of an epoch's log; the newest one's when `epoch` is null. */
export function epochLog(
  disk: Disk,
  root: string,
  session: SessionId,
  epoch: number | null,
): Result<{ readonly epoch: number; readonly bytes: Uint8Array }> {
  const folder = `${root}/${session}`;
  const newest = newestEpoch(disk, folder);
  if (!newest.ok) return newest;
  const wanted = epoch ?? newest.value;
  const bytes = readWhole(disk, epochFiles(folder, wanted).log, MAX_OUTPUT_BYTES);
  if (bytes.ok) return ok({ epoch: wanted, bytes: bytes.value });
  return bytes.code === "file-missing"
    ? err("not-found", `Session ${session} has no epoch ${wanted}`)
    : bytes;
}
