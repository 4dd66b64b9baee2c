// The exact permission flags of brokerd, from its configuration. Pure; the launcher and the rendered
// units use nothing else.
import type { BrokerdConfig } from "../../shared/config/brokerd.ts";
import { flags, type Place, roleRow } from "../../shared/permissions/flags.ts";
import { podmanFolders } from "../../shared/podman/podman_env.ts";
import { callsFolder } from "../../shared/permissions/places.ts";
import { secretAccess } from "../../shared/permissions/secret_access.ts";

export function permissions(config: BrokerdConfig, place: Place): string[] {
  const { home, source } = place;
  const secrets = secretAccess(Object.values(config.secrets));
  const { runtime } = config;
  const { store, run } = podmanFolders(home, runtime);
  const row = roleRow("brokerd", home, {
    reads: [
      `${home}/grants`,
      `${home}/jobs`,
      callsFolder(home),
      runtime.image ?? `${source}/build/image`,
      ...runtime.images,
      ...config.paths.roots,
      ...secrets.reads,
    ],
    writes: [`${home}/audit`, `${home}/broker`, store, run],
    run: [runtime.podman],
    env: secrets.env,
    sys: ["uid"],
  });
  return flags(row, home);
}
