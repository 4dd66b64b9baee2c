// What a record of a session says to a person, whether on a terminal or on a page. Pure; nothing is
// escaped here, which is for whoever shows it.
import { isoTime } from "../../shared/clock/clock.ts";
import { labelText } from "../../shared/labels/label.ts";
import { assertNever } from "../../shared/results/result.ts";
import type { SessionRecord } from "../../shared/session_log/records.ts";

export interface RecordView {
  /** Words that name its kind: owner, assistant, tool, no (for one that was not done), label, notice, cache. */
  readonly kind: string;
  readonly head: string;
  readonly texts: readonly string[];
  readonly thought?: string;
}

/** The view of a record; null for one that is no part of the conversation. */
export function recordView(one: SessionRecord): RecordView | null {
  const at = isoTime(one.time_unix_ms);
  switch (one.kind) {
    case "user":
      return { kind: "owner", head: `${at} owner`, texts: [one.content] };
    case "assistant": {
      const texts = [one.content, ...one.tool_calls.map((c) => `calls ${c.name} ${c.arguments}`)];
      const thought = one.reasoning_content;
      return { kind: "assistant", head: `${at} assistant`, texts, thought };
    }
    case "tool_result": {
      const audit = one.audit === null ? "not asked of brokerd" : `audit record ${one.audit.n}`;
      const how = one.code === null ? one.outcome : `${one.outcome}: ${one.code}`;
      const head = `${at} ${one.tool}: ${how}; ${labelText(one)}; ${audit}`;
      return { kind: one.outcome === "done" ? "tool" : "tool no", head, texts: [one.content] };
    }
    case "label":
      return { kind: "label", head: `${at} from here on ${labelText(one)}`, texts: [one.why] };
    case "notice":
      return { kind: "notice", head: `${at} notice ${one.code}`, texts: [one.text] };
    case "cache_loss": {
      const head = `${one.reused} of ${one.expected} tokens reused: ${one.guess}`;
      return { kind: "cache", head, texts: [] };
    }
    case "open":
    case "tool_summary":
    case "turn_end":
      return null;
    default:
      return assertNever(one);
  }
}
