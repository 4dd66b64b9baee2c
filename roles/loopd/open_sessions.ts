// Which sessions may hold unfinished work: one empty file a session in `sessions/open/`, made before
// its first record, so that a start looks at these alone and not at every session there ever was.
import { attempt, createIdempotent, makeFolders, removeFile } from "../../shared/disk/durable.ts";
import { SessionId } from "../../shared/ids/ids.ts";
import { ok, type Result } from "../../shared/results/result.ts";
import { durable, type Ports } from "./ports.ts";

/** So many idle sessions keep their mark, as the next message most likely comes to one of them. */
const IDLE_MARKS = 32;

export type OpenSessions = ReturnType<typeof marksOf>;

export function openSessionMarks(ports: Ports, folder: string): Result<OpenSessions> {
  const made = makeFolders(ports.disk, folder);
  const entries = made.ok ? attempt(() => ports.disk.list(folder)) : made;
  if (!entries.ok) return durable(ports, entries);
  const ids = entries.value.flatMap((entry) => {
    const id = SessionId.safeParse(entry.name);
    return id.success ? [id.data] : [];
  });
  return ok(marksOf(ports, folder, new Set(ids)));
}

function marksOf(ports: Ports, folder: string, marked: Set<SessionId>) {
  return {
    list: () => [...marked],
    /** Marks a session durably; a marked one costs nothing. */
    mark(session: SessionId): Result<null> {
      if (marked.has(session)) return ok(null);
      const empty = new Uint8Array();
      const done = createIdempotent(ports.disk, `${folder}/${session}`, empty);
      if (!done.ok) return durable(ports, done);
      marked.add(session);
      return ok(null);
    },
    /** Takes marks off idle sessions when there are many; a failure costs a look at the next start. */
    sweep(isBusy: (session: SessionId) => boolean): void {
      for (const session of marked) {
        if (marked.size <= IDLE_MARKS) return;
        if (isBusy(session)) continue;
        const removed = durable(ports, removeFile(ports.disk, `${folder}/${session}`));
        if (!removed.ok) return ports.log(`open sessions: ${removed.detail}`);
        marked.delete(session);
      }
    },
  };
}
