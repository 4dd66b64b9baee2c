// gatewayd: the owner's channel. Without a configured server it starts, idles and says so.
import { boot } from "../../shared/boot/boot.ts";
import { GatewaydConfig, serverAddress } from "../../shared/config/gatewayd.ts";
import { listen } from "../../shared/wire/listen.ts";
import { brokerRoutes, ownerRoutes } from "./requests.ts";

const stderr = (line: string) => void Deno.stderr.writeSync(new TextEncoder().encode(`${line}\n`));

const booted = boot("gatewayd", GatewaydConfig, Deno.env.get("BOXMAKER_HOME"), stderr);
if (!booted.ok) {
  stderr(`gatewayd: ${booted.code}: ${booted.detail}`);
  Deno.exit(1);
}
const { config, log, lock, socket, startedUnixMs } = booted.value;
const server = serverAddress(config);
const summary = server === undefined
  ? "Idle: no Mattermost server is configured; talk with bxctl chat"
  : `Idle: ${server} is configured, but this version carries no channel yet`;
const warn = (line: string) => log.warn(line);
const servers = [
  listen({ path: socket("broker-gateway/gateway"), routes: brokerRoutes(), log: warn }),
  listen({
    path: socket("owner-gateway/admin"),
    routes: ownerRoutes(startedUnixMs, summary),
    log: warn,
  }),
];
log.info(`started; ${summary}`);

const stop = async () => {
  await Promise.all(servers.map((one) => one.close()));
  lock.release();
  Deno.exit(0);
};
for (const signal of ["SIGTERM", "SIGINT"] as const) Deno.addSignalListener(signal, stop);
