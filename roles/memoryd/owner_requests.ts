// What memoryd answers bxctl about the memory files: the journal, undo, review, purge, counts.
import { mustEnd } from "../../shared/disk/durable.ts";
import { err, ok, type Result } from "../../shared/results/result.ts";
import { canonicalText, encodeUtf8 } from "../../shared/wire/codec.ts";
import { on, type Route } from "../../shared/wire/listen.ts";
import {
  MEMORY_LOG,
  MEMORY_OVERVIEW,
  MEMORY_PURGE,
  MEMORY_REVIEW,
  MEMORY_SHOW,
  MEMORY_STAGED,
  MEMORY_UNDO,
} from "../../shared/wire/memory.ts";
import { characters, LIMITS, textOf } from "./entries.ts";
import type { Staged } from "./owner_acts.ts";
import type { Parts } from "./requests.ts";

const MOST_FOUND = 50;

/** Ends the process when the disk's state is unknown, so that nobody is answered. */
export function sure<T>(parts: Parts, result: Result<T>): Result<T> {
  return !result.ok && mustEnd(result) ? parts.end(result) : result;
}

/** The part of owner-memory/admin that is about the files. */
export function fileRoutes(parts: Parts): Route[] {
  const { store } = parts;
  return [
    on(MEMORY_LOG, ({ limit }) => {
      const lines = store.history();
      if (!lines.ok) return lines;
      const shown = lines.value.slice(-limit).map(
        ({ n, time_unix_ms, kind, file, action, session }) => ({
          ...{ n, time_unix_ms, kind, action, session },
          file: file === null ? null : `${file}.md`,
        }),
      );
      return ok({ kind: "memory_lines", body: { lines: shown } });
    }),
    on(MEMORY_SHOW, async ({ n }, io) => {
      const lines = store.history();
      if (!lines.ok) return lines;
      const line = lines.value.find((one) => one.n === n);
      if (line === undefined) return err("file-missing", `The journal has no line ${n}`);
      await io.chunk(encodeUtf8(canonicalText(line)));
      return ok({ kind: "memory_shown", body: {} });
    }),
    on(MEMORY_UNDO, ({ file }) => {
      const text = sure(parts, store.undo(file));
      if (!text.ok) return text;
      const body = { file, characters: characters(text.value), limit: LIMITS[file] };
      return ok({ kind: "memory_undone", body });
    }),
    on(MEMORY_STAGED, async ({ call }, io) => {
      const staged = store.staged();
      if (!staged.ok) return staged;
      const one = staged.value.find((waiting) => waiting.call === call);
      if (call !== null && one === undefined) {
        return err("memory-not-staged", `No edit ${call} waits for review`);
      }
      if (one !== undefined) await io.chunk(encodeUtf8(previewText(parts, one)));
      const list = staged.value.slice(0, 1_000).map((waiting) => {
        const { session, time_unix_ms, edit: { action, file } } = waiting;
        return { call: waiting.call, session, time_unix_ms, action, file };
      });
      return ok({ kind: "memory_waiting", body: { staged: list } });
    }),
    on(MEMORY_REVIEW, ({ call, decision }) => {
      const done = sure(parts, store.review(call, decision));
      if (!done.ok) return done;
      void parts.index.update(null);
      return ok({ kind: "memory_reviewed", body: {} });
    }),
    on(MEMORY_PURGE, async ({ session, why, mode }, io) => {
      const isHidden = mode === "hide";
      const found = sure(parts, isHidden ? store.purge(session, why) : store.broughtBy(session));
      if (isHidden) {
        // Also after a failure, which may have come when the list held the purge.
        await parts.index.update(session);
        await parts.index.update(null);
        // Nothing finds it any more; a new file keeps no trace of it in pages that are free.
        void parts.index.reindex(() => {}).then((made) => {
          if (!made.ok) parts.warn(`After the purge: ${made.code}: ${made.detail}`);
        });
      }
      if (!found.ok) return found;
      const { entries, notes } = found.value;
      await io.chunk(encodeUtf8(canonicalText({ entries, notes })));
      const counts = { entries: entries.length, notes: notes.length };
      return ok({ kind: "memory_purged", body: { ...counts, is_hidden: isHidden } });
    }),
    on(MEMORY_OVERVIEW, () => {
      const staged = store.staged();
      if (!staged.ok) return staged;
      const purged = store.purged();
      if (!purged.ok) return purged;
      const recalls = store.recalls(MOST_FOUND);
      if (!recalls.ok) return recalls;
      const waiting = { staged: staged.value.length, purged_sessions: purged.value.sessions.size };
      return ok({ kind: "memory_seen", body: { ...waiting, ...recalls.value } });
    }),
  ];
}

/** A staged edit, and what applying it to its file as it is would come to. */
function previewText(parts: Parts, { edit, session, call, label }: Staged): string {
  const made = parts.store.judged(edit, { session, call, label });
  const outcome = made.ok
    ? { before: made.value.before, after: textOf(made.value.entries) }
    : { problem: `${made.code}: ${made.detail}` };
  return canonicalText({ edit, label, ...outcome });
}
