// The exact permission flags of egressd, from its configuration. Pure; the launcher and the rendered
// units use nothing else. The one role with an open network flag: its own matcher admits exact origins,
// and Deno refuses every denied address after resolution, at the moment of connecting.
import { DENIED_RANGES, type EgressdConfig } from "../../shared/config/egressd.ts";
import { flags, type Place, roleRow } from "../../shared/permissions/flags.ts";
import { callsFolder } from "../../shared/permissions/places.ts";

export function permissions(config: EgressdConfig, place: Place): string[] {
  const denied = DENIED_RANGES.filter((range) => !config.deny.open.includes(range));
  const row = roleRow("egressd", place.home, {
    reads: config.tls.ca_file === undefined ? [] : [config.tls.ca_file],
    writes: [callsFolder(place.home)],
  });
  return [
    "--allow-net",
    `--deny-net=${[...denied, ...config.deny.more].join(",")}`,
    ...flags(row, place.home).filter((flag) => !flag.startsWith("--allow-net=")),
  ];
}
