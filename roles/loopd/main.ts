// loopd: sessions, prompts and turns. It has no network but inferproxy's socket and decides nothing
// about what may happen; brokerd does. What is under way when it stops is in the logs and is taken
// up at the next start.
import { runRole } from "../../shared/boot/process.ts";
import { LoopdConfig } from "../../shared/config/loopd.ts";
import { ok } from "../../shared/results/result.ts";
import { listen } from "../../shared/wire/listen.ts";
import { makeLoopd } from "./loopd.ts";

await runRole("loopd", LoopdConfig, async (booted) => {
  const { config, disk, clock, random, home, log, socket, startedUnixMs } = booted;
  const fatal = (detail: string) => {
    log.error(`disk-failed: ${detail}`);
    Deno.exit(1);
  };
  const stopping = new AbortController();
  const made = makeLoopd({
    ports: { clock, random, disk, log: log.info, fatal },
    config,
    root: `${home}/sessions`,
    sockets: {
      infer: socket("loop-infer/infer"),
      broker: socket("loop-broker/broker"),
      memory: socket("loop-memory/memory"),
    },
    startedUnixMs,
    stopping: stopping.signal,
  });
  if (!made.ok) return made;
  const loopd = made.value;
  await loopd.start();
  const servers = [
    listen({ path: socket("gateway-loop/loop"), routes: loopd.gateway, log: log.warn }),
    listen({ path: socket("owner-loop/admin"), routes: loopd.owner, log: log.warn }),
  ];
  log.info("started");
  return ok({
    async stop() {
      stopping.abort();
      await Promise.all(servers.map((one) => one.close()));
      await loopd.stop();
    },
  });
});
