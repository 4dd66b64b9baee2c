// memoryd's parts in one process behind their three real sockets, for tests of what it answers.
import { ok } from "node:assert/strict";
import { systemClock } from "../../shared/clock/clock.ts";
import { systemRandom } from "../../shared/clock/random.ts";
import { denoDisk } from "../../shared/disk/deno_disk.ts";
import { ulid } from "../../shared/ids/ids.ts";
import type { Label } from "../../shared/labels/label.ts";
import { encodeUtf8 } from "../../shared/wire/codec.ts";
import { call } from "../../shared/wire/dial.ts";
import type { BodyOf } from "../../shared/wire/exchange.ts";
import { listen } from "../../shared/wire/listen.ts";
import { MEMORY_BLOCK, MEMORY_CALL, SESSION_UPDATED } from "../../shared/wire/memory.ts";
import { openIndex } from "../../roles/memoryd/index_client.ts";
import { openKeeper } from "../../roles/memoryd/index_keeper.ts";
import type { Index } from "../../roles/memoryd/index_messages.ts";
import { startWorker } from "../../roles/memoryd/index_port.ts";
import { openStore } from "../../roles/memoryd/memory_store.ts";
import { brokerRoutes, loopRoutes, ownerRoutes, type Parts } from "../../roles/memoryd/requests.ts";
import { chatId } from "./session_logs.ts";

export const PRIVATE: Label = { class: "private", untrusted: false };
export const TAINTED: Label = { class: "private", untrusted: true };

export type MemoryHouse = {
  readonly home: string;
  block(): Promise<{ text: string; omitted: readonly unknown[] } | string>;
  tool(
    tool: "memory" | "recall",
    args: unknown,
    how?: { label?: Label; staged?: boolean; session?: number },
  ): Promise<{ text: string; code: string | null; label: Label }>;
  updated(session: number): Promise<void>;
  read(name: string): string;
};

/** The keeper without its Worker, which costs a start of its own. */
function indexInProcess(home: string): Index {
  return openKeeper({
    disk: denoDisk,
    clock: systemClock,
    home,
    maxClass: "private",
    log: () => {},
    onStep: () => {},
  });
}

function fail(reason: string): never {
  throw new Error(reason);
}

export function indexInWorker(home: string): Index {
  return openIndex({
    port: startWorker(home),
    clock: systemClock,
    home,
    maxClass: "private",
    log: () => {},
    onLost: fail,
    // A loaded machine may take long to start the Worker; no test is about that.
    lateMs: 120_000,
    stuckMs: 240_000,
  });
}

export async function withMemoryHouse(
  run: (house: MemoryHouse) => Promise<void>,
  indexIn: (home: string) => Index = indexInProcess,
): Promise<void> {
  const home = Deno.makeTempDirSync();
  for (const name of ["sessions", "memory", "index"]) Deno.mkdirSync(`${home}/${name}`);
  const folder = `${home}/memory`;
  const store = openStore(
    { disk: denoDisk, clock: systemClock, random: systemRandom, folder },
    "Hi.",
  );
  ok(store.ok);
  const index = indexIn(home);
  const parts: Parts = {
    store: store.value,
    index,
    clock: systemClock,
    startedUnixMs: 0,
    warn: () => {},
    end: (failure) => fail(failure.detail),
  };
  const servers = [loopRoutes(parts), brokerRoutes(parts), ownerRoutes(parts)]
    .map((routes, i) => listen({ path: `${home}/${i}.sock`, routes, log: () => {} }));
  try {
    await run(houseOf(home, index));
  } finally {
    for (const server of servers) await server.close();
    await index.close();
    store.value.close();
    Deno.removeSync(home, { recursive: true });
  }
}

/** Each act ends when the index knows of it; nothing but a test waits for that. */
function houseOf(home: string, index: Index): MemoryHouse {
  const collect = () => {
    const pieces: string[] = [];
    const onChunk = (bytes: Uint8Array) => void pieces.push(new TextDecoder().decode(bytes));
    return { pieces, onChunk };
  };
  return {
    home,
    block: async () => {
      const { pieces, onChunk } = collect();
      const reply = await call(`${home}/0.sock`, MEMORY_BLOCK, {}, { onChunk });
      if (!reply.ok) return `${reply.code}: ${reply.detail}`;
      return { text: pieces.join(""), omitted: reply.value.body.omitted };
    },
    tool: async (tool, args, how = {}) => {
      const { pieces, onChunk } = collect();
      const body: BodyOf<typeof MEMORY_CALL.request> = MEMORY_CALL.request.shape.body.parse({
        session: chatId(how.session ?? 1),
        call: `c-${ulid(Date.now(), systemRandom)}`,
        tool,
        label: how.label ?? PRIVATE,
        staged: how.staged ?? false,
      });
      const upload = typeof args === "string" ? args : JSON.stringify(args);
      const reply = await call(`${home}/1.sock`, MEMORY_CALL, body, {
        onChunk,
        upload: encodeUtf8(upload),
      });
      ok(reply.ok, reply.ok ? "" : `${reply.code}: ${reply.detail}`);
      const { code, label } = reply.value.body;
      if (tool === "memory") await index.update(null);
      return { text: pieces.join(""), code, label };
    },
    updated: async (session) => {
      const body = SESSION_UPDATED.request.shape.body.parse({ session: chatId(session) });
      ok((await call(`${home}/0.sock`, SESSION_UPDATED, body)).ok);
      await index.update(null);
    },
    read: (name) => Deno.readTextFileSync(`${home}/memory/${name}`),
  };
}
