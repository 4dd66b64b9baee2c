// The exact permission flags of loopd, from its configuration. Pure; the launcher and the rendered
// units use nothing else.
import type { LoopdConfig } from "../../shared/config/loopd.ts";
import { flags, type Place, roleRow } from "../../shared/permissions/flags.ts";

export function permissions(config: LoopdConfig, place: Place): string[] {
  const { home } = place;
  const examples = config.inference.examples;
  const row = roleRow("loopd", home, {
    reads: [`${home}/jobs`, ...(examples === undefined ? [] : [examples])],
    writes: [`${home}/sessions`, `${home}/runs`],
  });
  return flags(row, home);
}
