// memoryd's double for tests of loopd: the memory block, and a list of who was told of what.
import { err, ok } from "../../shared/results/result.ts";
import { listen, type Listening, on } from "../../shared/wire/listen.ts";
import { MEMORY_BLOCK, SESSION_UPDATED } from "../../shared/wire/memory.ts";

export type MemoryDouble = {
  readonly updated: readonly string[];
  /** What the next block says; null refuses it. */
  block(text: string | null): void;
  stop(): Promise<void>;
};

export function startMemoryDouble(path: string): MemoryDouble {
  const updated: string[] = [];
  let block: string | null = "# memory.md\n(empty)";
  const server: Listening = listen({
    path,
    log: () => {},
    routes: [
      on(MEMORY_BLOCK, async (_body, io) => {
        if (block === null) return err("memory-unavailable", "soul.md is over its limit");
        await io.chunk(new TextEncoder().encode(block));
        return ok({ kind: "memory_block_reply", body: { omitted: [] } });
      }),
      on(SESSION_UPDATED, ({ session }) => {
        updated.push(session);
        return ok({ kind: "ok", body: {} });
      }),
    ],
  });
  let stopped: Promise<void> | null = null;
  const stop = () => stopped ??= server.close();
  return { updated, block: (text) => void (block = text), stop };
}
