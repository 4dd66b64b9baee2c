// Guards the launcher's promises: nothing of the caller's environment, folder or PATH reaches a role,
// nothing is started when something is wrong, and the process that starts is the role itself.
import { deepStrictEqual, match, ok, strictEqual } from "node:assert";
import type { Act } from "./probe.ts";
import {
  countingListener,
  countingSocket,
  type House,
  probe,
  scratchHouse,
  serve,
  type Started,
} from "./scratch_house.ts";

const ENV: Act = { name: "PATH", act: "env", on: "PATH" };
const PASSWD: Act = { name: "passwd", act: "read", on: "/etc/passwd" };

function config(house: House, role: string, text: string): void {
  Deno.mkdirSync(`${house.home}/config`, { recursive: true, mode: 0o700 });
  Deno.writeTextFileSync(`${house.home}/config/${role}.toml`, text, { mode: 0o600 });
}

function refusedToStart(run: Started, why: RegExp): void {
  strictEqual(run.code, 2, run.err);
  match(run.err, why);
  strictEqual(run.out, "", "the role was started");
}

Deno.test("launch/serve the caller's environment cannot undo a flag", async () => {
  using house = scratchHouse();
  using collector = countingListener();
  const traps = `${house.folder}/traps`;
  Deno.mkdirSync(traps);
  using broker = countingSocket(`${house.folder}/broker.sock`);
  Deno.writeTextFileSync(
    `${house.folder}/preload.cjs`,
    `require("node:fs").writeFileSync(${JSON.stringify(`${traps}/preload`)}, "")`,
  );
  const results = await probe(house, "loopd", [
    PASSWD,
    ENV,
    { name: "fetch", act: "fetch", on: `http://127.0.0.1:${collector.port}/` },
  ], {
    DENO_PERMISSION_BROKER_PATH: `${house.folder}/broker.sock`,
    OTEL_DENO: "true",
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${collector.port}`,
    HTTP_PROXY: `http://127.0.0.1:${collector.port}`,
    HTTPS_PROXY: `http://127.0.0.1:${collector.port}`,
    NODE_OPTIONS: `--require ${house.folder}/preload.cjs`,
    DENO_SERVE_ADDRESS: `tcp:127.0.0.1:0`,
    DENO_COVERAGE_DIR: `${traps}/coverage`,
    DENO_AUDIT_PERMISSIONS: `${traps}/audit`,
    SSLKEYLOGFILE: `${traps}/keys`,
    DENO_DIR: `${traps}/deno`,
    DENO_V8_FLAGS: "--allow-natives-syntax",
    NPM_CONFIG_REGISTRY: `http://127.0.0.1:${collector.port}`,
    CDPATH: "/",
    ENV: `${house.folder}/preload.cjs`,
    BASH_ENV: `${house.folder}/preload.cjs`,
    IFS: "/",
  });
  for (const result of Object.values(results)) match(result, /^NotCapable: /);
  strictEqual(collector.count(), 0, "a connection was seen");
  strictEqual(broker.count(), 0, "the permission broker was asked");
  deepStrictEqual([...Deno.readDirSync(traps)].map((entry) => entry.name), []);
});

Deno.test("launch/serve a program planted in a parent's node_modules/.bin or on PATH is not run", async () => {
  using house = scratchHouse();
  const bin = `${house.folder}/node_modules/.bin`;
  Deno.mkdirSync(bin, { recursive: true });
  for (const name of ["deno", "sh", "env", "sed", "ls", "bash", "dirname"]) {
    const plant = `#!/bin/sh\necho ${name} >>${house.folder}/mark\n`;
    Deno.writeTextFileSync(`${bin}/${name}`, plant, { mode: 0o755 });
  }
  const run = await new Deno.Command(Deno.execPath(), {
    args: [
      "task",
      "-q",
      "-c",
      `${house.source}/deno.json`,
      "serve",
      "loopd",
      JSON.stringify([PASSWD]),
    ],
    cwd: house.source,
    clearEnv: true,
    env: {
      PATH: `${bin}:/usr/bin:/bin`,
      BOXMAKER_HOME: house.home,
      BOXMAKER_DENO: `${bin}/deno`,
      NO_COLOR: "1",
    },
    stdout: "piped",
    stderr: "piped",
  }).output();
  const out = new TextDecoder().decode(run.stdout);
  match(out, /NotCapable/, new TextDecoder().decode(run.stderr));
  deepStrictEqual([...Deno.readDirSync(house.folder)].filter((one) => one.name === "mark"), []);
});

Deno.test("launch/serve a flag is never taken for a file pattern", async () => {
  using house = scratchHouse();
  config(house, "inferproxy", `[upstream]\naddress = "[::1]:8080"\n`);
  const flag = `--allow-net=[::1]:8080,unix:${house.home}/run/loop-infer/infer.sock`;
  const decoy = `${house.folder}/${flag.replace("[::1]", ":")}`;
  Deno.mkdirSync(decoy.replace(/\/[^/]+$/, ""), { recursive: true });
  Deno.writeTextFileSync(decoy, "");
  const printed = await serve(house, ["inferproxy", "--print"]);
  ok(printed.out.split("\n").includes(flag), printed.out);
});

Deno.test("launch/serve a home reached through a link gets flags on its real path", async () => {
  using house = scratchHouse();
  Deno.symlinkSync(house.home, `${house.folder}/link`);
  const linked = { ...house, home: `${house.folder}/link` };
  const printed = await serve(linked, ["loopd", "--print"]);
  strictEqual(printed.out.includes("/link"), false, printed.out);
  match(printed.out, new RegExp(`^BOXMAKER_HOME=${house.home}$`, "m"));
});

Deno.test("launch/serve a broken configuration starts nothing", async () => {
  using house = scratchHouse();
  config(house, "loopd", "no_such_key = 1\n");
  refusedToStart(await serve(house, ["loopd", "[]"]), /config-invalid: .*loopd\.toml/);
  config(house, "loopd", "[[[\n");
  refusedToStart(await serve(house, ["loopd", "[]"]), /config-invalid: .*loopd\.toml/);
});

Deno.test("launch/serve a root that covers the home, the source or a link starts nothing", async () => {
  using house = scratchHouse();
  Deno.symlinkSync("/usr", `${house.folder}/usr-link`);
  for (
    const root of [
      house.home,
      `${house.home}/grants`,
      house.folder,
      house.source,
      `${house.folder}/usr-link`,
    ]
  ) {
    config(house, "brokerd", `[paths]\nroots = ["${root}"]\n`);
    refusedToStart(await serve(house, ["brokerd", "[]"]), /root-forbidden/);
  }
});

Deno.test("launch/serve an unsafe home starts nothing", async () => {
  using house = scratchHouse();
  const { home } = house;
  strictEqual((await serve(house, ["egressd", "[]"])).code, 0);
  const cases: [() => void, () => void, RegExp][] = [
    [
      () => Deno.chmodSync(`${home}/sessions`, 0o755),
      () => Deno.chmodSync(`${home}/sessions`, 0o700),
      /sessions is open/,
    ],
    [() => Deno.chmodSync(home, 0o777), () => Deno.chmodSync(home, 0o700), /written by others/],
    [
      () => Deno.symlinkSync("/tmp", `${home}/run/x`),
      () => Deno.removeSync(`${home}/run/x`),
      /does not belong/,
    ],
    [
      () => Deno.writeTextFileSync(`${home}/run/loop-infer/infer.sock`, ""),
      () => Deno.removeSync(`${home}/run/loop-infer/infer.sock`),
      /does not belong/,
    ],
    [
      () => Deno.symlinkSync("/run/x.sock", `${home}/run/loop-infer/infer.sock`),
      () => Deno.removeSync(`${home}/run/loop-infer/infer.sock`),
      /does not belong/,
    ],
    [
      () => {
        Deno.removeSync(`${home}/queue`);
        Deno.symlinkSync("/tmp", `${home}/queue`);
      },
      () => Deno.removeSync(`${home}/queue`),
      /queue is not a folder/,
    ],
  ];
  for (const [harm, mend, why] of cases) {
    harm();
    refusedToStart(await serve(house, ["egressd", "[]"]), why);
    mend();
  }
  strictEqual((await serve(house, ["egressd", "[]"])).code, 0);
});

Deno.test("launch/serve a home that is missing, too long or has a comma starts nothing", async () => {
  using house = scratchHouse();
  const at = (home: string) => serve({ ...house, home }, ["egressd", "[]"]);
  refusedToStart(await at(`${house.folder}/none`), /no home folder/);
  const long = `${house.folder}/${"x".repeat(80)}`;
  Deno.mkdirSync(long, { mode: 0o700 });
  refusedToStart(await at(long), /more than 75/);
  Deno.mkdirSync(`${house.folder}/a,b`, { mode: 0o700 });
  refusedToStart(await at(`${house.folder}/a,b`), /comma/);
  refusedToStart(await at(`${house.folder}/a\nb`), /line break/);
  refusedToStart(await serve(house, ["nobody"]), /no such role/);
});

Deno.test("launch/serve arguments of the owner pass unchanged", async () => {
  using house = scratchHouse();
  const odd = ["a  b", "*", "$HOME", "`id`", "line\nbreak", "", "--allow-all", "'\""];
  const printed = await serve(house, ["bxctl", "--print", ...odd]);
  ok(printed.out.endsWith(`/roles/bxctl/main.ts\n${odd.join("\n")}\n`), printed.out);
});

Deno.test("launch/serve words of a message or query write no file, and an export empties none", async () => {
  using house = scratchHouse();
  Deno.writeTextFileSync(
    `${house.source}/roles/bxctl/main.ts`,
    `console.log(Deno.args.length);\n`,
  );
  const file = `${house.folder}/thesis`;
  Deno.writeTextFileSync(file, "three years");
  const words = [
    ["chat", "-m", `--html=${file}`],
    ["recall", "--html", file],
    ["chat", "-m", "sessions export", "--html", file],
    ["sessions", "export", "x", "--html", file],
    ["sessions", "export", "x", `--html=${file}`],
  ];
  for (const args of words) {
    const ran = await serve(house, ["bxctl", ...args]);
    strictEqual(Deno.readTextFileSync(file), "three years", args.join(" "));
    strictEqual(ran.code, args[0] === "sessions" ? 2 : 0, ran.err);
  }
  const page = `${house.folder}/page`;
  strictEqual((await serve(house, ["bxctl", "sessions", "export", "x", "--html", page])).out, "");
  strictEqual(Deno.readTextFileSync(page), "5\n");
  strictEqual((Deno.statSync(page).mode ?? 0) & 0o777, 0o600);
});

Deno.test("launch/serve an export that fails or is ended leaves no page and nothing beside it", async () => {
  using house = scratchHouse();
  const folder = `${house.folder}/pages`;
  Deno.mkdirSync(folder);
  const page = `${folder}/page`;
  const program = (end: string) =>
    Deno.writeTextFileSync(
      `${house.source}/roles/bxctl/main.ts`,
      `console.log("half a page");\n${end}\n`,
    );
  const exported = () => serve(house, ["bxctl", "sessions", "export", "x", "--html", page]);
  const killed = `Deno.kill(Deno.pid, "SIGKILL"); await new Promise(() => {});`;
  for (const [end, code] of [["Deno.exit(7);", 7], [killed, 137]] as const) {
    program(end);
    strictEqual((await exported()).code, code);
    deepStrictEqual([...Deno.readDirSync(folder)], []);
  }
  Deno.writeTextFileSync(page, "");
  program("Deno.exit(0);");
  strictEqual((await exported()).code, 0);
  deepStrictEqual([...Deno.readDirSync(folder)].map((one) => one.name), ["page"]);
  strictEqual(Deno.readTextFileSync(page), "half a page\n");
  strictEqual((Deno.statSync(page).mode ?? 0) & 0o777, 0o600);
});

Deno.test("launch/serve --print needs no home and no configuration", async () => {
  using house = scratchHouse();
  const printed = await serve({ ...house, home: "/no/such/home" }, ["memoryd", "--print"]);
  strictEqual(printed.code, 0, printed.err);
  match(printed.out, /^--allow-write=\/no\/such\/home\/run\//m);
});

Deno.test("launch/serve an inherited descriptor does not reach the role", async () => {
  using house = scratchHouse();
  Deno.writeTextFileSync(
    `${house.source}/roles/egressd/main.ts`,
    `await new Promise((resolve) => setTimeout(resolve, 60_000));\n`,
  );
  const script = `exec 5</etc/passwd 17</etc/passwd; exec /bin/bash "$@"`;
  const child = new Deno.Command("/bin/bash", {
    args: ["-c", script, "sh", "-c", `exec /bin/sh ${house.source}/launch/serve egressd`],
    clearEnv: true,
    env: { PATH: "/usr/bin:/bin", BOXMAKER_HOME: house.home, BOXMAKER_DENO: Deno.execPath() },
    stdin: "null",
    stdout: "null",
    stderr: "null",
  }).spawn();
  try {
    await until(() => commandOf(child.pid).includes("/roles/egressd/main.ts"));
    const open = [...Deno.readDirSync(`/proc/${child.pid}/fd`)]
      .map((entry) => linkOf(`/proc/${child.pid}/fd/${entry.name}`));
    deepStrictEqual(open.filter((target) => target === "/etc/passwd"), []);
  } finally {
    child.kill("SIGKILL");
    await child.status;
  }
});

Deno.test("launch/serve becomes the role: the started process is it, and its signals are its own", async () => {
  using house = scratchHouse();
  Deno.writeTextFileSync(
    `${house.source}/roles/egressd/main.ts`,
    `await new Promise((resolve) => setTimeout(resolve, 60_000));\n`,
  );
  for (const signal of ["SIGTERM", "SIGKILL"] as const) {
    const child = new Deno.Command("/bin/sh", {
      args: [`${house.source}/launch/serve`, "egressd"],
      clearEnv: true,
      env: { PATH: "/usr/bin:/bin", BOXMAKER_HOME: house.home, BOXMAKER_DENO: Deno.execPath() },
      stdin: "null",
      stdout: "null",
      stderr: "null",
    }).spawn();
    await until(() => commandOf(child.pid).includes("/roles/egressd/main.ts"));
    match(commandOf(child.pid), new RegExp(`^${Deno.execPath()} run --no-prompt `));
    child.kill(signal);
    strictEqual((await child.status).signal, signal);
  }
});

Deno.test("launch/serve on a terminal a refusal is not a question", async () => {
  using house = scratchHouse();
  const acts = JSON.stringify([PASSWD]);
  const run = await new Deno.Command("/usr/bin/script", {
    args: ["-qec", `/bin/sh ${house.source}/launch/serve loopd '${acts}'`, "/dev/null"],
    clearEnv: true,
    env: {
      PATH: "/usr/bin:/bin",
      BOXMAKER_HOME: house.home,
      BOXMAKER_DENO: Deno.execPath(),
      TERM: "xterm",
    },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).output();
  match(new TextDecoder().decode(run.stdout), /^\{"passwd":"NotCapable: [^\n]*\r?\n$/);
});

Deno.test("launch/serve files of a role are the owner's alone, whatever the caller's umask", async () => {
  using house = scratchHouse();
  const act: Act = { name: "mode", act: "umask", on: `${house.home}/queue/queue.db` };
  deepStrictEqual(await probe(house, "gatewayd", [act]), { mode: "ok:600" });
});

Deno.test("launch/serve a secret kept in a variable is passed on, and no other", async () => {
  using house = scratchHouse();
  config(house, "brokerd", `[secrets]\nkey = { env = "BOXMAKER_SECRET_KEY" }\n`);
  const results = await probe(house, "brokerd", [
    { name: "key", act: "env", on: "BOXMAKER_SECRET_KEY" },
    { name: "other", act: "env", on: "BOXMAKER_SECRET_OTHER" },
  ], { BOXMAKER_SECRET_KEY: "a b*$c", BOXMAKER_SECRET_OTHER: "x" });
  strictEqual(results.key, "ok:a b*$c");
  match(String(results.other), /^NotCapable: /);
});

Deno.test("launch/serve a secret kept in a variable is never an argument, and its company stays behind", async () => {
  using house = scratchHouse();
  const key = "BOXMAKER_SECRET_KEY";
  config(house, "brokerd", `[secrets]\nkey = { env = "${key}" }\n`);
  Deno.writeTextFileSync(
    `${house.source}/roles/brokerd/main.ts`,
    `await new Promise((resolve) => setTimeout(resolve, 60_000));\n`,
  );
  // A trace shows each command with its arguments.
  const launcher = `${house.source}/launch/serve`;
  const text = Deno.readTextFileSync(launcher);
  Deno.writeTextFileSync(launcher, text.replace("\nrole=", "\nset -x\nrole="));
  const value = `canary\nDENO_DIR=/tmp\n${key}=x`;
  for (const shell of ["/bin/sh", "/bin/bash"]) {
    const child = new Deno.Command(shell, {
      args: ["-c", 'exec "$0" "$1" brokerd 2>"$2"', shell, launcher, `${house.folder}/trace`],
      clearEnv: true,
      env: {
        PATH: "/usr/bin:/bin",
        BOXMAKER_HOME: house.home,
        BOXMAKER_DENO: Deno.execPath(),
        BOXMAKER_SECRET_OTHER: "x",
        OTEL_DENO: "a\nb=c",
        [key]: value,
      },
      stdin: "null",
      stdout: "null",
      stderr: "null",
    }).spawn();
    try {
      await until(() => commandOf(child.pid).includes("/roles/brokerd/main.ts"));
      const variables = Deno.readTextFileSync(`/proc/${child.pid}/environ`).split("\0");
      ok(variables.includes(`${key}=${value}`));
      deepStrictEqual(
        variables.flatMap((one) => one === "" ? [] : one.slice(0, one.indexOf("="))).sort(),
        [key, "BOXMAKER_HOME", "DENO_DIR", "DENO_NO_UPDATE_CHECK", "HOME", "NO_COLOR"].sort(),
      );
      const trace = Deno.readTextFileSync(`${house.folder}/trace`);
      ok(trace.includes("exec /usr/bin/env"));
      strictEqual(trace.includes("canary"), false);
    } finally {
      child.kill("SIGKILL");
      await child.status;
    }
  }
});

function commandOf(pid: number): string {
  try {
    return Deno.readTextFileSync(`/proc/${pid}/cmdline`).replaceAll("\0", " ");
  } catch {
    return ""; // it has ended: no command is the answer
  }
}

function linkOf(path: string): string {
  try {
    return Deno.readLinkSync(path);
  } catch {
    return ""; // closed while listing
  }
}

async function until(condition: () => boolean): Promise<void> {
  for (let tries = 0; tries < 400; tries++) {
    if (condition()) return;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  throw new Error("did not come true within ten seconds");
}
