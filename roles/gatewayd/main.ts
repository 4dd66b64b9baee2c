// gatewayd: the owner's channel. Without a configured server it starts, idles and says so.
import { runRole } from "../../shared/boot/process.ts";
import { GatewaydConfig } from "../../shared/config/gatewayd.ts";
import { readText } from "../../shared/disk/durable.ts";
import { lockFile } from "../../shared/permissions/places.ts";
import { err, ok } from "../../shared/results/result.ts";
import { readSecret } from "../../shared/secrets/secret_store.ts";
import { listen } from "../../shared/wire/listen.ts";
import { startGateway } from "./gateway.ts";
import { isLostSocket, type Network, networkOf } from "./network.ts";
import { makePeers } from "./peers.ts";
import { brokerRoutes, ownerRoutes } from "./requests.ts";
import { openStore } from "./store.ts";

const MAX_CA_BYTES = 1_048_576;

await runRole("gatewayd", GatewaydConfig, (booted) => {
  const { config, home, socket, startedUnixMs, log, disk, clock, random } = booted;
  const { url, owner_id, token, ca_file } = config.mattermost;
  type Channel = Exclude<Parameters<typeof ownerRoutes>[1], null> & { readonly network: Network };
  const serve = (channel: Channel | null, idle: string) => {
    const forBroker = brokerRoutes(channel?.gateway ?? null);
    const forOwner = ownerRoutes(startedUnixMs, channel, idle);
    const servers = [
      listen({ path: socket("broker-gateway/gateway"), routes: forBroker, log: log.warn }),
      listen({ path: socket("owner-gateway/admin"), routes: forOwner, log: log.warn }),
    ];
    return ok({
      async stop() {
        await Promise.all(servers.map((one) => one.close()));
        await channel?.gateway.stop();
        channel?.network.close();
      },
    });
  };
  if (url === undefined) {
    const idle = "Idle: no Mattermost server is configured; talk with bxctl chat";
    log.info(`started; ${idle}`);
    return serve(null, idle);
  }
  if (owner_id === undefined || token === undefined) {
    return err("config-invalid", "[mattermost] url needs owner_id and token beside it");
  }
  const ownerUid = disk.stat(lockFile(home, "gatewayd")).ownerUid;
  const env = (name: string) => Deno.env.get(name);
  const secret = readSecret({ disk, env, ownerUid, log }, "mattermost.token", token);
  if (!secret.ok) return secret;
  const certificates = ca_file === undefined ? ok(null) : readText(disk, ca_file, MAX_CA_BYTES);
  if (!certificates.ok) return certificates;
  const network = networkOf(certificates.value);
  if (!network.ok) return network;
  const store = openStore(`${home}/queue/queue.db`, clock.nowUnixMs);
  const ports = { clock, random, log, store, network: network.value };
  const peers = makePeers(socket);
  const gateway = startGateway({ ...ports, config, base: url, token: secret.value, peers });
  log.info(`started; the channel is ${url}`);
  return serve({ gateway, store, network: network.value }, "");
}, isLostSocket);
