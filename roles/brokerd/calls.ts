// The one way from a request to an effect, whatever the mode:
// request, arguments, ruling, (the owner's yes), decision, audit start, effect, audit result.
//
// 1. An effect begins only by spending a decision, after its `start` is durable.
// 2. Each call runs at most once. Asked again it is joined or answered; begun and not ended before a
//    crash, its outcome is unknown, and it is never run again.
// 3. Whatever held when a call was asked is looked at anew when it starts.
// 4. The session's label is raised before anybody sees the result that raises it.
import type { Clock } from "../../shared/clock/clock.ts";
import { type ApprovalId, type CallId, type SessionId, ulidUnixMs } from "../../shared/ids/ids.ts";
import { join } from "../../shared/labels/label.ts";
import { assertNever, err, messageOf, ok, type Result } from "../../shared/results/result.ts";
import { canonicalText } from "../../shared/wire/codec.ts";
import type { Approval, Approvals } from "./approvals.ts";
import type { Audit } from "./audit.ts";
import type { NewAuditRecord } from "./audit_records.ts";
import { emptyResult, type OutputSink, REMEMBERED_MS, type StoredResult } from "./call_results.ts";
import {
  anotherSession,
  type Answer,
  broken,
  type CallRequest,
  clash,
  decisionRecord,
  type Examined,
  type Live,
  liveOf,
  pendingOf,
  refusal,
  type Refused,
  storedOf,
} from "./call_state.ts";
import type { CallUse } from "./call_use.ts";
import { examine, type ExaminePorts } from "./examine.ts";
import { decide, type Ruling, takePlan } from "./decision.ts";
import { type Effect, execute, type Executors } from "./executors.ts";
import type { House } from "./house.ts";
import type { LimitDefaults, Plan } from "./plan.ts";
import { REASONS } from "./reasons.ts";
import type { Sessions } from "./taint.ts";

type HouseParts = Pick<House, "audit" | "grants" | "results" | "watch" | "stop">;
type CallPorts = ExaminePorts & HouseParts & {
  readonly clock: Clock;
  readonly use: CallUse;
  readonly executors: Executors;
  readonly defaults: LimitDefaults;
  readonly concurrent: number;
  readonly log: (line: string) => void;
  /** A new question is durable and may be shown. */
  readonly onAsked: (approval: Approval) => void;
};

const RETRY_MS = 2_000;
const MOMENT_MS = 50;
/** Calls that may run, wait or ask at once; a stop has to end them all in a moment. */
const MAX_LIVE = 256;

const FULL: Refused = {
  ...refusal("limit_reached"),
  message: `${MAX_LIVE} calls run, wait or ask already. Wait for their ends. ` +
    "The owner sees and answers questions with bxctl approvals, and ends them all with bxctl stop.",
};

export class Calls {
  readonly #ports: CallPorts;
  readonly #live = new Map<CallId, Live>();
  #approvals: Approvals | null = null;
  #isClosing = false;

  constructor(ports: CallPorts) {
    this.#ports = ports;
  }

  /** The desk that questions go to; set once, before the first request. */
  useApprovals(approvals: Approvals): void {
    this.#approvals = approvals;
  }

  /** Asks for a call, or for what became of it. */
  request(request: CallRequest): Result<Answer> {
    const known = this.fetch(request.session, request.call);
    if (known.ok || known.code !== "not-found") return known;
    if (ulidUnixMs(request.call) <= this.#ports.clock.nowUnixMs() - REMEMBERED_MS) {
      return err("request-invalid", `The call ${request.call} is too old to be a new one`);
    }
    const live = liveOf(request);
    if (this.#live.size >= MAX_LIVE) return this.#deny(live, null, FULL);
    return this.#step(live);
  }

  /** What became of a call; `not-found` when it was never asked for. */
  fetch(session: SessionId, call: CallId): Result<Answer> {
    const live = this.#live.get(call);
    if (live !== undefined) {
      if (live.request.session !== session) return anotherSession(call);
      return ok({ is: "pending", pending: pendingOf(live) });
    }
    const stored = this.#ports.results.load(call);
    if (!stored.ok) return stored;
    if (stored.value === null) return err("not-found", `The call ${call} was never asked for`);
    if (stored.value.session !== session) return anotherSession(call);
    return ok({ is: "ended", result: stored.value });
  }

  /** An answer that will be there in a moment is waited for; one that may take longer is not. */
  async soon(answer: Answer, session: SessionId, call: CallId): Promise<Answer> {
    const live = this.#live.get(call);
    if (live?.plan == null || live.plan.where === "container") return answer;
    const moment = new AbortController();
    await Promise.race([live.ending, this.#ports.clock.sleep(MOMENT_MS, moment.signal)]);
    moment.abort();
    const now = this.fetch(session, call);
    return now.ok ? now.value : answer;
  }

  acknowledge(session: SessionId, call: CallId): Result<unknown> {
    const known = this.fetch(session, call);
    if (!known.ok) return known;
    if (known.value.is !== "ended") return err("request-invalid", `The call ${call} has not ended`);
    return this.#ports.results.acknowledge(known.value.result);
  }

  /** Withdraws a call: its question is closed, what runs is ended. One that has ended stays so. */
  cancel(session: SessionId, call: CallId): Result<unknown> {
    const live = this.#live.get(call);
    if (live === undefined) return ok(null);
    if (live.request.session !== session) return anotherSession(call);
    live.abort.abort();
    if (live.state === "running") return ok(null);
    const ended = this.#step(live);
    if (!ended.ok) this.#surely(live, () => this.#step(live));
    return ended;
  }

  /** Ends everything that runs, waits or asks; the switch itself is thrown already. */
  endAll(): number {
    const all = [...this.#live.values()];
    for (const live of all) live.abort.abort();
    for (const live of all) this.#surely(live, () => this.#step(live));
    return all.length;
  }

  /** Takes up a question of an earlier life of brokerd, with those that share it. */
  restore(approval: Approval): void {
    const { session, turn, tool, args, call: leader } = approval.plan;
    for (const call of [leader, ...approval.folded]) {
      const known = this.fetch(session, call);
      if (known.ok || known.code !== "not-found") continue;
      const request = { session, turn, call, tool, args: canonicalText(args) };
      const own = { state: "waiting_approval", approval } as const;
      this.#live.set(call, liveOf(request, { ...own, leader: call === leader ? null : leader }));
    }
    if (approval.state !== "pending") this.onClosed(approval);
    const led = this.fetch(session, leader);
    if (!led.ok || led.value.is !== "ended") return;
    // Whatever of this the crash came before.
    this.#desk().withdraw(approval.approval, "broker");
    this.#shareAll(led.value.result);
  }

  /** A question was answered, has expired or was withdrawn. */
  onClosed(approval: Approval): void {
    const live = this.#live.get(approval.plan.call);
    if (live === undefined || live.state !== "waiting_approval") return;
    // A yes that nothing followed before a crash is one of that hour, not of another day.
    const isLate = approval.expires_unix_ms <= this.#ports.clock.nowUnixMs();
    if (approval.state === "approved" && !isLate) {
      live.approvedHash = approval.plan_hash;
      live.state = "queued";
      return this.#surely(live, () => this.#step(live));
    }
    const reason = this.#ports.stop.isStopped() ? "stopped" : CLOSED[approval.state];
    this.#surely(live, () => this.#refuse(live, refusal(reason)));
  }

  running(): number {
    return [...this.#live.values()].filter((live) => live.state === "running").length;
  }

  isIdle(): boolean {
    return this.#live.size === 0;
  }

  /** Ends what runs and waits for it; what asks keeps its question for the next life. */
  async close(): Promise<void> {
    this.#isClosing = true;
    const running = [...this.#live.values()].filter((live) => live.state === "running");
    for (const live of running) live.abort.abort();
    await Promise.all(running.map((live) => live.ending));
  }

  #desk(): Approvals {
    if (this.#approvals === null) throw new TypeError("Calls came before there was a desk");
    return this.#approvals;
  }

  /** Rules on a call as things stand now, and does what follows. Every road to an effect is here. */
  #step(live: Live): Result<Answer> {
    if (live.abort.signal.aborted) {
      return this.#refuse(live, refusal(this.#ports.stop.isStopped() ? "stopped" : "withdrawn"));
    }
    const examined = examine(this.#ports, live.request);
    if ("outcome" in examined) return this.#deny(live, null, examined);
    const { set, unrecorded } = this.#ports.grants.current();
    if (unrecorded !== undefined) return unrecorded;
    const ruling = decide({
      ...examined,
      caller: { ...live.request, label: examined.session.label },
      set,
      job: examined.session.job,
      nowUnixMs: this.#ports.clock.nowUnixMs(),
      isStopped: this.#ports.stop.isStopped(),
      used: this.#ports.use.of(live.request),
      defaults: this.#ports.defaults,
    }, live.approvedHash);
    switch (ruling.ruling) {
      case "deny":
        return this.#deny(
          live,
          decisionRecord(live.request, examined, ruling, ruling.code),
          refusal(ruling.code),
        );
      case "ask":
        return this.#ask(live, examined, ruling);
      case "allow":
        return this.#allow(live, examined, ruling);
      default:
        return assertNever(ruling);
    }
  }

  /** Records a denial and ends the call; `record` is null when it came to no ruling. */
  #deny(live: Live, record: NewAuditRecord | null, why: Refused): Result<Answer> {
    const said = this.#ports.audit.append(
      record ?? decisionRecord(live.request, null, null, why.code),
    );
    return said.ok ? this.#refuse(live, why) : said;
  }

  #ask(live: Live, examined: Examined, ruling: Extract<Ruling, { ruling: "ask" }>): Result<Answer> {
    const changed = live.approvedHash === null ? null : "changed_since_approval";
    const said = this.#ports.audit.append(decisionRecord(live.request, examined, ruling, changed));
    if (!said.ok) return said;
    const before = live.approval?.approval ?? null;
    live.approvedHash = null;
    const asked = this.#desk().ask(ruling.plan);
    if (!asked.ok) return asked;
    if (!("approval" in asked.value)) return this.#refuse(live, refusal(asked.value.is));
    const { approval } = asked.value;
    live.state = "waiting_approval";
    live.approval = approval;
    live.leader = asked.value.is === "folded" ? approval.plan.call : null;
    this.#live.set(live.request.call, live);
    for (const other of this.#live.values()) {
      if (before !== null && other.approval?.approval === before) other.approval = approval;
    }
    if (asked.value.is === "asked") this.#ports.onAsked(approval);
    const { session, call } = live.request;
    const { approval: id, expires_unix_ms } = approval;
    this.#ports.watch.asked({ session, call, approval: id, expires_unix_ms });
    return ok({ is: "pending", pending: pendingOf(live) });
  }

  #allow(
    live: Live,
    examined: Examined,
    ruling: Extract<Ruling, { ruling: "allow" }>,
  ): Result<Answer> {
    const record = decisionRecord(live.request, examined, ruling, null);
    if (ruling.plan.where === "caller") {
      const said = this.#ports.audit.append(record);
      const result = emptyResult(live.request, "done", null, "");
      return said.ok ? ok({ is: "run_local", result }) : said;
    }
    const problem = examined.paths.find((path) => path.problem !== null)?.problem ?? null;
    if (problem !== null) {
      const why = { outcome: "failed", code: "path-unusable", message: problem } as const;
      return this.#deny(live, { ...record, code: why.code }, why);
    }
    if (ruling.plan.where === "container" && !this.#hasRoom(ruling.plan)) {
      live.state = "queued";
      this.#live.set(live.request.call, live);
      return ok({ is: "pending", pending: pendingOf(live) });
    }
    const isApproved = live.approvedHash === ruling.hash;
    if (!isApproved) live.approval = null;
    const records = isApproved ? [] : [record];
    return this.#start(live, takePlan(ruling.decision), records, ruling.hash);
  }

  /** A slot is free, and nothing that runs may change what this call would open. */
  #hasRoom(plan: Plan): boolean {
    const running = [...this.#live.values()].flatMap((live) =>
      live.plan?.where === "container" ? live.plan : []
    );
    if (running.length >= this.#ports.concurrent) return false;
    return !running.some((other) => clash(other, plan) || clash(plan, other));
  }

  #start(live: Live, plan: Plan, before: NewAuditRecord[], hash: string): Result<Answer> {
    const { audit, watch, use, results, executors } = this.#ports;
    const { session, turn, call, tool } = live.request;
    const { where, image } = plan;
    const approval = live.approval?.approval ?? null;
    const wasWaiting = this.#live.has(call);
    live.state = "running";
    live.plan = plan;
    this.#live.set(call, live);
    const start = { session, turn, call, tool, where, plan: hash, image, approval };
    const said = audit.append(...before, { kind: "start", ...start });
    if (!said.ok) {
      // Nothing has begun. A new request hears why and may be made again; one that waits goes on waiting.
      live.state = "queued";
      live.plan = null;
      if (!wasWaiting) this.#live.delete(call);
      return said;
    }
    use.count(live.request);
    watch.started({ session, call });
    const sink = results.sink(call);
    const io = {
      onOutput: (bytes: Uint8Array) => void sink.write(bytes),
      signal: live.abort.signal,
    };
    live.ending = execute(executors, plan, io)
      .catch((thrown: unknown) => broken(messageOf(thrown)))
      .then((effect) => this.#settle(live, plan, sink, effect));
    return ok({ is: "pending", pending: pendingOf(live) });
  }

  /** Records an effect's end. The disk may be full for a while; the call waits for it. */
  async #settle(live: Live, plan: Plan, sink: OutputSink, effect: Effect): Promise<void> {
    const { clock, log, stop } = this.#ports;
    const output = sink.finish();
    if (effect.log !== "") log(`call ${live.request.call}: ${effect.log}`);
    const isStopped = effect.code === "withdrawn" && stop.isStopped();
    const ended: Effect = !output.ok && effect.outcome === "done"
      ? { ...effect, outcome: "failed", code: output.code, message: output.detail }
      : isStopped
      ? { ...effect, code: "stopped", message: REASONS.stopped }
      : effect;
    const result = storedOf(live.request, plan, ended, output.ok ? output.value : null);
    for (;;) {
      const kept = this.#keepResult(result);
      if (kept.ok) break;
      log(`the outcome of ${live.request.call} cannot be kept: ${kept.code}: ${kept.detail}`);
      if (this.#isClosing) return;
      await clock.sleep(RETRY_MS);
    }
    this.#finish(live, result);
    this.#pump();
  }

  #keepResult(result: StoredResult): Result<unknown> {
    const saved = this.#ports.results.save(result);
    if (!saved.ok) return saved;
    return recordResult(this.#ports.audit, this.#ports.sessions, result);
  }

  /** Does what a call that waits has come to; what a full disk prevents is tried again later. */
  #surely(live: Live, act: () => Result<Answer>): void {
    const isOver = live.state === "running" || !this.#live.has(live.request.call);
    if (this.#isClosing || isOver) return;
    const acted = act();
    if (acted.ok) return;
    this.#ports.log(`call ${live.request.call} waits: ${acted.code}: ${acted.detail}`);
    this.#ports.clock.sleep(RETRY_MS).then(() => this.#surely(live, act));
  }

  /** Ends a call that never began. */
  #refuse(live: Live, why: Refused): Result<Answer> {
    const { results, sessions } = this.#ports;
    const result = emptyResult(live.request, why.outcome, why.code, why.message);
    // An unknown session is not given files of its own.
    const saved = sessions.find(live.request.session) === null
      ? ok(undefined)
      : results.save(result);
    if (!saved.ok) return saved;
    this.#finish(live, result);
    return ok({ is: "ended", result });
  }

  #finish(live: Live, result: StoredResult): void {
    const { call, session } = live.request;
    const wasPending = this.#live.delete(call);
    if (wasPending) this.#ports.watch.ready({ session, call });
    const question = ownQuestion(live);
    if (question !== null) {
      this.#desk().withdraw(question, result.code === "withdrawn" ? "caller" : "broker");
    }
    this.#shareAll(result);
  }

  #shareAll(result: StoredResult): void {
    for (const follower of [...this.#live.values()].filter((one) => one.leader === result.call)) {
      this.#surely(follower, () => this.#share(follower, result));
    }
  }

  /** A call whose question stood for two gets the outcome of the one that ran. */
  #share(follower: Live, result: StoredResult): Result<Answer> {
    const { results } = this.#ports;
    const { call, turn } = follower.request;
    const own = { ...result, call, turn };
    const shared = results.share(result.call, call);
    const saved = shared.ok ? results.save(own) : shared;
    if (!saved.ok) return saved;
    this.#finish(follower, own);
    return ok({ is: "ended", result: own });
  }

  /** Starts what waits for room, oldest first. */
  #pump(): void {
    if (this.#isClosing) return;
    for (const live of [...this.#live.values()]) {
      if (live.state !== "queued") continue;
      this.#surely(live, () => this.#step(live));
    }
    if (this.isIdle() && !this.#ports.stop.isStopped()) this.#ports.audit.rotateIfDue();
  }
}

/** The question that stands for a call and for no other one's. */
function ownQuestion({ state, approval, leader }: Live): ApprovalId | null {
  return state === "waiting_approval" && leader === null ? approval?.approval ?? null : null;
}

const CLOSED = {
  pending: "withdrawn",
  approved: "approval_expired",
  denied: "denied_by_owner",
  expired: "approval_expired",
  withdrawn: "withdrawn",
} as const;

/** Writes an outcome into the audit log and raises the session's label by it. */
export function recordResult(
  audit: Audit,
  sessions: Sessions,
  result: StoredResult,
): Result<unknown> {
  const { session, call, code, label, bytes, sha256, is_cut, container } = result;
  const before = sessions.find(session)?.label ?? label;
  const session_label = join(before, label);
  const outcome = result.outcome === "denied" ? "failed" : result.outcome;
  const output = { bytes, sha256, is_cut, container };
  const said = audit.append(
    { kind: "result", session, call, outcome, code, label, session_label, ...output },
  );
  if (!said.ok) return said;
  return sessions.absorb(session, label, `result of ${result.tool}, call ${call}`);
}
