// The records of a session's log, `sessions/<id>/<epoch>.jsonl`: written by loopd alone, read by
// memoryd for its index and by bxctl for the owner. The log is chained (domain `session`), so each
// stored line also carries `n` and `prev`. A request to the model is a pure function of the epoch's
// baseline file and this log, so a record's content is the very text that is sent.
import { z } from "zod";
import { CallId, MessageId, SessionId, Sha256, ToolName, TurnId } from "../ids/ids.ts";
import { Label } from "../labels/label.ts";
import { err, ok, type Result } from "../results/result.ts";
import { sha256Hex } from "../tool/digest.ts";
import { parseCanonical } from "../wire/codec.ts";
import { AuditHead, UnixMs } from "../wire/parts.ts";

export const SESSION_LOG_DOMAIN = "session";

const text = z.string();

/** What the server measured for one answer; token counts. */
export const Timings = z.strictObject({
  cache_n: z.int().min(0),
  prompt_n: z.int().min(0),
  predicted_n: z.int().min(0),
  prompt_ms: z.number().min(0),
  predicted_ms: z.number().min(0),
});
export type Timings = z.output<typeof Timings>;

/** One call as the model made it. `arguments` is JSON text. */
export const LoggedCall = z.strictObject({
  call: CallId,
  name: z.string().max(256),
  arguments: text,
  /** The received bytes when they are no arguments and `{}` was stored. */
  artifact: Sha256.nullable(),
});
export type LoggedCall = z.output<typeof LoggedCall>;

const IN_TURN = { time_unix_ms: UnixMs, turn: TurnId };

/** Opens the log of an epoch: record 0. */
export const OpenRecord = z.strictObject({
  kind: z.literal("open"),
  time_unix_ms: UnixMs,
  /** `session <id> epoch <epoch>`. */
  log: z.string().max(200),
  role: z.literal("loopd"),
  protocol: z.literal(1),
  nonce: z.string().max(64),
  /** Of the bytes of the epoch's baseline file. */
  baseline: Sha256,
});

/** The session's label from here on; durable before the text it covers. */
export const LabelRecord = z.strictObject({
  kind: z.literal("label"),
  time_unix_ms: UnixMs,
  ...Label.shape,
  why: z.string().max(1_000),
});

export const UserRecord = z.strictObject({
  kind: z.literal("user"),
  ...IN_TURN,
  message_id: MessageId,
  /** As sent to the model; `artifact` names the untouched original when the two differ. */
  content: text,
  artifact: Sha256.nullable(),
});

export const AssistantRecord = z.strictObject({
  kind: z.literal("assistant"),
  ...IN_TURN,
  content: text,
  reasoning_content: text,
  tool_calls: z.array(LoggedCall),
  finish: z.enum(["stop", "length", "tool_calls"]),
  timings: Timings.nullable(),
});

export const ToolResultRecord = z.strictObject({
  kind: z.literal("tool_result"),
  ...IN_TURN,
  call: CallId,
  /** The target tool: for a call through `call_tool`, the tool it named. */
  tool: z.string().max(256),
  /** As sent to the model: framed, neutralised, capped. */
  content: text,
  ...Label.shape,
  outcome: z.enum(["done", "failed", "denied", "unknown", "corrective"]),
  code: z.string().max(64).nullable(),
  /** The exact output, when it is longer than or other than what was sent. */
  artifact: Sha256.nullable(),
  bytes: z.int().min(0),
  audit: AuditHead.nullable(),
  container: z.string().max(64).nullable(),
  image: z.string().max(128).nullable(),
});

/** A derived text about one tool's output, for the index. */
export const ToolSummaryRecord = z.strictObject({
  kind: z.literal("tool_summary"),
  ...IN_TURN,
  call: CallId,
  tool: ToolName,
  content: text,
  ...Label.shape,
});

/** The server reused less of the prompt than it could have; token counts. */
export const CacheLossRecord = z.strictObject({
  kind: z.literal("cache_loss"),
  ...IN_TURN,
  expected: z.int().min(0),
  reused: z.int().min(0),
  guess: z.string().max(200),
});

/** Something the owner was told about this session. */
export const NoticeRecord = z.strictObject({
  kind: z.literal("notice"),
  time_unix_ms: UnixMs,
  turn: TurnId.nullable(),
  code: z.string().max(64),
  text: z.string().max(16_000),
});

export const TurnEndRecord = z.strictObject({
  kind: z.literal("turn_end"),
  ...IN_TURN,
  outcome: z.enum(["answered", "failed", "cancelled"]),
  /** The epoch up to here, so that a listing needs this record alone. */
  so_far: z.strictObject({ turns: z.int().min(0), label: Label }).optional(),
});

export const SessionRecord = z.discriminatedUnion("kind", [
  OpenRecord,
  LabelRecord,
  UserRecord,
  AssistantRecord,
  ToolResultRecord,
  ToolSummaryRecord,
  CacheLossRecord,
  NoticeRecord,
  TurnEndRecord,
]);
export type SessionRecord = z.output<typeof SessionRecord>;

/** A stored record without what the chain adds to it. Fails with `record-invalid`. */
export function parseSessionRecord(stored: unknown): Result<SessionRecord> {
  const { v: _v, n: _n, prev: _prev, ...fields } = z.record(z.string(), z.unknown()).catch({})
    .parse(stored);
  const parsed = SessionRecord.safeParse(fields);
  return parsed.success ? ok(parsed.data) : err("record-invalid", z.prettifyError(parsed.error));
}

/** `sessions/<id>/<epoch>.baseline.json`: written once, before the first request. */
export const Baseline = z.strictObject({
  v: z.literal(1),
  session: SessionId,
  epoch: z.int().min(0),
  created_unix_ms: UnixMs,
  /** The session's label when the epoch began. */
  label: Label,
  /** `messages[0]`: the system text with the memory block in it. */
  system: text,
  /** Example exchanges that become `messages[1..k]`, sent as they stand. */
  examples: z.array(z.record(z.string(), z.unknown())),
  /** The `tools` array, sent as it stands. */
  tools: z.array(z.record(z.string(), z.unknown())),
  sampling: z.record(z.string(), z.number()),
});
export type Baseline = z.output<typeof Baseline>;

/** A baseline, and the SHA-256 of its file, which the log beside it begins with. */
export type StoredBaseline = { readonly baseline: Baseline; readonly sha256: string };

/** The baseline of this very epoch from its file's bytes. Fails with `record-invalid`. */
export function parseBaseline(
  bytes: Uint8Array,
  session: string,
  epoch: number,
): Result<StoredBaseline> {
  const value = parseCanonical(bytes);
  const parsed = Baseline.safeParse(value.ok ? value.value : null);
  return parsed.success && parsed.data.session === session && parsed.data.epoch === epoch
    ? ok({ baseline: parsed.data, sha256: sha256Hex(bytes) })
    : err("record-invalid", `This is no baseline of ${session}, epoch ${epoch}`);
}
