// The journal of memory: `edits/YYYY-MM.jsonl`, chained, one line for every change of a file.
//
// 1. A file is changed first, its line is written after; each line carries the state of all files, so
//    a change without a line shows as a difference to the last line's state.
// 2. A new month goes on in a new file of the same chain. A clock that steps back starts none.
import { z } from "zod";
import { isoTime } from "../../shared/clock/clock.ts";
import type { Clock } from "../../shared/clock/clock.ts";
import type { Random } from "../../shared/clock/random.ts";
import { openChain } from "../../shared/chain/chained_log.ts";
import { readChain } from "../../shared/chain/chain_reader.ts";
import type { Fields } from "../../shared/chain/chain_record.ts";
import type { Genesis } from "../../shared/chain/chain_writer.ts";
import { readHead } from "../../shared/chain/head_file.ts";
import type { Disk } from "../../shared/disk/disk.ts";
import { attempt } from "../../shared/disk/durable.ts";
import { CallId, SessionId, Sha256 } from "../../shared/ids/ids.ts";
import { Label } from "../../shared/labels/label.ts";
import { ok, type Result } from "../../shared/results/result.ts";
import { toBase64 } from "../../shared/wire/codec.ts";

export const JOURNAL_DOMAIN = "memory";

/** What the files held after a line: hashes of the editable ones, the size of notes.md in bytes. */
export const FilesState = z.strictObject({
  memory: Sha256.nullable(),
  user: Sha256.nullable(),
  notes: z.int().min(0),
});
export type FilesState = z.output<typeof FilesState>;

/** What a line may say beside its kind, time and state; a line holds what its kind is about. */
export const JournalLine = z.object({
  n: z.int().min(0),
  kind: z.string(),
  time_unix_ms: z.int().min(0).default(0),
  file: z.enum(["memory", "user", "notes"]).nullable().default(null),
  action: z.string().nullable().default(null),
  session: SessionId.nullable().default(null),
  call: CallId.nullable().default(null),
  label: Label.nullable().default(null),
  before: z.string().nullable().default(null),
  after: z.string().nullable().default(null),
  text: z.string().nullable().default(null),
  why: z.string().nullable().default(null),
});
export type JournalLine = z.output<typeof JournalLine>;

export interface Journal {
  /** The state after the last line. */
  state(): FilesState;
  /** Appends a line durably, with the state after `change`. */
  append(line: Fields, change: Partial<FilesState>): Result<void>;
  close(): void;
}

export type StorePlace = {
  readonly disk: Disk;
  readonly clock: Clock;
  readonly random: Random;
  /** The existing folder `memory/`, in which there is `edits/` for the journal. */
  readonly folder: string;
};

/** `2026-11` for a wall time. */
export function monthOf(unixMs: number): string {
  return isoTime(unixMs).slice(0, 7);
}

/**
 * Opens the journal, or begins it with `found`, the state the files are in. A torn last line is cut
 * and said so; any other damage is refused with `log-broken`.
 */
export function openJournal(at: StorePlace, found: FilesState): Result<Journal> {
  const folder = `${at.folder}/edits`;
  const headPath = `${folder}/head.json`;
  const head = readHead(at.disk, headPath);
  if (!head.ok) return head;
  const path = `${folder}/${head.value?.file ?? `${monthOf(at.clock.nowUnixMs())}.jsonl`}`;
  const before = lastState(at.disk, path);
  const opened = openChain({
    disk: at.disk,
    path,
    headPath,
    domain: JOURNAL_DOMAIN,
    genesis: genesis(at, found),
    repair: (finding) => ({ kind: "repaired", time_unix_ms: at.clock.nowUnixMs(), ...finding }),
    check: "full",
  });
  if (!opened.ok) return opened;
  let { chain } = opened.value;
  let current = before ?? found;
  return ok({
    state: () => current,
    append: (line, change) => {
      const file = `${monthOf(at.clock.nowUnixMs())}.jsonl`;
      if (file > chain.file()) {
        const rotated = chain.rotate(`${folder}/${file}`, genesis(at, current));
        if (!rotated.ok) return rotated;
        chain = rotated.value;
      }
      const state = { ...current, ...change };
      const appended = chain.append({ ...line, state });
      if (!appended.ok) return appended;
      current = state;
      return ok(undefined);
    },
    close: () => chain.close(),
  });
}

/** The state in the last line that has one; damage is left to the opening of the chain to name. */
function lastState(disk: Disk, path: string): FilesState | null {
  let state: FilesState | null = null;
  for (const record of readChain(disk, path, JOURNAL_DOMAIN)) {
    if (!record.ok) return state;
    const parsed = z.object({ state: FilesState }).safeParse(record.value.value);
    if (parsed.success) state = parsed.data.state;
  }
  return state;
}

/** Every line of every month in order. Fails with `log-broken` where the chain is damaged. */
export function readJournal(disk: Disk, folder: string): Result<JournalLine[]> {
  const names = attempt(() => disk.list(folder));
  if (!names.ok) return names;
  const lines: JournalLine[] = [];
  for (const { name } of names.value.filter((one) => one.name.endsWith(".jsonl"))) {
    for (const record of readChain(disk, `${folder}/${name}`, JOURNAL_DOMAIN)) {
      if (!record.ok) return record;
      const parsed = JournalLine.safeParse(record.value.value);
      if (parsed.success) lines.push(parsed.data);
    }
  }
  return ok(lines);
}

function genesis(at: StorePlace, state: FilesState): Genesis {
  return {
    kind: "open",
    time_unix_ms: at.clock.nowUnixMs(),
    log: "memory edits",
    role: "memoryd",
    protocol: 1,
    nonce: toBase64(at.random.bytes(16)),
    state,
  };
}
