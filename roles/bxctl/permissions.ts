// The exact permission flags of bxctl, from its configuration. Pure; the launcher and the rendered
// units use nothing else.
import type { BxctlConfig } from "../../shared/config/bxctl.ts";
import { flags, type Place, roleRow } from "../../shared/permissions/flags.ts";

/** The owner's sockets and nothing else: no host, no folder, no program. */
export function permissions(_config: BxctlConfig, place: Place): string[] {
  return flags(roleRow("bxctl", place.home, {}), place.home);
}
