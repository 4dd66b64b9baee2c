// memoryd: the memory files, the index over what was said, and the two tools that use them.
import { runRole } from "../../shared/boot/process.ts";
import { MemorydConfig } from "../../shared/config/memoryd.ts";
import { readText } from "../../shared/disk/durable.ts";
import { err, ok } from "../../shared/results/result.ts";
import { listen } from "../../shared/wire/listen.ts";
import { openIndex } from "./index_client.ts";
import { startWorker } from "./index_port.ts";
import { openStore } from "./memory_store.ts";
import { brokerRoutes, loopRoutes, ownerRoutes, type Parts } from "./requests.ts";

const MAX_STARTER_BYTES = 65_536;
const RECALL_MS = 10_000;
/** A check of a million texts after a crash is one step of the Worker, and may take a minute. */
const STUCK_MS = 180_000;
const STARTER = new URL("../../memory/soul.md", import.meta.url);

await runRole("memoryd", MemorydConfig, (booted) => {
  const { config, disk, clock, random, home, log, socket, startedUnixMs } = booted;
  const starterPath = config.memory.soul_starter ?? decodeURIComponent(STARTER.pathname);
  const starter = readText(disk, starterPath, MAX_STARTER_BYTES);
  if (!starter.ok) return starter;
  const store = openStore({ disk, clock, random, folder: `${home}/memory` }, starter.value);
  if (!store.ok) return store;
  const end: Parts["end"] = (failure) => {
    log.failure("cannot go on", failure);
    Deno.exit(1);
  };
  const index = openIndex({
    port: startWorker(home),
    clock,
    home,
    maxClass: config.index.max_class,
    log: log.warn,
    // A Worker cannot be stopped in the middle of a query; ending the process is the only way.
    onLost: (reason) => end(err("memory-index-damaged", reason)),
    lateMs: RECALL_MS,
    stuckMs: STUCK_MS,
  });
  const parts: Parts = { store: store.value, index, clock, startedUnixMs, warn: log.warn, end };
  const servers = [
    listen({ path: socket("loop-memory/memory"), routes: loopRoutes(parts), log: log.warn }),
    listen({ path: socket("broker-memory/memory"), routes: brokerRoutes(parts), log: log.warn }),
    listen({ path: socket("owner-memory/admin"), routes: ownerRoutes(parts), log: log.warn }),
  ];
  log.info("started");
  return ok({
    async stop() {
      const closing = servers.map((one) => one.close());
      // Answers those who wait for a search, so that the sockets need not wait for it.
      closing.push(index.close());
      await Promise.all(closing);
      store.value.close();
    },
  });
});
