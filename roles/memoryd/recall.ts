// Recall: what a search found, as the model sees it and as the owner sees it. Found text is data with
// its source and label; the result carries the join of all it shows, and at least `private`.
import { z } from "zod";
import { isoTime } from "../../shared/clock/clock.ts";
import { join, type Label, SESSION_START } from "../../shared/labels/label.ts";
import { escapeForDisplay } from "../../shared/text/escape.ts";
import type { RecallHit } from "../../shared/wire/memory.ts";
import type { Hit, Hits } from "./index_messages.ts";
import { NOTES_LOG } from "./index_db.ts";

export const RecallArguments = z.strictObject({
  query: z.string().min(1).max(500),
  k: z.int().min(1).max(10).default(5),
});

/** Where a text stands: `session <id> epoch <e> record <n>` or `notes.md entry <n>`. */
export function sourceOf(hit: Hit): string {
  if (hit.log === NOTES_LOG) return `notes.md entry ${hit.record}`;
  const [session, epoch] = hit.log.split("/");
  return `session ${session} epoch ${epoch} record ${hit.record}`;
}

/** Entries that left identity are `identity`; the rest is experience, trusted or not. */
function tagOf(hit: Hit): RecallHit["tag"] {
  if (hit.tag === "identity") return "identity";
  return hit.untrusted ? "memory-tainted" : "memory";
}

/** The least label that covers everything in a result. */
export function labelOf(hits: readonly Hit[]): Label {
  return hits.reduce((label, hit) => join(label, hit), SESSION_START);
}

function place(hit: Hit): string {
  const minute = isoTime(hit.time_unix_ms).slice(0, 16).replace("T", " ") + " UTC";
  return hit.log === NOTES_LOG
    ? `${sourceOf(hit)}, ${hit.who}, ${minute}`
    : `session ${hit.log.split("/")[0]}, ${minute}, ${hit.who}`;
}

/**
 * The result of the recall tool: numbered hits, best first, each under its source and label. A line of
 * a text that looks like the head of a hit gets a backslash.
 */
export function recallText(query: string, { hits, partial }: Hits): string {
  const lines = hits.map((hit, i) => {
    const trust = hit.untrusted ? " · untrusted" : "";
    const text = hit.snippet.replace(/^(\s*)(?=[[［]\p{Nd})/gmu, "$1\\");
    return `[${i + 1}] ${tagOf(hit)} · ${place(hit)} · ${hit.class}${trust}\n${text}`;
  });
  if (hits.length === 0) lines.push(`(no matches for "${escapeForDisplay(query, "line")}")`);
  if (partial) lines.push("(the index is being rebuilt: something may be missing)");
  return lines.join("\n");
}

/** A hit as the owner's own search shows it. */
export function ownerHit(hit: Hit): RecallHit {
  const { log: _log, record: _record, part: _part, ...shown } = hit;
  return { ...shown, tag: tagOf(hit), source: sourceOf(hit) };
}
