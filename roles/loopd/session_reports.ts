// What the owner is told about sessions: the list, one epoch's exact log, what a verification found.
// All of it is read from the files at the time of asking.
import { readHead } from "../../shared/chain/head_file.ts";
import type { Disk } from "../../shared/disk/disk.ts";
import { attempt, readWhole } from "../../shared/disk/durable.ts";
import type { SessionId } from "../../shared/ids/ids.ts";
import { SESSION_START } from "../../shared/labels/label.ts";
import { err, ok, type Result } from "../../shared/results/result.ts";
import type { SessionSummary } from "../../shared/wire/loop.ts";
import { MAX_OUTPUT_BYTES } from "../../shared/wire/limits.ts";
import {
  epochFiles,
  labelOf,
  newestEpoch,
  readBaseline,
  readRecords,
  sessionIds,
} from "./session_files.ts";

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
  const files = epochFiles(folder, epoch);
  const baseline = readBaseline(disk, files.baseline);
  const records = readRecords(disk, files.log);
  const head = readHead(disk, files.head);
  // A log may be ahead of its head while it is written, never behind it.
  const isShort = records.ok && head.ok && records.value.length <= (head.value?.n ?? -1);
  const isAbsent = !records.ok && records.code === "file-missing" && head.ok && head.value === null;
  const isDamaged = !baseline.ok || !head.ok || isShort || !(records.ok || isAbsent);
  const found = records.ok ? records.value : [];
  return {
    session,
    started_unix_ms: Math.max(0, Math.floor(startedUnixMs)),
    turns: found.filter((record) => record.kind === "user").length,
    records: found.length,
    epoch,
    label: baseline.ok ? labelOf(baseline.value, found) : SESSION_START,
    state: isDamaged ? "damaged" : isBusy(session) ? "running" : "idle",
  };
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
