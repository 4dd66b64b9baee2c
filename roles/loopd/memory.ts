// memoryd as loopd asks it: the memory block of a new session, and a word when a turn has ended.
import type { SessionId } from "../../shared/ids/ids.ts";
import { err, ok, type Result } from "../../shared/results/result.ts";
import { joinBytes } from "../../shared/wire/chunks.ts";
import { decodeUtf8 } from "../../shared/wire/codec.ts";
import { call } from "../../shared/wire/dial.ts";
import { MEMORY_BLOCK, SESSION_UPDATED } from "../../shared/wire/memory.ts";

/** `omitted`: entries that were left out, one line each, for the owner. */
type MemoryBlock = { readonly text: string; readonly omitted: readonly string[] };

export type Memory = ReturnType<typeof makeMemory>;

/** `signal` aborts when the process stops; nothing is waited for then. */
export function makeMemory(path: string, log: (line: string) => void, signal: AbortSignal) {
  return {
    /** Fails with `memory-unavailable` alone. */
    async block(): Promise<Result<MemoryBlock>> {
      const pieces: Uint8Array[] = [];
      const onChunk = (bytes: Uint8Array) => void pieces.push(bytes);
      const reply = await call(path, MEMORY_BLOCK, {}, { onChunk, signal });
      if (!reply.ok) {
        const why = reply.code === "memory-unavailable" ? "" : `${reply.code}: `;
        return err("memory-unavailable", `${why}${reply.detail}`);
      }
      const text = decodeUtf8(joinBytes(pieces));
      if (!text.ok) return err("memory-unavailable", text.detail);
      const omitted = reply.value.body.omitted.map((one) => `${one.file}: ${one.reason}`);
      return ok({ text: text.value, omitted });
    },
    /** Best effort; memoryd catches up when it starts. */
    async updated(session: SessionId): Promise<void> {
      const reply = await call(path, SESSION_UPDATED, { session }, { signal });
      if (!reply.ok) log(`memoryd was not told of ${session}: ${reply.code}: ${reply.detail}`);
    },
  };
}
