// egressd: will carry the granted traffic of one call at a time. It has no network permission yet.
import { runRole } from "../../shared/boot/process.ts";
import { EgressdConfig } from "../../shared/config/egressd.ts";
import { ok } from "../../shared/results/result.ts";
import { listen } from "../../shared/wire/listen.ts";
import { egressRoutes } from "./requests.ts";

await runRole("egressd", EgressdConfig, ({ socket, startedUnixMs, log }) => {
  const server = listen({
    path: socket("broker-egress/egress"),
    routes: egressRoutes(startedUnixMs),
    log: log.warn,
  });
  log.info("started; every request for a way out is refused");
  return ok({ stop: () => server.close() });
});
