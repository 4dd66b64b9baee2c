// The real inferproxy as a process of its own, under its own flags. Its stop is a kill, as a restart
// of the role may come at any moment.
import { InferproxyConfig } from "../../shared/config/inferproxy.ts";
import { configFile } from "../../shared/permissions/places.ts";
import { socketPath } from "../../shared/wire/sockets.ts";
import { roleSurroundings, roleWords, SOURCE } from "./role_process.ts";
import { permissions } from "../../roles/inferproxy/permissions.ts";

/** Starts it for the home, in front of `address` (host:port), and waits until it accepts. */
export async function startInferproxy(home: string, address: string) {
  const path = socketPath(home, "loop-infer/infer");
  for (const folder of ["config", "locks", "run/loop-infer"]) {
    await Deno.mkdir(`${home}/${folder}`, { recursive: true });
  }
  await Deno.writeTextFile(configFile(home, "inferproxy"), `[upstream]\naddress = "${address}"\n`);
  const place = { home, source: SOURCE, workerFiles: [] };
  const child = new Deno.Command(Deno.execPath(), {
    args: roleWords(
      "inferproxy",
      permissions(InferproxyConfig.parse({ upstream: { address } }), place),
    ),
    ...roleSurroundings(home),
  }).spawn();
  const ended: { code: number | null } = { code: null };
  const status = child.status.then(({ code }) => ended.code = code);
  for (;;) {
    try {
      (await Deno.connect({ transport: "unix", path })).close();
      break;
    } catch {
      if (ended.code !== null) throw new Error(`inferproxy ended with ${ended.code}`);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }
  return {
    path,
    async stop() {
      child.kill("SIGKILL");
      await status;
    },
  };
}
