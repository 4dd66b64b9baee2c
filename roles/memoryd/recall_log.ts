// The log of recalls, `recalls/YYYY-MM.jsonl`: one line for every recall of the model. How often a text
// was found is counted from it, so that counts survive a new index.
import { z } from "zod";
import type { Disk } from "../../shared/disk/disk.ts";
import { attempt, readWhole } from "../../shared/disk/durable.ts";
import { CallId, SessionId } from "../../shared/ids/ids.ts";
import { ok, type Result } from "../../shared/results/result.ts";
import { canonicalText, decodeLossy, parseJson } from "../../shared/wire/codec.ts";
import type { BodyOf } from "../../shared/wire/exchange.ts";
import type { MEMORY_OVERVIEW } from "../../shared/wire/memory.ts";
import { appendText } from "./append.ts";
import { monthOf } from "./journal.ts";

export const RecallLine = z.strictObject({
  time_unix_ms: z.int().min(0),
  session: SessionId,
  call: CallId,
  query: z.string(),
  /** The sources of the hits, best first. */
  hits: z.array(z.string()),
});
export type RecallLine = z.output<typeof RecallLine>;

/** Counts of recalls, and the texts that were found most often, most often first. */
export type Recalls = Pick<
  BodyOf<(typeof MEMORY_OVERVIEW.replies)[0]>,
  "recalls" | "in_vain" | "found"
>;

const MAX_BYTES = 268_435_456;

/** Appends a line, whole whatever was cut short before it. */
export function logRecall(disk: Disk, folder: string, line: RecallLine): Result<number> {
  const path = `${folder}/${monthOf(line.time_unix_ms)}.jsonl`;
  return appendText(disk, path, `\n${canonicalText(line)}`);
}

/** Counts all recalls; a line that a crash cut short is passed over. */
export function countRecalls(disk: Disk, folder: string, most: number): Result<Recalls> {
  const names = attempt(() => disk.list(folder));
  if (!names.ok) return names;
  const found = new Map<string, Recalls["found"][number]>();
  let recalls = 0;
  let inVain = 0;
  for (const { name } of names.value) {
    const bytes = readWhole(disk, `${folder}/${name}`, MAX_BYTES);
    if (!bytes.ok) return bytes;
    for (const text of decodeLossy(bytes.value).split("\n")) {
      const value = parseJson(text);
      const line = RecallLine.safeParse(value.ok ? value.value : null);
      if (!line.success) continue;
      recalls++;
      if (line.data.hits.length === 0) inVain++;
      for (const source of line.data.hits) {
        const hits = (found.get(source)?.hits ?? 0) + 1;
        found.set(source, { source, hits, last_unix_ms: line.data.time_unix_ms });
      }
    }
  }
  const order = [...found.values()].sort((a, b) => b.hits - a.hits).slice(0, most);
  return ok({ recalls, in_vain: inVain, found: order });
}
