// What an earlier life of brokerd left undone, found by comparing the audit log with the files.
//
// 1. A call that began and has no end: its outcome is what its file says, else unknown. It is never
//    run again.
// 2. A question that still waits goes on waiting; an answer that nothing followed yet takes effect.
import type { CallId } from "../../shared/ids/ids.ts";
import { ok, type Result } from "../../shared/results/result.ts";
import type { Approvals } from "./approvals.ts";
import type { Audit } from "./audit.ts";
import type { AuditRecord } from "./audit_records.ts";
import { type CallResults, emptyResult, type StoredResult } from "./call_results.ts";
import { type Calls, recordResult } from "./calls.ts";
import { REASONS } from "./reasons.ts";
import type { Sessions } from "./taint.ts";

type Start = Extract<AuditRecord, { kind: "start" }>;
/** Calls that began and did not end, by what the audit log says. */
export type OpenStarts = Map<CallId, Start>;

export function foldStarts(starts: OpenStarts, record: AuditRecord): void {
  if (record.kind === "start") starts.set(record.call, record);
  else if (record.kind === "result") starts.delete(record.call);
}

/** Gives every begun call its outcome; before anything is served. */
export function endOpenStarts(
  starts: OpenStarts,
  parts: { readonly audit: Audit; readonly results: CallResults; readonly sessions: Sessions },
): Result<number> {
  for (const start of starts.values()) {
    const stored = parts.results.load(start.call);
    // A file that cannot be read says as little as one that is not there.
    const result = stored.ok && stored.value !== null ? stored.value : unknownResult(start);
    const saved = parts.results.save(result);
    if (!saved.ok) return saved;
    const said = recordResult(parts.audit, parts.sessions, result);
    if (!said.ok) return said;
  }
  return ok(starts.size);
}

function unknownResult(start: Start): StoredResult {
  return {
    ...emptyResult(start, "unknown", "outcome_unknown", REASONS.outcome_unknown),
    is_cut: true,
    container: start.where === "container" ? `bx-${start.call}` : null,
    image: start.image,
  };
}

/** Takes up the questions of the week, oldest first; of several for one call, only the last. */
export function restoreQuestions(approvals: Approvals, calls: Calls): void {
  const all = approvals.list("all").toReversed();
  const last = new Map(all.map((one) => [one.plan.call, one]));
  for (const approval of last.values()) calls.restore(approval);
}
