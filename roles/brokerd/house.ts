// Puts brokerd's parts together and takes up what an earlier life left. When this returns, everything
// that must hold before a socket is opened holds.
import type { Clock } from "../../shared/clock/clock.ts";
import type { Random } from "../../shared/clock/random.ts";
import type { BrokerdConfig } from "../../shared/config/brokerd.ts";
import type { Disk } from "../../shared/disk/disk.ts";
import { makeFolders } from "../../shared/disk/durable.ts";
import { endingDisk } from "../../shared/disk/ending_disk.ts";
import type { SessionId } from "../../shared/ids/ids.ts";
import type { Log } from "../../shared/log/log.ts";
import { err, ok, type Result } from "../../shared/results/result.ts";
import type { AuditHead } from "../../shared/wire/parts.ts";
import { type Approval, type Approvals, approvalsIn, foldAnswers, type Told } from "./approvals.ts";
import { renderApproval } from "./approval_render.ts";
import { type Audit, openAudit } from "./audit.ts";
import { builtInGrants } from "./builtin_grants.ts";
import { type CallResults, callResultsIn, REMEMBERED_MS } from "./call_results.ts";
import { callUse } from "./call_use.ts";
import { Calls } from "./calls.ts";
import { loadTools, type Tools } from "./catalog.ts";
import { courierTo, type Gateway } from "./courier.ts";
import type { Executors } from "./executors.ts";
import { type Grants, grantsIn, type LoadedGrants } from "./grant_files.ts";
import { endOpenStarts, foldStarts, type OpenStarts, restoreQuestions } from "./recovery.ts";
import type { Runtime } from "./runtime/plan.ts";
import { type StopSwitch, stopSwitchAt } from "./stop_switch.ts";
import { foldSession, type Sessions, sessionsIn, type SessionState } from "./taint.ts";
import { type Watch, watchOf } from "./watch.ts";

export type HousePorts = Pick<Executors, "runtime" | "memory" | "egress" | "secret"> & {
  readonly home: string;
  readonly config: BrokerdConfig;
  readonly disk: Disk;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Ends the process; does not return. */
  readonly fatal: (detail: string) => void;
  readonly gateway: Gateway;
  /** egressd's own word on itself; a failure when it does not answer. */
  readonly egressStatus: () => Promise<Result<string>>;
  readonly startedUnixMs: number;
  /** Folder of the built tool image. */
  readonly imageFolder: string;
  /** Real paths that no grant may touch. */
  readonly forbidden: readonly string[];
};

export interface House {
  readonly ports: HousePorts;
  readonly audit: Audit;
  readonly tools: Tools;
  readonly grants: Grants;
  readonly sessions: Sessions;
  readonly results: CallResults;
  readonly stop: StopSwitch;
  readonly watch: Watch;
  readonly calls: Calls;
  readonly approvals: Approvals;
  readonly runtime: Runtime;
  /** What the owner is asked, as lines. */
  render(approval: Approval): readonly string[];
  /** Stops everything; how many calls were ended. */
  halt(via: "owner" | "gateway" | "broker", why: string, witness: AuditHead | null): Result<number>;
  resume(): Result<unknown>;
  /** Fails with `audit-broken`, and stops everything, when a caller knows a head that we do not. */
  checkWitness(witness: AuditHead | null): Result<null>;
  refused(socket: string, what: string): void;
  close(): Promise<void>;
}

/** Opens the house. Fails with `audit-broken` or a code of the disk; then nothing may be served. */
export function openHouse(given: HousePorts): Result<House> {
  const ports = { ...given, disk: endingDisk(given.disk, given.fatal) };
  const { home, disk, clock } = ports;
  for (const name of ["results", "sessions", "approvals"]) {
    const made = makeFolders(disk, `${home}/broker/${name}`);
    if (!made.ok) return made;
  }
  const replayed = new Map<SessionId, SessionState>();
  const starts: OpenStarts = new Map();
  const told: Told = new Map();
  let said: "stop" | "resume" | null = null;
  const use = callUse(clock);
  const audit = openAudit(ports, `${home}/audit`, (record) => {
    foldSession(replayed, record);
    foldStarts(starts, record);
    foldAnswers(told, record);
    if (record.kind === "stop" || record.kind === "resume") said = record.kind;
    use.replay(record);
  });
  if (!audit.ok) return audit;
  const forgetUnixMs = Math.min(clock.nowUnixMs() - REMEMBERED_MS, audit.value.formerUnixMs);
  const results = callResultsIn(disk, `${home}/broker/results`, forgetUnixMs);
  // Not the clock alone: it may be behind at a start and right soon after.
  const bornUnixMs = Math.max(clock.nowUnixMs(), audit.value.lastUnixMs);
  const sessions = sessionsIn(ports, audit.value, replayed, bornUnixMs);
  if (!results.ok) return results;
  const parts = { ports, audit: audit.value, results: results.value, sessions };
  const ended = endOpenStarts(starts, parts);
  if (!ended.ok) return ended;
  const stop = stopSwitchAt(disk, `${home}/broker/stopped.json`, said);
  const rotated = stop.isStopped() ? ok(null) : audit.value.rotateIfDue();
  if (!rotated.ok) return rotated;
  const tools = loadTools(disk, ports.imageFolder, ports.config.runtime.images);
  return assemble({
    ...parts,
    tools,
    use,
    told,
    stop,
    grants: grantsOf(ports, audit.value, tools),
  });
}

function grantsOf(ports: HousePorts, audit: Audit, tools: Tools): Grants {
  const builtIn = builtInGrants(ports.config.memory.identity_writes);
  const record = (loaded: LoadedGrants) => {
    if (loaded.problems > 0) {
      ports.log.warn(`grants-invalid: ${loaded.problems} problems; see bxctl grants check`);
    }
    return audit.append({
      kind: "grants",
      files: [...loaded.files],
      built_in: builtIn.map(({ name, sha256 }) => ({ name, sha256 })),
      problems: loaded.problems,
    });
  };
  return grantsIn({
    disk: ports.disk,
    folder: `${ports.home}/grants`,
    roots: ports.config.paths.roots,
    forbidden: ports.forbidden,
    secrets: new Set(Object.keys(ports.config.secrets)),
    tools,
    builtIn,
    defaultLimits: ports.config.limits,
  }, record);
}

type Parts =
  & Pick<House, "ports" | "audit" | "results" | "sessions" | "tools" | "grants" | "stop">
  & { readonly use: ReturnType<typeof callUse>; readonly told: Told };

function assemble(parts: Parts): Result<House> {
  const { ports, audit, sessions, stop } = parts;
  const { clock, config, home, random } = ports;
  const watch = watchOf(random.bytes(8).toHex());
  const courier = courierTo(ports.gateway, clock);
  const render = (approval: Approval) =>
    renderApproval(approval, sessions.find(approval.plan.session)?.raises ?? []);
  const calls = new Calls({
    ...ports,
    ...parts,
    watch,
    executors: {
      ...ports,
      tools: parts.tools,
      record: audit.append,
      stagesEdits: config.memory.identity_writes === "staged",
    },
    defaults: config.limits,
    concurrent: config.runtime.concurrent,
    log: (line) => ports.log.error(line),
    onAsked: (approval) => courier.ask(approval, render(approval)),
  });
  const approvals = approvalsIn({
    ...ports,
    audit,
    folder: `${home}/broker/approvals`,
    expiresMs: config.approvals.expires_s * 1_000,
    perHour: config.approvals.per_hour,
    told: parts.told,
    onClosed: (approval) => {
      courier.closed(approval);
      calls.onClosed(approval);
    },
    onThrottled: (session) => {
      const detail = `${session} asked more than ${config.approvals.per_hour} times in an hour`;
      audit.append({ kind: "alarm", code: "throttled", detail, witness: null });
      courier.notice(`throttled-${clock.nowUnixMs()}`, detail);
    },
  });
  if (!approvals.ok) return approvals;
  calls.useApprovals(approvals.value);
  restoreQuestions(approvals.value, calls);
  const tidied = approvals.value.forgetOld();
  if (!tidied.ok) return tidied;
  for (const open of approvals.value.list("pending")) courier.ask(open, render(open));
  courier.tellHeads(audit);
  parts.grants.current();
  const rest = { watch, calls, approvals: approvals.value, runtime: ports.runtime, render };
  return ok({
    ...parts,
    ...rest,
    ...switches({ ports, audit, stop, calls }, courier.notice),
    refused: refusals(audit, clock, ports.log),
    async close() {
      approvals.value.close();
      courier.close();
      await calls.close();
      audit.close();
    },
  });
}

function switches(
  { ports, audit, stop, calls }: Pick<House, "ports" | "audit" | "stop" | "calls">,
  notice: (id: string, text: string) => void,
): Pick<House, "halt" | "resume" | "checkWitness"> {
  const { clock, runtime } = ports;
  const halt: House["halt"] = (via, why, witness) => {
    // The switch holds from here on, whatever becomes of its file and its record.
    const kept = stop.stop(why, clock.nowUnixMs(), witness);
    const ended = calls.endAll();
    runtime.killAll();
    const said = audit.append({ kind: "stop", via, why, ended });
    if (!kept.ok) return kept;
    return said.ok ? ok(ended) : said;
  };
  return {
    halt,
    resume() {
      const said = audit.append({ kind: "resume" });
      return said.ok ? stop.resume(clock.nowUnixMs()) : said;
    },
    checkWitness(witness) {
      if (witness === null || audit.holds(witness)) return ok(null);
      const known = stop.witness();
      const isKnown = known?.n === witness.n && known.hash === witness.hash;
      if (isKnown && !stop.isStopped()) return ok(null);
      const detail =
        `loopd was shown record ${witness.n} as ${witness.hash}, which this log does not hold`;
      if (!isKnown) {
        audit.append({ kind: "alarm", code: "audit-broken", detail, witness });
        halt("broker", `audit-broken: ${detail}`, witness);
        notice(`audit-broken-${witness.n}`, detail);
        ports.log.error(`audit-broken: ${detail}`);
      }
      return err("audit-broken", detail);
    },
  };
}

const REFUSALS_A_MINUTE = 30;

/** Records refused requests; a flood of them fills the role's log, not the audit log. */
function refusals(audit: Audit, clock: Clock, log: Log): House["refused"] {
  let minute = 0;
  let count = 0;
  return (socket, what) => {
    log.warn(`${socket}: ${what}`);
    const now = Math.floor(clock.nowUnixMs() / 60_000);
    if (now !== minute) count = 0;
    minute = now;
    if (++count > REFUSALS_A_MINUTE) return;
    audit.append({ kind: "refused", socket, what: what.toWellFormed().slice(0, 1_000) });
  };
}
