// What `podman info` says about the host, read strictly: which walls Podman can build here, and which
// limits would be real rather than silently ignored.
import { z } from "zod";
import { err, ok, type Result } from "../../../shared/results/result.ts";
import { parseJson } from "../../../shared/wire/codec.ts";

const Info = z.object({
  host: z.object({
    cgroupVersion: z.string(),
    cgroupControllers: z.array(z.string()).nullish(),
    security: z.object({ rootless: z.boolean(), seccompEnabled: z.boolean() }),
    idMappings: z.object({ uidmap: z.array(z.unknown()).nullish() }),
  }),
  store: z.object({ graphDriverName: z.string() }),
  version: z.object({ Version: z.string() }),
});

export interface HostFacts {
  readonly podman: string;
  readonly cgroupLimits: ReadonlySet<"memory" | "pids" | "cpu">;
}

const CONTROLLERS = ["memory", "pids", "cpu"] as const;

/** Reads the JSON of `podman info`. Fails with `runtime-unavailable`, naming what is missing. */
export function hostFacts(infoJson: string): Result<HostFacts> {
  const value = parseJson(infoJson);
  const parsed = value.ok ? Info.safeParse(value.value) : null;
  if (parsed === null || !parsed.success) {
    return err("runtime-unavailable", "Podman describes itself in an unknown form");
  }
  const { host, store, version } = parsed.data;
  const missing = !host.security.rootless
    ? "Podman runs as root here; it must run as an ordinary user"
    : !host.security.seccompEnabled
    ? "This Podman has no system call filter"
    : store.graphDriverName !== "overlay"
    ? `The store uses ${store.graphDriverName} instead of overlay`
    : (host.idMappings.uidmap ?? []).length < 2
    ? "This user has no subordinate ids: lines in /etc/subuid and /etc/subgid, and newuidmap"
    : null;
  if (missing !== null) return err("runtime-unavailable", missing);
  const isV2 = host.cgroupVersion === "v2";
  const listed = new Set(host.cgroupControllers ?? []);
  const limits = CONTROLLERS.filter((name) => isV2 && listed.has(name));
  return ok({ podman: version.Version, cgroupLimits: new Set(limits) });
}
