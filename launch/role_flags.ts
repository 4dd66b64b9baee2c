// One role's flags from its configuration file: the only room that imports every role's
// permissions.ts. An absent file means the documented defaults; a broken one starts nothing.
import type { z } from "zod";
import { assertNever, err, ok, type Result } from "../shared/results/result.ts";
import { BrokerdConfig } from "../shared/config/brokerd.ts";
import { BxctlConfig } from "../shared/config/bxctl.ts";
import { EgressdConfig } from "../shared/config/egressd.ts";
import { GatewaydConfig } from "../shared/config/gatewayd.ts";
import { InferproxyConfig } from "../shared/config/inferproxy.ts";
import { LoopdConfig } from "../shared/config/loopd.ts";
import { MemorydConfig } from "../shared/config/memoryd.ts";
import { podmanFolders } from "../shared/podman/podman_env.ts";
import { readConfig } from "../shared/boot/boot.ts";
import { denoDisk } from "../shared/disk/deno_disk.ts";
import type { Place } from "../shared/permissions/flags.ts";
import { configFile } from "../shared/permissions/places.ts";
import type { Role } from "../shared/wire/sockets.ts";
import { permissions as brokerd } from "../roles/brokerd/permissions.ts";
import { permissions as bxctl } from "../roles/bxctl/permissions.ts";
import { permissions as egressd } from "../roles/egressd/permissions.ts";
import { permissions as gatewayd } from "../roles/gatewayd/permissions.ts";
import { permissions as inferproxy } from "../roles/inferproxy/permissions.ts";
import { permissions as loopd } from "../roles/loopd/permissions.ts";
import { permissions as memoryd } from "../roles/memoryd/permissions.ts";
import { checkedRoots } from "./roots.ts";

/** The flags of `role` at `place` under the configuration found there. */
export function roleFlags(role: Role, place: Place): Result<string[]> {
  switch (role) {
    case "gatewayd":
      return compute(role, place, GatewaydConfig, gatewayd);
    case "loopd":
      return compute(role, place, LoopdConfig, loopd);
    case "inferproxy":
      return compute(role, place, InferproxyConfig, inferproxy);
    case "brokerd":
      return brokerFlags(place);
    case "egressd":
      return compute(role, place, EgressdConfig, egressd);
    case "memoryd":
      return compute(role, place, MemorydConfig, memoryd);
    case "bxctl":
      return compute(role, place, BxctlConfig, bxctl);
    default:
      return assertNever(role);
  }
}

function compute<T>(
  role: Role,
  place: Place,
  schema: z.ZodType<T>,
  permissions: (config: T, place: Place) => string[],
): Result<string[]> {
  const config = readConfig(schema, denoDisk, configFile(place.home, role));
  return config.ok ? ok(permissions(config.value, place)) : config;
}

function brokerFlags(place: Place): Result<string[]> {
  const read = readConfig(BrokerdConfig, denoDisk, configFile(place.home, "brokerd"));
  if (!read.ok) return read;
  const config = read.value;
  const { store, run } = podmanFolders(place.home, config.runtime);
  const roots = checkedRoots(config.paths.roots, [place.home, place.source, store, run]);
  if (!roots.ok) return err(roots.code, roots.detail);
  return ok(brokerd({ ...config, paths: { roots: roots.value } }, place));
}
