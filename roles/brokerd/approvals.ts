// Questions to the owner. Each is a file of its own, durable before anybody sees it.
//
// 1. An answer counts when the audit log holds it; of two the first one wins, and there is no second. The
//    file follows: at start the log's word holds.
// 2. No answer, a late one, or a file that cannot be read: denied.
// 3. What was approved is a plan's hash. Whether it still holds is looked at when the call starts.
// 4. The same request while it is asked, or within a minute of a no, is no new question; and one
//    session gets no more than so many an hour.
import { z } from "zod";
import type { Clock } from "../../shared/clock/clock.ts";
import type { Random } from "../../shared/clock/random.ts";
import type { Disk } from "../../shared/disk/disk.ts";
import {
  attempt,
  createExclusive,
  isTemporaryName,
  readWhole,
  removeFile,
  replaceFile,
} from "../../shared/disk/durable.ts";
import {
  ApprovalId,
  CallId,
  type SessionId,
  Sha256,
  ulid,
  ulidUnixMs,
} from "../../shared/ids/ids.ts";
import { ok, type Result } from "../../shared/results/result.ts";
import { encodeCanonical } from "../../shared/wire/codec.ts";
import type { AnswerOutcome, ApprovalSummary } from "../../shared/wire/parts.ts";
import type { Audit } from "./audit.ts";
import type { AuditRecord } from "./audit_records.ts";
import { Plan, planHash, requestKey } from "./plan.ts";
import { storedAs } from "./stored.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const KEPT_MS = 7 * 24 * HOUR_MS;
const MAX_FILE_BYTES = 8_388_608;
const MAX_CLOSED = 200;
const MAX_FOLDED = 64;

export const Approval = z.strictObject({
  v: z.literal(1),
  approval: ApprovalId,
  code: z.string().regex(/^[0-9a-hjkmnp-tv-z]{6}$/),
  state: z.enum(["pending", "approved", "denied", "expired", "withdrawn"]),
  plan: Plan,
  plan_hash: Sha256,
  created_unix_ms: z.int(),
  expires_unix_ms: z.int(),
  answered_unix_ms: z.int().nullable(),
  /** Other calls that asked for the same and share the answer and the outcome. */
  folded: z.array(CallId).max(MAX_FOLDED),
});
export type Approval = z.output<typeof Approval>;

export type Asked =
  | { readonly is: "asked" | "folded"; readonly approval: Approval }
  | { readonly is: "denied_by_owner" | "throttled" };

export type Via = "owner" | "gateway";

export type ApprovalPorts = {
  readonly disk: Disk;
  readonly clock: Clock;
  readonly random: Random;
  readonly audit: Audit;
  /** Absolute path of the folder of pending and answered questions. */
  readonly folder: string;
  readonly expiresMs: number;
  readonly perHour: number;
  readonly told: Told;
  /** A question has been answered, has expired or was withdrawn. */
  readonly onClosed: (approval: Approval) => void;
  /** A session asked too often; told once an hour. */
  readonly onThrottled: (session: SessionId) => void;
};

type AnyVia = Via | "clock" | "caller" | "broker";
type Event = Extract<AuditRecord, { kind: "approval" }>["event"];

/** How questions ended, by what the audit log says. */
export type Told = Map<ApprovalId, Pick<Approval, "state" | "answered_unix_ms">>;

export function foldAnswers(told: Told, record: AuditRecord): void {
  if (record.kind !== "approval" || record.event === "asked" || record.event === "folded") return;
  told.set(record.approval, { state: record.event, answered_unix_ms: Date.parse(record.time) });
}

export type Answered = { readonly outcome: AnswerOutcome; readonly approval: Approval | null };

/** Opens the questions in the folder, those of an earlier life of brokerd included. */
export function approvalsIn(ports: ApprovalPorts): Result<Approvals> {
  const loaded = loadAll(ports);
  return loaded.ok ? ok(new ApprovalDesk(ports, loaded.value)) : loaded;
}

export type Approvals = ApprovalDesk;

/** What may be said yes to, and whether it was: changed here alone. */
class ApprovalDesk {
  readonly #ports: ApprovalPorts;
  readonly #all: Map<ApprovalId, Approval>;
  readonly #over = new AbortController();
  readonly #throttledAt = new Map<SessionId, number>();
  readonly #askedAt = new Map<SessionId, number[]>();
  /** When the newest id was made: ids sort in the order of asking, also within a moment. */
  #lastIdMs = 0;

  constructor(ports: ApprovalPorts, loaded: readonly Approval[]) {
    this.#ports = ports;
    this.#all = new Map(loaded.map((one) => [one.approval, one]));
    for (const one of loaded) {
      this.#count(one);
      this.#lastIdMs = Math.max(this.#lastIdMs, ulidUnixMs(one.approval));
      this.#expire(one.approval);
    }
  }

  ask(plan: Plan): Result<Asked> {
    const before = this.#recent(plan);
    if (before !== null) return this.#fold(before, plan);
    if (this.#isThrottled(plan.session)) return ok({ is: "throttled" });
    const { clock, random, disk, expiresMs } = this.#ports;
    const created = clock.nowUnixMs();
    this.#lastIdMs = Math.max(created, this.#lastIdMs + 1);
    const one: Approval = {
      v: 1,
      approval: ApprovalId.parse(`a-${ulid(this.#lastIdMs, random)}`),
      code: this.#freshCode(),
      state: "pending",
      plan: structuredClone(plan),
      plan_hash: planHash(plan),
      created_unix_ms: created,
      expires_unix_ms: created + expiresMs,
      answered_unix_ms: null,
      folded: [],
    };
    // Recorded first: what is in memory is asked, shown and expires, or it is not there at all.
    const said = this.#record(one, "asked", "broker", plan.call);
    if (!said.ok) return said;
    const made = createExclusive(disk, this.#path(one.approval), encodeCanonical(one));
    if (!made.ok) return made;
    this.#all.set(one.approval, one);
    this.#count(one);
    this.#trim();
    this.#expire(one.approval);
    return ok({ is: "asked", approval: one });
  }

  /**
   * `session` is the thread an answer came from, null for the owner's terminal, which is no thread;
   * `madeFor` the one question that the thread was made for, if it was.
   */
  answer(
    typed: string,
    answer: "approve" | "deny",
    via: Via,
    session: SessionId | null,
    madeFor: ApprovalId | null = null,
  ): Result<Answered> {
    const code = normalised(typed);
    const one = [...this.#all.values()].find((known) => known.code === code) ?? null;
    const say = (outcome: AnswerOutcome) => ok({ outcome, approval: one });
    if (one === null) return say("unknown");
    const isOwnThread = session === one.plan.session &&
      (madeFor === null || madeFor === one.approval);
    if (via === "gateway" && !isOwnThread) return say("wrong_thread");
    if (via === "gateway" && one.plan.approver === "local") return say("local_only");
    if (one.state === "expired") return say("expired");
    if (one.state !== "pending") return say("already_answered");
    if (one.expires_unix_ms <= this.#ports.clock.nowUnixMs()) return say("expired");
    const outcome = answer === "approve" ? "approved" : "denied";
    const ended = this.#end(one, outcome, via);
    return ended.ok ? ok({ outcome, approval: ended.value }) : ended;
  }

  /** Closes a question whose call is over. */
  withdraw(id: ApprovalId, via: "caller" | "broker"): void {
    const one = this.#all.get(id);
    if (one?.state !== "pending" || this.#end(one, "withdrawn", via).ok) return;
    // A full disk: nobody can answer or share it any more, and its end is recorded when there is room.
    this.#all.set(id, { ...one, expires_unix_ms: one.created_unix_ms });
  }

  find(id: ApprovalId): Approval | null {
    return this.#all.get(id) ?? null;
  }

  /** Newest first. */
  list(which: "pending" | "all"): readonly Approval[] {
    return [...this.#all.values()].filter((one) => which === "all" || one.state === "pending")
      .toSorted((a, b) => (a.approval < b.approval ? 1 : -1));
  }

  /** Removes the files of questions that ended and are a week old. */
  forgetOld(): Result<void> {
    const { clock, disk } = this.#ports;
    for (const one of this.#all.values()) {
      if (one.state === "pending" || one.created_unix_ms > clock.nowUnixMs() - KEPT_MS) continue;
      const removed = removeFile(disk, this.#path(one.approval));
      if (!removed.ok) return removed;
      this.#all.delete(one.approval);
    }
    return ok(undefined);
  }

  /** Stops every waiting for expiry. */
  close(): void {
    this.#over.abort();
  }

  #path(id: ApprovalId): string {
    return `${this.#ports.folder}/${id}.json`;
  }

  #write(next: Approval): Result<void> {
    return replaceFile(this.#ports.disk, this.#path(next.approval), encodeCanonical(next));
  }

  #record(one: Approval, event: Event, via: AnyVia, call: CallId): Result<unknown> {
    const { approval, plan_hash: plan, plan: { session } } = one;
    const said = { approval, session, call, event, via, plan };
    return this.#ports.audit.append({ kind: "approval", ...said });
  }

  #end(one: Approval, state: Exclude<Approval["state"], "pending">, via: AnyVia): Result<Approval> {
    const said = this.#record(one, state, via, one.plan.call);
    if (!said.ok) return said;
    const ended = { ...one, state, answered_unix_ms: this.#ports.clock.nowUnixMs() };
    this.#all.set(one.approval, ended);
    // What a full disk prevents now, the log makes good at the next start.
    this.#write(ended);
    this.#ports.onClosed(ended);
    return ok(ended);
  }

  async #expire(id: ApprovalId): Promise<void> {
    const { clock } = this.#ports;
    const { signal } = this.#over;
    for (;;) {
      const one = this.#all.get(id);
      if (signal.aborted || one?.state !== "pending") return;
      const leftMs = one.expires_unix_ms - clock.nowUnixMs();
      // A disk that is full now may not be in a while; until then the question is dead anyway.
      if (leftMs > 0) await clock.sleep(Math.min(leftMs, MINUTE_MS), signal);
      else if (!this.#end(one, "expired", "clock").ok) await clock.sleep(5_000, signal);
    }
  }

  #recent(plan: Plan): Approval | null {
    const now = this.#ports.clock.nowUnixMs();
    const key = requestKey(plan);
    const isOpen = (one: Approval) => one.state === "pending" && one.expires_unix_ms > now;
    const isFreshNo = (one: Approval) =>
      one.state === "denied" && (one.answered_unix_ms ?? 0) > now - MINUTE_MS;
    return [...this.#all.values()].find((one) =>
      one.plan.session === plan.session && (isOpen(one) || isFreshNo(one)) &&
      requestKey(one.plan) === key
    ) ?? null;
  }

  #fold(one: Approval, plan: Plan): Result<Asked> {
    if (one.state === "denied") return ok({ is: "denied_by_owner" });
    if (one.folded.length >= MAX_FOLDED) return ok({ is: "throttled" });
    const said = this.#record(one, "folded", "caller", plan.call);
    if (!said.ok) return said;
    const approval = { ...one, folded: [...one.folded, plan.call] };
    const kept = this.#write(approval);
    if (!kept.ok) return kept;
    this.#all.set(one.approval, approval);
    return ok({ is: "folded", approval });
  }

  #count({ plan, created_unix_ms }: Approval): void {
    const times = this.#askedAt.get(plan.session) ?? [];
    this.#askedAt.set(plan.session, [...times, created_unix_ms]);
  }

  #isThrottled(session: SessionId): boolean {
    const now = this.#ports.clock.nowUnixMs();
    const since = now - HOUR_MS;
    const asked = (this.#askedAt.get(session) ?? []).filter((at) => at > since);
    this.#askedAt.set(session, asked);
    if (asked.length < this.#ports.perHour) return false;
    if ((this.#throttledAt.get(session) ?? -1) <= since) {
      this.#throttledAt.set(session, now);
      this.#ports.onThrottled(session);
    }
    return true;
  }

  /** Old answers leave memory; their files stay for a week. */
  #trim(): void {
    const closed = [...this.#all.values()].filter((one) => one.state !== "pending");
    for (const one of closed.slice(0, -MAX_CLOSED)) this.#all.delete(one.approval);
  }

  #freshCode(): string {
    const taken = new Set([...this.#all.values()].map((one) => one.code));
    for (;;) {
      const bytes = this.#ports.random.bytes(6);
      const code = [...bytes].map((byte) => ALPHABET.charAt(byte % 32)).join("");
      if (!taken.has(code)) return code;
    }
  }
}

/** Crockford's digits: none of them is taken for another on a small screen. */
const ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz";

/** A code as a person may type it: capitals, blanks and look-alikes do not matter. */
function normalised(typed: string): string {
  return typed.toLowerCase().replace(/[\s-]/g, "").replaceAll("o", "0").replace(/[il]/g, "1");
}

/** Every question; one that cannot be read, or whose plan was changed, answers nothing. */
function loadAll(ports: ApprovalPorts): Result<Approval[]> {
  const names = attempt(() => ports.disk.list(ports.folder).map((entry) => entry.name));
  if (!names.ok) return names;
  const found: Approval[] = [];
  for (const name of names.value.filter((one) => !isTemporaryName(one))) {
    const bytes = readWhole(ports.disk, `${ports.folder}/${name}`, MAX_FILE_BYTES);
    if (!bytes.ok) return bytes;
    const one = storedAs(Approval, bytes);
    if (one === null || planHash(one.plan) !== one.plan_hash) continue;
    const said = one.state === "pending" ? ports.told.get(one.approval) : undefined;
    const now = { ...one, ...said };
    found.push(now);
    // The log's word is at hand in its month only.
    if (said !== undefined) {
      replaceFile(ports.disk, `${ports.folder}/${name}`, encodeCanonical(now));
    }
  }
  return ok(found);
}

/** One question as it is listed. */
export function summaryOf({ plan, ...one }: Approval): ApprovalSummary {
  const { approval, state, created_unix_ms, expires_unix_ms } = one;
  const { session, call, tool, approver } = plan;
  return { approval, session, call, tool, state, created_unix_ms, expires_unix_ms, approver };
}
