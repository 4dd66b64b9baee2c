// How often each tool was let through, in a session's present turn and on the present day (UTC).
// The day's count is taken from the audit log at start, so a restart forgives nothing.
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
  let day = "";
  let days = new Map<string, number>();
  const today = () => {
    const now = isoTime(clock.nowUnixMs()).slice(0, 10);
    if (now !== day) {
      day = now;
      days = new Map();
    }
    return days;
  };
  const turnOf = ({ session, turn }: Who) => {
    const known = turns.get(session);
    if (known?.turn === turn) return known.counts;
    const counts = new Map<string, number>();
    turns.set(session, { turn, counts });
    return counts;
  };
  const more = (counts: Map<string, number>, tool: string) =>
    counts.set(tool, (counts.get(tool) ?? 0) + 1);
  return {
    of: (who) => ({ turn: turnOf(who).get(who.tool) ?? 0, day: today().get(who.tool) ?? 0 }),
    count(who) {
      more(turnOf(who), who.tool);
      more(today(), who.tool);
    },
    replay(record) {
      if (record.kind !== "start") return;
      more(turnOf(record), record.tool);
      if (record.time.slice(0, 10) === isoTime(clock.nowUnixMs()).slice(0, 10)) {
        more(today(), record.tool);
      }
    },
  };
}
