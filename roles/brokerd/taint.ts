// Each session's label: how confidential and how trusted what it has seen is.
//
// 1. A label only goes up. Nobody lowers it, and a session that was never opened has none.
// 2. The audit log comes first, the file after it; at start the log's word is joined to the file's,
//    so that a crash between the two never leaves a label lower than what was read.
// 3. Whatever became of its file, a label is built again from the whole audit log, older months too;
//    so a session that was opened once is never opened anew.
import { z } from "zod";
import { isoTime } from "../../shared/clock/clock.ts";
import type { Clock } from "../../shared/clock/clock.ts";
import type { Disk } from "../../shared/disk/disk.ts";
import { attempt, readWhole, replaceFile } from "../../shared/disk/durable.ts";
import { SessionId, ulidUnixMs } from "../../shared/ids/ids.ts";
import { equalLabel, join, Label, SESSION_START } from "../../shared/labels/label.ts";
import { err, ok, type Result } from "../../shared/results/result.ts";
import { encodeCanonical } from "../../shared/wire/codec.ts";
import type { BodyOf } from "../../shared/wire/exchange.ts";
import type { SESSION_OPEN } from "../../shared/wire/loop_broker.ts";
import type { Audit } from "./audit.ts";
import type { AuditRecord } from "./audit_records.ts";
import { storedAs } from "./stored.ts";

const PREFIX = { main: "mm-", chat: "chat-", job: "job-", run: "run-" } as const;

export const SessionState = z.strictObject({
  v: z.literal(1),
  session: SessionId,
  as: z.enum(["main", "chat", "job", "run"]),
  job: z.string().nullable(),
  workspace: z.string().nullable(),
  label: Label,
  /** What raised the label, oldest first. */
  raises: z.array(z.strictObject({ time: z.string(), label: Label, why: z.string() })),
});
export type SessionState = z.output<typeof SessionState>;

type Opening = BodyOf<(typeof SESSION_OPEN)["request"]>;

/** Adds what one audit record says about a session. Pure but for `states`. */
export function foldSession(states: Map<SessionId, SessionState>, record: AuditRecord): void {
  if (record.kind === "session") {
    const { session, as, job, workspace, label } = record;
    const before = states.get(session);
    const raises = before?.raises ?? [];
    const joined = join(label, before?.label ?? label);
    states.set(session, { v: 1, session, as, job, workspace, label: joined, raises });
  } else if (record.kind === "raise" || record.kind === "result") {
    const before = states.get(record.session);
    if (before === undefined) return;
    const after = record.kind === "raise"
      ? lifted(before, record.label, record.why, record.time)
      : lifted(before, record.session_label, `call ${record.call}`, record.time);
    states.set(record.session, after);
  }
}

function lifted(state: SessionState, label: Label, why: string, time: string): SessionState {
  const after = join(state.label, label);
  if (equalLabel(after, state.label)) return state;
  return { ...state, label: after, raises: [...state.raises, { time, label: after, why }] };
}

export interface Sessions {
  /** Opens a session, or confirms one that was opened as the same. `session-refused` otherwise. */
  open(opening: Opening): Result<SessionState>;
  /** The session's state, null when it was never opened. */
  find(session: SessionId): SessionState | null;
  /** Raises a label and records why; says nothing when it is that high already. */
  raise(session: SessionId, label: Label, why: string): Result<SessionState>;
  /** Raises a label for a reason that the log holds already. */
  absorb(session: SessionId, label: Label, why: string): Result<SessionState>;
}

type SessionPorts = { readonly disk: Disk; readonly clock: Clock; readonly home: string };

type Rise = Parameters<Sessions["raise"]>;

/** What the whole log says; it is read once in a life, and only for an id that may be older than that. */
function teller(
  clock: Clock,
  audit: Audit,
  replayed: Map<SessionId, SessionState>,
  bornUnixMs: number,
) {
  let whole: Map<SessionId, SessionState> | null = null;
  return (session: SessionId): SessionState | null => {
    // The file with a session's opening, and every later one, has been replayed.
    const known = replayed.get(session);
    if (known !== undefined) return known;
    // An id that says it is of the future may be of any time.
    const madeUnixMs = session.startsWith(PREFIX.main) ? 0 : ulidUnixMs(session);
    if (madeUnixMs > bornUnixMs && madeUnixMs <= clock.nowUnixMs()) return null;
    if (whole === null) {
      whole = new Map();
      for (const record of audit.records()) foldSession(whole, record);
    }
    return whole.get(session) ?? null;
  };
}

/**
 * `replayed` is what the audit log's newest file says; it is joined to the files as they are read. Nothing
 * that an earlier life opened was made after `bornUnixMs`.
 */
export function sessionsIn(
  ports: SessionPorts,
  audit: Audit,
  replayed: Map<SessionId, SessionState>,
  bornUnixMs: number,
): Sessions {
  const { disk, home } = ports;
  const folder = `${home}/broker/sessions`;
  const live = new Map<SessionId, SessionState>();
  const pathOf = (session: SessionId) => `${folder}/${session}.json`;

  const told = teller(ports.clock, audit, replayed, bornUnixMs);

  function find(session: SessionId): SessionState | null {
    const known = live.get(session);
    if (known !== undefined) return known;
    const stored = storedAs(SessionState, readWhole(disk, pathOf(session), 1_048_576));
    const said = told(session);
    const state = stored !== null && said !== null
      ? lifted(stored, said.label, "told by the audit log", now())
      : stored ?? said;
    if (state === null || state.session !== session) return null;
    live.set(session, state);
    return state;
  }

  const now = () => isoTime(ports.clock.nowUnixMs());
  /** The log has the state already: what a full disk keeps from the file, it makes good at a start. */
  function keep(state: SessionState): Result<SessionState> {
    live.set(state.session, state);
    replaceFile(disk, pathOf(state.session), encodeCanonical(state));
    return ok(state);
  }

  /** `say` records the new label before it counts. */
  function rise([session, label, why]: Rise, say: (label: Label) => Result<unknown>) {
    const state = find(session);
    if (state === null) return err("not-found", `The session ${session} was never opened`);
    const after = lifted(state, label, why, now());
    if (after === state) return ok(state);
    const said = say(after.label);
    return said.ok ? keep(after) : said;
  }

  return {
    find,
    open(opening) {
      const { session, kind: as, job, workspace } = opening;
      const known = find(session);
      if (known !== null) {
        const isSame = known.as === as && known.job === job && known.workspace === workspace;
        return isSame ? ok(known) : err("session-refused", `${session} was opened as ${known.as}`);
      }
      const problem = openingProblem(disk, home, opening);
      if (problem !== null) return err("session-refused", problem);
      const label = SESSION_START;
      const said = audit.append({ kind: "session", session, as, job, workspace, label });
      if (!said.ok) return said;
      return keep({ v: 1, session, as, job, workspace, label, raises: [] });
    },
    raise(...by) {
      const [session, , why] = by;
      return rise(by, (label) => audit.append({ kind: "raise", session, label, why }));
    },
    absorb: (...by) => rise(by, () => ok(null)),
  };
}

/** A job counts only when the owner's file names it; a workspace, when its run was registered. */
function openingProblem(disk: Disk, home: string, opening: Opening): string | null {
  const { session, kind, job, workspace } = opening;
  if (!session.startsWith(PREFIX[kind])) return `${session} is no id of a ${kind} session`;
  if ((kind === "job") !== (job !== null)) {
    return "A job's session names its job, and no other does";
  }
  if (workspace !== null) return "No run of this workspace was registered";
  if (job === null) return null;
  if (!/^[a-z][a-z0-9_]{0,31}$/.test(job) || !session.startsWith(`job-${job}-`)) {
    return `${session} is no id of the job ${job}`;
  }
  const file = attempt(() => disk.stat(`${home}/jobs/${job}.toml`).kind);
  return file.ok && file.value === "file" ? null : `There is no file jobs/${job}.toml`;
}
