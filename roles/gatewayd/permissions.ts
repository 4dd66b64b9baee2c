// The exact permission flags of gatewayd, from its configuration. Pure; the launcher and the rendered
// units use nothing else.
import { type GatewaydConfig, serverAddress } from "../../shared/config/gatewayd.ts";
import { flags, type Place, roleRow } from "../../shared/permissions/flags.ts";
import { secretAccess } from "../../shared/permissions/secret_access.ts";

export function permissions(config: GatewaydConfig, place: Place): string[] {
  const { home } = place;
  const { token, ca_file } = config.mattermost;
  const secrets = secretAccess(token === undefined ? [] : [token]);
  const address = serverAddress(config);
  const row = roleRow("gatewayd", home, {
    hosts: address === undefined ? [] : [address],
    reads: [...secrets.reads, ...(ca_file === undefined ? [] : [ca_file])],
    writes: [`${home}/queue/queue.db`],
    env: secrets.env,
  });
  return flags(row, home);
}
