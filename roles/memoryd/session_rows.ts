// From the records of a session's log to the texts that can be found, each under the label in force
// where it stands. Tool results and reasoning are not among them: they are the bulk of every log, and
// the way planted text comes in; they only raise the label of what follows.
import { z } from "zod";
import { classWithin, type DataClass, join, type Label } from "../../shared/labels/label.ts";
import { assertNever } from "../../shared/results/result.ts";
import type { LoggedCall, SessionRecord } from "../../shared/session_log/records.ts";
import { parseJson } from "../../shared/wire/codec.ts";
import type { Row } from "./index_db.ts";

/** Their effects stand in notes.md; as texts they would only be found by their own questions. */
const UNINDEXED = ["recall", "memory", "call_tool"];

const Indirect = z.strictObject({ name: z.string(), arguments: z.string() });

/** The label after record number `n`, and the texts it holds that are within `maxClass`. */
export function walk(
  before: Label,
  record: SessionRecord,
  n: number,
  maxClass: DataClass,
): { readonly label: Label; readonly rows: readonly Row[] } {
  const row = (part: number, who: string, text: string, label = before): Row[] => {
    if (text.trim() === "" || !classWithin(label.class, maxClass)) return [];
    const timeUnixMs = record.time_unix_ms;
    return [{ record: n, part, timeUnixMs, who, tag: "experience", label, text }];
  };
  switch (record.kind) {
    case "user":
      return { label: before, rows: row(0, "the owner said", record.content) };
    case "assistant": {
      const calls = record.tool_calls.flatMap((call, i) =>
        row(i + 1, "the assistant called", callText(call))
      );
      return { label: before, rows: [...row(0, "the assistant said", record.content), ...calls] };
    }
    case "tool_summary": {
      const own = { class: record.class, untrusted: record.untrusted };
      return {
        label: before,
        rows: row(0, `summary of ${record.tool}`.slice(0, 64), record.content, own),
      };
    }
    case "label":
    case "tool_result":
      return { label: join(before, record), rows: [] };
    case "open":
    case "cache_loss":
    case "notice":
    case "turn_end":
    case "epoch_end":
      return { label: before, rows: [] };
    default:
      return assertNever(record);
  }
}

/** `read_file {"path":"/srv/notes"}`; a call through `call_tool` as the call it carries. */
function callText(call: LoggedCall): string {
  if (call.name === "call_tool") {
    const carried = parseJson(call.arguments);
    const parsed = Indirect.safeParse(carried.ok ? carried.value : null);
    if (parsed.success) return callText({ ...call, ...parsed.data });
  }
  return UNINDEXED.includes(call.name) ? "" : `${call.name} ${call.arguments}`;
}
