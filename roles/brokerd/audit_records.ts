// What the audit log says, one schema a kind. The chain adds `v`, `n` and `prev` to each.
import { z } from "zod";
import { ApprovalId, CallId, SessionId, Sha256, TurnId } from "../../shared/ids/ids.ts";
import { Label } from "../../shared/labels/label.ts";
import { AuditHead } from "../../shared/wire/parts.ts";

export const AUDIT_DOMAIN = "audit";

const text = z.string();

function record<K extends string, S extends z.ZodRawShape>(kind: K, shape: S) {
  return z.strictObject({ kind: z.literal(kind), time: z.string().max(32), ...shape });
}

const grant = z.strictObject({ name: text, sha256: text }).nullable();

const SessionRecord = record("session", {
  session: SessionId,
  as: z.enum(["main", "chat", "job", "run"]),
  job: text.nullable(),
  workspace: text.nullable(),
  label: Label,
});

const RaiseRecord = record("raise", { session: SessionId, label: Label, why: text });

/** What was ruled on one call, denials included. `args` is JSON text as it came. */
const DecisionRecord = record("decision", {
  session: text,
  turn: TurnId,
  call: CallId,
  tool: text,
  args: text,
  verdict: z.enum(["auto", "ask", "deny"]),
  code: text.nullable(),
  grant,
  label: Label.nullable(),
  plan: Sha256.nullable(),
  tool_sha256: Sha256.nullable(),
  catalog: Sha256.nullable(),
});

const ApprovalRecord = record("approval", {
  approval: ApprovalId,
  session: SessionId,
  call: CallId,
  event: z.enum(["asked", "approved", "denied", "expired", "withdrawn", "folded"]),
  via: z.enum(["owner", "gateway", "clock", "caller", "broker"]),
  plan: Sha256,
});

const StartRecord = record("start", {
  session: SessionId,
  turn: TurnId,
  call: CallId,
  tool: text,
  where: text,
  plan: Sha256,
  image: text.nullable(),
  approval: ApprovalId.nullable(),
});

const ResultRecord = record("result", {
  session: SessionId,
  call: CallId,
  outcome: z.enum(["done", "failed", "unknown"]),
  code: text.nullable(),
  label: Label,
  session_label: Label,
  bytes: z.int().min(0),
  sha256: Sha256,
  is_cut: z.boolean(),
  container: text.nullable(),
});

const Request = {
  session: SessionId,
  call: CallId,
  /** Counts the requests of a call from 0. */
  request: z.int().min(0),
  method: text,
  url: text,
  bytes: z.int().min(0),
  sha256: Sha256,
  /** Why egressd did not let it leave, or null. */
  refused: text.nullable(),
};
const RequestRecord = record("request", Request);
/** A request with its body in base 64, durable before it leaves. */
const PayloadRecord = record("payload", { ...Request, body: text });

const GrantsRecord = record("grants", {
  files: z.array(z.strictObject({ file: text, sha256: Sha256 })),
  built_in: z.array(z.strictObject({ name: text, sha256: Sha256 })),
  problems: z.int().min(0),
});

const StopRecord = record("stop", {
  via: z.enum(["owner", "gateway", "broker"]),
  why: text,
  ended: z.int().min(0),
});

const ResumeRecord = record("resume", {});

/** The owner set a secret; its value is nowhere but in its file. */
const SecretRecord = record("secret", { name: text });

/** A request that no row of the table allows, or that was not as its schema says. */
const RefusedRecord = record("refused", { socket: text, what: text });

/** A head that a caller was shown once and that this log does not hold. */
const AlarmRecord = record("alarm", { code: text, detail: text, witness: AuditHead.nullable() });

export const AuditRecord = z.discriminatedUnion("kind", [
  SessionRecord,
  RaiseRecord,
  DecisionRecord,
  ApprovalRecord,
  StartRecord,
  ResultRecord,
  RequestRecord,
  PayloadRecord,
  GrantsRecord,
  StopRecord,
  ResumeRecord,
  SecretRecord,
  RefusedRecord,
  AlarmRecord,
]);
export type AuditRecord = z.output<typeof AuditRecord>;

type Untimed<R> = R extends unknown ? Omit<R, "time"> : never;
/** A record as it is handed to the log, which sets the time. */
export type NewAuditRecord = Untimed<AuditRecord>;

/** In an `open` or `repair` record: what the owner declared lost when a damaged file was put aside. */
const Declared = z.strictObject({
  file: text,
  /** Its name since then, null when it was not there. */
  kept_as: text.nullable(),
  bytes: z.int().min(0),
  sha256: text,
  finding: text,
  /** Numbers of the first and the last record that count as lost. */
  from: z.int().min(0),
  to: z.int().min(-1),
});
export type Declared = z.output<typeof Declared>;

/** The owner's declaration in a stored value, or null. */
export function declaredIn(value: unknown): Declared | null {
  const parsed = Declared.safeParse(Reflect.get(Object(value), "repaired"));
  return parsed.success ? parsed.data : null;
}

/** The record in a stored value, or null when it is of the log's own making (`open`, `repair`). */
export function auditRecordOf(value: unknown): AuditRecord | null {
  if (typeof value !== "object" || value === null) return null;
  const { v: _v, n: _n, prev: _prev, ...fields } = { v: 0, n: 0, prev: "", ...value };
  const parsed = AuditRecord.safeParse(fields);
  return parsed.success ? parsed.data : null;
}
