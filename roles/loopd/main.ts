// loopd: sessions, prompts and turns. It has no network but inferproxy's socket and decides nothing
// about what may happen; brokerd does.
import { boot } from "../../shared/boot/boot.ts";
import { LoopdConfig } from "../../shared/config/loopd.ts";
import { listen } from "../../shared/wire/listen.ts";
import { makeLoopd } from "./loopd.ts";

const stderr = (line: string) => void Deno.stderr.writeSync(new TextEncoder().encode(`${line}\n`));

const booted = boot("loopd", LoopdConfig, Deno.env.get("BOXMAKER_HOME"), stderr);
if (!booted.ok) {
  stderr(`loopd: ${booted.code}: ${booted.detail}`);
  Deno.exit(1);
}
const { config, disk, clock, random, home, log, lock, socket, startedUnixMs } = booted.value;
const made = makeLoopd({
  ports: {
    clock,
    random,
    disk,
    log: (line) => log.info(line),
    fatal: (detail) => {
      log.error(`disk-failed: ${detail}`);
      Deno.exit(1);
    },
  },
  config,
  root: `${home}/sessions`,
  sockets: {
    infer: socket("loop-infer/infer"),
    broker: socket("loop-broker/broker"),
    memory: socket("loop-memory/memory"),
  },
  startedUnixMs,
});
if (!made.ok) {
  log.failure("cannot start", made);
  Deno.exit(1);
}
const loopd = made.value;
const warn = (line: string) => log.warn(line);
await loopd.start();
const servers = [
  listen({ path: socket("gateway-loop/loop"), routes: loopd.gateway, log: warn }),
  listen({ path: socket("owner-loop/admin"), routes: loopd.owner, log: warn }),
];
log.info("started");

// What is under way is in the logs and is taken up at the next start, so nothing is waited for.
const stop = async () => {
  await Promise.all(servers.map((one) => one.close()));
  lock.release();
  Deno.exit(0);
};
for (const signal of ["SIGTERM", "SIGINT"] as const) Deno.addSignalListener(signal, stop);
