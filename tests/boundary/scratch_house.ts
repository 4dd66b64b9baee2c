// A copy of the house for the boundary tests: the real launcher and flag program, with the probe in
// place of every role's main.ts, a home of its own, and a listener on every socket.
import { ROLES, SOCKETS } from "../../shared/wire/sockets.ts";
import type { Act } from "./probe.ts";

const SOURCE = decodeURIComponent(new URL("../../", import.meta.url).pathname).replace(/\/$/, "");

export type House = {
  readonly folder: string;
  readonly source: string;
  readonly home: string;
  [Symbol.dispose](): void;
};

/** Makes the copy below a temporary folder; disposing removes it. */
export function scratchHouse(): House {
  const folder = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "bx" }));
  const source = `${folder}/src`;
  const home = `${folder}/home`;
  Deno.mkdirSync(home, { mode: 0o700 });
  for (const room of ["launch", "shared", "roles", "memory"]) {
    copy(`${SOURCE}/${room}`, `${source}/${room}`);
  }
  for (const file of ["deno.json", "deno.lock"]) {
    Deno.copyFileSync(`${SOURCE}/${file}`, `${source}/${file}`);
  }
  Deno.symlinkSync(`${SOURCE}/node_modules`, `${source}/node_modules`);
  for (const role of ROLES) {
    Deno.copyFileSync(new URL("./probe.ts", import.meta.url), `${source}/roles/${role}/main.ts`);
  }
  return {
    folder,
    source,
    home,
    [Symbol.dispose]: () => Deno.removeSync(folder, { recursive: true }),
  };
}

function copy(from: string, to: string): void {
  Deno.mkdirSync(to, { recursive: true });
  for (const entry of Deno.readDirSync(from)) {
    if (entry.isDirectory) copy(`${from}/${entry.name}`, `${to}/${entry.name}`);
    else if (!entry.name.endsWith("_test.ts")) {
      Deno.copyFileSync(`${from}/${entry.name}`, `${to}/${entry.name}`);
    }
  }
}

export type Started = { readonly code: number; readonly out: string; readonly err: string };

/** Runs `launch/serve` of the house; `env` is the caller's whole environment beside the two it needs. */
export async function serve(
  house: House,
  args: readonly string[],
  env: Record<string, string> = {},
  cwd: string = house.folder,
): Promise<Started> {
  const run = await new Deno.Command("/bin/sh", {
    args: [`${house.source}/launch/serve`, ...args],
    cwd,
    clearEnv: true,
    env: {
      PATH: "/usr/bin:/bin",
      BOXMAKER_HOME: house.home,
      BOXMAKER_DENO: Deno.execPath(),
      ...env,
    },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).output();
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  return { code: run.code, out: text(run.stdout), err: text(run.stderr) };
}

/** What became of each act, tried by the probe as `role` under its real flags. */
export async function probe(
  house: House,
  role: string,
  acts: readonly Act[],
  env: Record<string, string> = {},
): Promise<Record<string, string>> {
  const run = await serve(house, [role, JSON.stringify(acts)], env);
  if (run.code !== 0) throw new Error(`${role} ended with ${run.code}: ${run.err}${run.out}`);
  return JSON.parse(run.out);
}

/** Listens on every socket of the house; closes what connects. */
export function listenEverywhere(house: House): Disposable {
  const listeners = Object.keys(SOCKETS).map((name) =>
    Deno.listen({ transport: "unix", path: `${house.home}/run/${name}.sock` })
  );
  for (const listener of listeners) drain(listener);
  return { [Symbol.dispose]: () => listeners.forEach((listener) => listener.close()) };
}

/** A TCP listener on loopback that counts who comes. */
export function countingListener(): Disposable & { port: number; count(): number } {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const seen = { count: 0 };
  drain(listener, () => seen.count++);
  const port = listener.addr.transport === "tcp" ? listener.addr.port : 0;
  return { port, count: () => seen.count, [Symbol.dispose]: () => listener.close() };
}

/** A Unix listener that counts who comes. */
export function countingSocket(path: string): Disposable & { count(): number } {
  const listener = Deno.listen({ transport: "unix", path });
  const seen = { count: 0 };
  drain(listener, () => seen.count++);
  return { count: () => seen.count, [Symbol.dispose]: () => listener.close() };
}

async function drain(listener: Deno.Listener, onEach: () => void = () => {}): Promise<void> {
  for await (const conn of listener) {
    onEach();
    conn.close();
  }
}
