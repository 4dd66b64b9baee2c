// The exact permission flags of inferproxy, from its configuration. Pure; the launcher and the rendered
// units use nothing else.
import type { InferproxyConfig } from "../../shared/config/inferproxy.ts";
import { flags, type Place, roleRow } from "../../shared/permissions/flags.ts";

export function permissions(config: InferproxyConfig, place: Place): string[] {
  return flags(roleRow("inferproxy", place.home, { hosts: [config.upstream.address] }), place.home);
}
