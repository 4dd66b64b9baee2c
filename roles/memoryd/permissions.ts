// The exact permission flags of memoryd, from its configuration. Pure; the launcher and the rendered
// units use nothing else.
import type { MemorydConfig } from "../../shared/config/memoryd.ts";
import { flags, type Place, roleRow } from "../../shared/permissions/flags.ts";
import { secretAccess } from "../../shared/permissions/secret_access.ts";

export function permissions(config: MemorydConfig, place: Place): string[] {
  const { home, source } = place;
  const secrets = secretAccess(Object.values(config.secrets));
  const row = roleRow("memoryd", home, {
    reads: [
      `${home}/sessions`,
      config.memory.soul_starter ?? `${source}/memory/soul.md`,
      ...place.workerFiles,
      ...secrets.reads,
    ],
    writes: [`${home}/memory`, `${home}/index`],
    env: secrets.env,
  });
  return flags(row, home);
}
