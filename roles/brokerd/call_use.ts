// How often each tool was let through, in a session's present turn and on each day (UTC). The counts are
// taken from the audit log at start: neither a restart nor a clock that jumps forgives anything.
import { type Clock, isoTime } from "../../shared/clock/clock.ts";
import type { SessionId, TurnId } from "../../shared/ids/ids.ts";
import type { AuditRecord } from "./audit_records.ts";

type Who = { readonly session: SessionId; readonly turn: TurnId; readonly tool: string };

export interface CallUse {
  of(who: Who): { readonly turn: number; readonly day: number };
  count(who: Who): void;
  /** Takes a record of an earlier life into account. */
  replay(record: AuditRecord): void;
}

export function callUse(clock: Clock): CallUse {
  const turns = new Map<SessionId, { turn: TurnId; counts: Map<string, number> }>();
  /** Day and tool -> calls. */
  const days = new Map<string, number>();
  const now = () => isoTime(clock.nowUnixMs());
  const dayOf = (tool: string, time: string) => `${time.slice(0, 10)} ${tool}`;
  const turnOf = ({ session, turn }: Who) => {
    const known = turns.get(session);
    if (known?.turn === turn) return known.counts;
    const counts = new Map<string, number>();
    turns.set(session, { turn, counts });
    return counts;
  };
  const more = (counts: Map<string, number>, key: string) =>
    counts.set(key, (counts.get(key) ?? 0) + 1);
  const count = (who: Who, time: string) => {
    more(turnOf(who), who.tool);
    more(days, dayOf(who.tool, time));
  };
  return {
    of: (who) => ({
      turn: turnOf(who).get(who.tool) ?? 0,
      day: days.get(dayOf(who.tool, now())) ?? 0,
    }),
    count: (who) => count(who, now()),
    replay(record) {
      if (record.kind === "start") count(record, record.time);
    },
  };
}
