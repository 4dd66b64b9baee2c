// gatewayd: the owner's channel. Without a configured server it starts, idles and says so.
import { runRole } from "../../shared/boot/process.ts";
import { GatewaydConfig, serverAddress } from "../../shared/config/gatewayd.ts";
import { ok } from "../../shared/results/result.ts";
import { listen } from "../../shared/wire/listen.ts";
import { brokerRoutes, ownerRoutes } from "./requests.ts";

await runRole("gatewayd", GatewaydConfig, ({ config, socket, startedUnixMs, log }) => {
  const server = serverAddress(config);
  const summary = server === undefined
    ? "Idle: no Mattermost server is configured; talk with bxctl chat"
    : `Idle: ${server} is configured, but this version carries no channel yet`;
  const servers = [
    listen({ path: socket("broker-gateway/gateway"), routes: brokerRoutes(), log: log.warn }),
    listen({
      path: socket("owner-gateway/admin"),
      routes: ownerRoutes(startedUnixMs, summary),
      log: log.warn,
    }),
  ];
  log.info(`started; ${summary}`);
  return ok({
    async stop() {
      await Promise.all(servers.map((one) => one.close()));
    },
  });
});
