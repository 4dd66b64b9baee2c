// From the records of a session's log to the texts that can be found, each under the label in force
// where it stands. Tool results and reasoning are not among them: they are the bulk of every log, and
// the way planted text comes in; they only raise the label of what follows.
import { z } from "zod";
import { join, type Label } from "../../shared/labels/label.ts";
import type { LoggedCall, SessionRecord } from "../../shared/session_log/records.ts";
import { parseJson } from "../../shared/wire/codec.ts";
import type { Row } from "./index_db.ts";

/** Their effects stand in notes.md; as texts they would only be found by their own questions. */
const UNINDEXED = ["recall", "memory", "call_tool"];

const Indirect = z.strictObject({ name: z.string(), arguments: z.string() });

/** The label after a record that stands under `label`. */
export function labelAfter(label: Label, record: SessionRecord): Label {
  return record.kind === "label" || record.kind === "tool_result" ? join(label, record) : label;
}

/** The texts that record number `n` of `log`, which stands under `label`, lets be found. */
export function rowsOf(log: string, n: number, label: Label, record: SessionRecord): Row[] {
  const row = (part: number, who: string, text: string, own: Label = label): Row => ({
    log,
    record: n,
    part,
    time_unix_ms: record.time_unix_ms,
    who,
    tag: "experience",
    class: own.class,
    untrusted: own.untrusted,
    text,
  });
  if (record.kind === "user") return [row(0, "the owner said", record.content)];
  if (record.kind === "tool_summary") {
    return [row(0, `summary of ${record.tool}`.slice(0, 64), record.content, record)];
  }
  if (record.kind !== "assistant") return [];
  return [
    row(0, "the assistant said", record.content),
    ...record.tool_calls.map((call, i) => row(i + 1, "the assistant called", callText(call))),
  ];
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
