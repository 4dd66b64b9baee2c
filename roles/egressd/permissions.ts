// The exact permission flags of egressd, from its configuration. Pure; the launcher and the rendered
// units use nothing else.
import type { EgressdConfig } from "../../shared/config/egressd.ts";
import { flags, type Place, roleRow } from "../../shared/permissions/flags.ts";

/** It reaches no host: it answers every `open` with a refusal, so it needs its socket alone. */
export function permissions(_config: EgressdConfig, place: Place): string[] {
  return flags(roleRow("egressd", place.home, {}), place.home);
}
