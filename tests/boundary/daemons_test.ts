// Guards what every daemon promises about its own life, with the real program under its real flags:
// sockets only the owner can use, one instance, nothing left after SIGTERM, and a clean start after
// SIGKILL.
import { deepStrictEqual, match, ok, strictEqual } from "node:assert";
import { DAEMONS } from "../../launch/supervisor.ts";
import { type Role, servedBy, socketPath } from "../../shared/wire/sockets.ts";

const SOURCE = decodeURIComponent(new URL("../../", import.meta.url).pathname).replace(/\/$/, "");

function start(role: Role, home: string): Deno.ChildProcess {
  return new Deno.Command("/bin/sh", {
    args: [`${SOURCE}/launch/serve`, role],
    clearEnv: true,
    env: { PATH: "/usr/bin:/bin", BOXMAKER_HOME: home, BOXMAKER_DENO: Deno.execPath() },
    stdin: "null",
    stdout: "null",
    stderr: "piped",
  }).spawn();
}

async function accepts(path: string): Promise<boolean> {
  try {
    (await Deno.connect({ transport: "unix", path })).close();
    return true;
  } catch {
    return false; // absent or refusing, which is the answer
  }
}

function modeOf(path: string): number {
  return (Deno.statSync(path).mode ?? 0) & 0o777;
}

/** Resolves when every socket accepts and has its final mode (set right after listening). */
async function ready(role: Role, home: string, child: Deno.ChildProcess): Promise<void> {
  const paths = servedBy(role).map((name) => socketPath(home, name));
  let ended = false;
  child.status.then(() => ended = true);
  for (let tries = 0; tries < 600 && !ended; tries++) {
    const open = await Promise.all(paths.map(accepts));
    if (open.every((one) => one) && paths.every((path) => modeOf(path) === 0o600)) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`${role} ${ended ? "ended" : "did not serve its sockets within 30 seconds"}`);
}

/** Files and folders below `folder` that others may use in any way. */
function openToOthers(folder: string): string[] {
  return [...Deno.readDirSync(folder)].flatMap((entry) => {
    if (entry.name.startsWith("podman")) return []; // Podman keeps its own modes below its store
    const path = `${folder}/${entry.name}`;
    const mode = Deno.lstatSync(path).mode ?? 0o777;
    const mine = entry.isSymlink || (mode & 0o077) === 0
      ? []
      : [`${path} ${(mode & 0o777).toString(8)}`];
    return [...mine, ...(entry.isDirectory ? openToOthers(path) : [])];
  });
}

function leftSockets(role: Role, home: string): string[] {
  return servedBy(role).map((name) => socketPath(home, name)).filter((path) => {
    try {
      Deno.lstatSync(path);
      return true;
    } catch (thrown) {
      ok(thrown instanceof Deno.errors.NotFound);
      return false;
    }
  });
}

for (const role of DAEMONS) {
  const asRoot = role === "brokerd" && Deno.uid() === 0;
  Deno.test(
    `${role} one instance with sockets of its own, gone after SIGTERM, back after SIGKILL${
      asRoot ? " (brokerd refuses root; needs an ordinary user)" : ""
    }`,
    { ignore: asRoot },
    async () => {
      const home = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "bx" }));
      const started: Deno.ChildProcess[] = [];
      const begin = async () => {
        const child = start(role, home);
        started.push(child);
        await ready(role, home, child);
        return child;
      };
      try {
        const first = await begin();
        deepStrictEqual(openToOthers(home), []);

        const second = await start(role, home).output();
        ok(second.code !== 0, "a second instance started");
        match(new TextDecoder().decode(second.stderr), /already-running|lock/i);
        await ready(role, home, first);

        first.kill("SIGTERM");
        strictEqual((await first.status).code, 0, "the status after SIGTERM");
        deepStrictEqual(leftSockets(role, home), []);

        const third = await begin();
        third.kill("SIGKILL");
        await third.status;
        deepStrictEqual(
          leftSockets(role, home).length,
          servedBy(role).length,
          "stale sockets stay",
        );
        const fourth = await begin();
        fourth.kill("SIGTERM");
        strictEqual((await fourth.status).code, 0);
      } finally {
        for (const child of started) {
          try {
            child.kill("SIGKILL");
          } catch {
            // It has ended, as it should.
          }
          await child.stderr.cancel();
          await child.status;
        }
        Deno.removeSync(home, { recursive: true });
      }
    },
  );
}

Deno.test("runRole() a log that cannot be written harms nobody: the disk full, the reader gone", async () => {
  const home = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "bx" }));
  try {
    for (const target of ["/dev/full", "/dev/stdout"]) {
      const child = new Deno.Command("/bin/sh", {
        args: ["-c", `exec "$@" 2>${target}`, "sh", "/bin/sh", `${SOURCE}/launch/serve`, "egressd"],
        clearEnv: true,
        env: { PATH: "/usr/bin:/bin", BOXMAKER_HOME: home, BOXMAKER_DENO: Deno.execPath() },
        stdin: "null",
        stdout: "piped",
        stderr: "null",
      }).spawn();
      await child.stdout.cancel();
      await ready("egressd", home, child);
      child.kill("SIGTERM");
      strictEqual((await child.status).code, 0, target);
    }
  } finally {
    Deno.removeSync(home, { recursive: true });
  }
});

Deno.test("bxctl ends without a word when its reader has gone", async () => {
  const home = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "bx" }));
  try {
    const child = new Deno.Command("/bin/sh", {
      args: [`${SOURCE}/launch/serve`, "bxctl", "help"],
      clearEnv: true,
      env: { PATH: "/usr/bin:/bin", BOXMAKER_HOME: home, BOXMAKER_DENO: Deno.execPath() },
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    await child.stdout.cancel();
    strictEqual(await new Response(child.stderr).text(), "");
    strictEqual((await child.status).code, 141);
  } finally {
    Deno.removeSync(home, { recursive: true });
  }
});
