// egressd: will carry the granted traffic of one call at a time. It has no network permission yet.
import { boot } from "../../shared/boot/boot.ts";
import { EgressdConfig } from "../../shared/config/egressd.ts";
import { listen } from "../../shared/wire/listen.ts";
import { egressRoutes } from "./requests.ts";

const stderr = (line: string) => void Deno.stderr.writeSync(new TextEncoder().encode(`${line}\n`));

const booted = boot("egressd", EgressdConfig, Deno.env.get("BOXMAKER_HOME"), stderr);
if (!booted.ok) {
  stderr(`egressd: ${booted.code}: ${booted.detail}`);
  Deno.exit(1);
}
const { log, lock, socket, startedUnixMs } = booted.value;
const server = listen({
  path: socket("broker-egress/egress"),
  routes: egressRoutes(startedUnixMs),
  log: (line) => log.warn(line),
});
log.info("started; every request for a way out is refused");

const stop = async () => {
  await server.close();
  lock.release();
  Deno.exit(0);
};
for (const signal of ["SIGTERM", "SIGINT"] as const) Deno.addSignalListener(signal, stop);
