// The outcome of each call, kept so that a call asked for again is answered and never repeated.
//
// 1. `results/<call>.json` is written once, when the call has ended; its output lies beside it in
//    `<call>.out`, written as it comes and synced before the outcome is.
// 2. After an acknowledgement the output goes; that the call was made stays for a month, and until the
//    audit log has begun two files after it, so that no clock that is wrong at a start forgets it. An
//    id older than a month is never taken for a new call, so forgetting one cannot repeat it.
import { z } from "zod";
import type { Disk, DiskFile } from "../../shared/disk/disk.ts";
import { attempt, readWhole, removeFile, replaceFile } from "../../shared/disk/durable.ts";
import { CallId, SessionId, Sha256, TurnId, ulidUnixMs } from "../../shared/ids/ids.ts";
import { Label } from "../../shared/labels/label.ts";
import { type Err, err, ok, type Result } from "../../shared/results/result.ts";
import { sha256, sha256Hex } from "../../shared/tool/digest.ts";
import { encodeCanonical } from "../../shared/wire/codec.ts";
import { storedAs } from "./stored.ts";

export const StoredResult = z.strictObject({
  v: z.literal(1),
  session: SessionId,
  turn: TurnId,
  call: CallId,
  tool: z.string(),
  outcome: z.enum(["done", "failed", "denied", "unknown"]),
  code: z.string().nullable(),
  message: z.string(),
  label: Label,
  bytes: z.int().min(0),
  sha256: Sha256,
  is_cut: z.boolean(),
  container: z.string().nullable(),
  image: z.string().nullable(),
  is_acked: z.boolean(),
});
export type StoredResult = z.output<typeof StoredResult>;

/** SHA-256 of no bytes at all. */
const NOTHING_SHA256 = sha256Hex(new Uint8Array());

/** The outcome of a call that gave no output, to be completed by who knows more. */
export function emptyResult(
  of: Pick<StoredResult, "session" | "turn" | "call" | "tool">,
  outcome: StoredResult["outcome"],
  code: string | null,
  message: string,
): StoredResult {
  const { session, turn, call, tool } = of;
  const said = message.toWellFormed().slice(0, 4_000);
  const label = { class: "public", untrusted: false } as const;
  const output = { bytes: 0, sha256: NOTHING_SHA256, is_cut: false, container: null, image: null };
  const own = { session, turn, call, tool, outcome, code, message: said, label };
  return { v: 1, ...own, ...output, is_acked: false };
}

export type Output = { readonly bytes: number; readonly sha256: string };

/** Takes a running call's output. */
export interface OutputSink {
  /** False once a write has failed; the rest is dropped. */
  write(bytes: Uint8Array): boolean;
  /** Makes what was written durable and says what it is; fails when a write had failed. */
  finish(): Result<Output>;
}

export interface CallResults {
  /** Null when the call has no outcome; a failure when there is one that cannot be read. */
  load(call: CallId): Result<StoredResult | null>;
  save(result: StoredResult): Result<void>;
  sink(call: CallId): OutputSink;
  /** The exact output in pieces. */
  output(result: StoredResult): Generator<Uint8Array>;
  /** Gives another call the same output; for a question that stood for both. */
  share(from: CallId, to: CallId): Result<void>;
  acknowledge(result: StoredResult): Result<void>;
}

/** How long a call is remembered at least; older ids are refused. */
export const REMEMBERED_MS = 30 * 24 * 3_600_000;

const PIECE_BYTES = 49_152;
const MAX_RESULT_BYTES = 65_536;

/** The outcomes in `folder`; those of calls made before `forgetUnixMs` are removed. */
export function callResultsIn(
  disk: Disk,
  folder: string,
  forgetUnixMs: number,
): Result<CallResults> {
  const names = attempt(() => disk.list(folder).map((entry) => entry.name));
  if (!names.ok) return names;
  for (const name of names.value) {
    const call = CallId.safeParse(name.replace(/\.(?:json|out)$/, ""));
    if (!call.success || ulidUnixMs(call.data) > forgetUnixMs) continue;
    const removed = removeFile(disk, `${folder}/${name}`);
    if (!removed.ok) return removed;
  }
  const jsonPath = (call: CallId) => `${folder}/${call}.json`;
  const outPath = (call: CallId) => `${folder}/${call}.out`;
  const save = (result: StoredResult) =>
    replaceFile(disk, jsonPath(result.call), encodeCanonical(result));
  return ok({
    save,
    load(call) {
      const bytes = readWhole(disk, jsonPath(call), MAX_RESULT_BYTES);
      if (!bytes.ok) return bytes.code === "file-missing" ? ok(null) : bytes;
      const stored = storedAs(StoredResult, bytes);
      return stored === null ? err("disk-error", `${jsonPath(call)} is damaged`) : ok(stored);
    },
    sink: (call) => sinkTo(disk, outPath(call)),
    *output(result) {
      if (result.bytes === 0 || result.is_acked) return;
      const file = disk.open(outPath(result.call), "read");
      try {
        for (let left = result.bytes; left > 0;) {
          const piece = new Uint8Array(Math.min(left, PIECE_BYTES));
          const got = file.read(piece);
          if (got === 0) return;
          left -= got;
          yield piece.subarray(0, got);
        }
      } finally {
        file.close();
      }
    },
    share(from, to) {
      const shared = attempt(() => disk.link(outPath(from), outPath(to)));
      const isFine = shared.ok || ["file-missing", "file-exists"].includes(shared.code);
      return isFine ? ok(undefined) : shared;
    },
    acknowledge(result) {
      if (result.is_acked) return ok(undefined);
      const saved = save({ ...result, is_acked: true });
      return saved.ok ? removeFile(disk, outPath(result.call)) : saved;
    },
  });
}

/** Makes the file at the first byte, so that a call without output leaves none. */
function sinkTo(disk: Disk, path: string): OutputSink {
  const hash = sha256();
  let bytes = 0;
  let file: DiskFile | null = null;
  let failure: Err | null = null;
  const guarded = (step: () => void): boolean => {
    const done = failure ?? attempt(step);
    if (!done.ok) failure = done;
    return done.ok;
  };
  return {
    write(piece) {
      return guarded(() => {
        file ??= disk.open(path, "create_new");
        for (let rest = piece; rest.length > 0;) rest = rest.subarray(file.write(rest));
        hash.update(piece);
        bytes += piece.length;
      });
    },
    finish() {
      const open = file;
      guarded(() => open?.sync());
      open?.close();
      file = null;
      return failure === null
        ? ok({ bytes, sha256: hash.hex() })
        : err("disk-full", `The output could not be kept: ${failure.detail}`);
    },
  };
}
