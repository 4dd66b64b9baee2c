// egressd: carries the granted network traffic of one call at a time to exactly the granted origins.
import { runRole } from "../../shared/boot/process.ts";
import { EgressdConfig } from "../../shared/config/egressd.ts";
import { callsFolder } from "../../shared/permissions/places.ts";
import { ok } from "../../shared/results/result.ts";
import { listen } from "../../shared/wire/listen.ts";
import { emptyCallsFolder, openClient } from "./call_socket.ts";
import { egressCalls } from "./calls.ts";
import { egressRoutes } from "./requests.ts";

await runRole("egressd", EgressdConfig, (booted) => {
  const { home, config, clock, random, socket, startedUnixMs, log } = booted;
  const folder = callsFolder(home);
  emptyCallsFolder(folder);
  const client = openClient(config.tls.ca_file);
  const { limits } = config;
  const calls = egressCalls({ clock, random, limits, client, folder, log: log.warn });
  const server = listen({
    path: socket("broker-egress/egress"),
    routes: egressRoutes(calls, startedUnixMs),
    log: log.warn,
    // Each open call keeps one connection, and needs another for every request it records.
    maxConnections: 96,
  });
  log.info("started");
  return ok({
    async stop() {
      await server.close();
      client.close();
    },
  });
});
