// brokerd: decides whether each tool call may run, has it run, and records both.
import { runRole, writeLog } from "../../shared/boot/process.ts";
import { BrokerdConfig } from "../../shared/config/brokerd.ts";
import { secretAccess } from "../../shared/permissions/secret_access.ts";
import { podmanFolders } from "../../shared/podman/podman_env.ts";
import { err, ok } from "../../shared/results/result.ts";
import { listen } from "../../shared/wire/listen.ts";
import { readSecret } from "../../shared/secrets/secret_store.ts";
import { realAsFarAsThere } from "./real_paths.ts";
import { brokenLogRoutes } from "./audit_requests.ts";
import { openHouse } from "./house.ts";
import { peers } from "./peers.ts";
import { serve } from "./requests.ts";
import { openRuntime } from "./runtime/open_runtime.ts";

function die(code: string, detail: string): never {
  writeLog(`brokerd: ${code}: ${detail}\n`);
  Deno.exit(1);
}

if (Deno.uid() === 0) {
  die("root-refused", "Containers started from here would be rootful; use an ordinary user");
}

await runRole("brokerd", BrokerdConfig, (booted) => {
  const { home, config, disk, clock, random, log, socket, startedUnixMs } = booted;
  const source = decodeURIComponent(new URL("../../", import.meta.url).pathname).replace(/\/$/, "");
  const folders = podmanFolders(home, config.runtime);
  const image = config.runtime.image ?? `${source}/build/image`;
  const kept = [
    home,
    source,
    image,
    ...config.runtime.images,
    folders.store,
    folders.run,
    Deno.execPath(),
    ...secretAccess(Object.values(config.secrets)).reads,
  ];
  const ports = { clock, random, disk };
  const runtime = openRuntime({
    home,
    podman: config.runtime.podman,
    folders,
    image,
    furtherImages: config.runtime.images,
    source,
    deno: Deno.execPath(),
  }, ports);
  runtime.ready().then((status) => {
    if (status.state === "refusing") log.error(`${status.code}: ${status.detail}`);
    else log.info(`containers: ${status.state}`);
  });

  const house = openHouse({
    ...ports,
    ...peers(home, socket),
    home,
    config,
    log,
    runtime,
    startedUnixMs,
    imageFolder: image,
    forbidden: [...new Set(kept.map((path) => realAsFarAsThere(disk, path)))],
    fatal: (detail) => die("disk-failed", detail),
    secret: (name) => {
      const from = config.secrets[name];
      if (from === undefined) return err("secret-missing", `There is no secret ${name}`);
      const ownerUid = Deno.uid() ?? -1;
      return readSecret({ disk, env: (key) => Deno.env.get(key), ownerUid, log }, name, from);
    },
  });

  if (!house.ok && house.code === "audit-broken") {
    log.failure("the audit log is damaged; only bxctl audit verify and repair are served", house);
    const auditPorts = { ...ports, fatal: (detail: string) => die("disk-failed", detail) };
    // Whoever keeps brokerd running starts it anew, with a log that can be gone on from.
    const end = () => void setTimeout(() => die("audit-repaired", "ending to start anew"), 300);
    const server = listen({
      path: socket("owner-broker/admin"),
      routes: brokenLogRoutes(auditPorts, `${home}/audit`, house, end),
      log: (line) => log.warn(line),
    });
    return ok({ stop: () => server.close() });
  }
  if (!house.ok) return house;
  const servers = serve(house.value, socket);
  log.info(`started; audit log at record ${house.value.audit.head().n}`);
  return ok({
    async stop() {
      await Promise.all(servers.map((server) => server.close()));
      await house.value.close();
    },
  });
});
