// Guards the table "Who may do what": each role, started by the real launcher under its real flags
// with a probe in place of its program, reaches exactly its own sockets and folders and is refused
// every other act.
import { deepStrictEqual, match, ok, strictEqual } from "node:assert";
import { calledBy, type Role, ROLES, servedBy, SOCKETS } from "../../shared/wire/sockets.ts";
import { HOME_FOLDERS } from "../../shared/permissions/places.ts";
import type { Act } from "./probe.ts";
import {
  countingListener,
  type House,
  listenEverywhere,
  probe,
  scratchHouse,
  serve,
} from "./scratch_house.ts";

/** What each role may write below the home, beside its sockets and lock. */
const WRITES: Readonly<Record<Role, readonly string[]>> = {
  // Its queue is one file; what lies beside it is none of its business.
  gatewayd: [],
  loopd: ["sessions", "runs"],
  inferproxy: [],
  brokerd: ["audit", "broker"],
  egressd: [],
  memoryd: ["memory", "index"],
  bxctl: [],
};
const READS: Readonly<Record<Role, readonly string[]>> = {
  gatewayd: [],
  loopd: ["jobs"],
  inferproxy: [],
  brokerd: ["grants", "jobs"],
  egressd: [],
  memoryd: ["sessions"],
  bxctl: [],
};

function act(name: string, on = "", label = `${name} ${on}`): Act {
  return { name: label, act: name, on };
}

/** Makes the home's folders the way a start does, and a file in each. */
async function prepared(): Promise<House> {
  const house = scratchHouse();
  for (const role of ROLES) Deno.writeTextFileSync(`${house.folder}/x-${role}`, "");
  const first = await serve(house, ["egressd", "[]"]);
  strictEqual(first.code, 0, first.err);
  for (const folder of HOME_FOLDERS) {
    if (folder !== "run") {
      Deno.writeTextFileSync(`${house.home}/${folder}/file`, "x", { mode: 0o600 });
    }
  }
  for (const role of ROLES) {
    Deno.writeTextFileSync(`${house.home}/config/${role}.toml`, "", { mode: 0o600 });
  }
  return house;
}

let house: House;
Deno.test.beforeAll(async () => {
  house = await prepared();
});
Deno.test.afterAll(() => house[Symbol.dispose]());

function refused(results: Record<string, string>, error: RegExp): void {
  for (const [name, result] of Object.entries(results)) {
    match(result, error, `${name} gave ${result}`);
  }
}

for (const role of ROLES) {
  const own = new Set<string>([...servedBy(role), ...calledBy(role)]);
  const foreign = Object.keys(SOCKETS).filter((name) => !own.has(name));

  Deno.test(`permissions(${role}) reaches exactly its own sockets, and no folder around them`, async () => {
    using _listeners = listenEverywhere(house);
    const run = `${house.home}/run`;
    const reached = await probe(
      house,
      role,
      Object.keys(SOCKETS).map((name) => act("connect", `${run}/${name}.sock`, name)),
    );
    for (const [name, result] of Object.entries(reached)) {
      if (own.has(name)) strictEqual(result, "ok", name);
      else match(result, /^NotCapable: /, name);
    }
    const mine = `${run}/${[...own][0]}.sock`;
    const theirs = `${run}/${foreign[0]}.sock`;
    const folder = mine.replace(/\/[^/]+$/, "");
    const around = await probe(house, role, [
      act("listen", `${run}/other.sock`),
      act("listen", `${folder}/other.sock`),
      act("mkdir", `${run}/other`),
      act("mkdir", `${folder}/other`),
      act("list", run),
      act("list", folder),
      act("link", `${theirs} ${mine}`),
      act("link", `${mine} ${theirs}`),
      act("rename", `${theirs} ${mine}`),
      act("rename", `${mine} ${theirs}`),
      act("remove", theirs),
      act("symlink", `${theirs} ${mine}`),
      act("symlink", `/etc/passwd ${house.home}/${WRITES[role][0] ?? "queue"}/link`),
    ]);
    refused(around, /^NotCapable: /);
  });

  Deno.test(`permissions(${role}) reads and writes its own folders and no other`, async () => {
    const { home } = house;
    const acts = HOME_FOLDERS.filter((folder) =>
      folder !== "run" && folder !== "config" && folder !== "locks"
    )
      .flatMap((folder) => [
        act("read", `${home}/${folder}/file`, `read ${folder}`),
        act("write", `${home}/${folder}/file`, `write ${folder}`),
      ]);
    const results = await probe(house, role, acts);
    for (const [name, result] of Object.entries(results)) {
      const [kind, folder] = name.split(" ");
      const may = WRITES[role].includes(String(folder)) ||
        (kind === "read" && READS[role].includes(String(folder)));
      if (may) strictEqual(result, "ok", name);
      else match(result, /^NotCapable: /, name);
    }
    const others = ROLES.filter((other) => other !== role);
    const exact = await probe(house, role, [
      act("read", `${home}/config/${role}.toml`, "own config"),
      ...(role === "bxctl" ? [] : [act("write", `${home}/locks/${role}.lock`, "own lock")]),
      ...(role === "gatewayd" ? [act("write", `${home}/queue/queue.db`, "own queue")] : []),
    ]);
    refused(exact, /^ok$/);
    refused(
      await probe(house, role, [
        act("write", `${home}/config/${role}.toml`),
        act("list", home),
        act("list", `${home}/locks`),
        act("list", `${home}/config`),
        ...others.map((other) => act("read", `${home}/config/${other}.toml`)),
        ...others.map((other) => act("write", `${home}/locks/${other}.lock`)),
        act("write", `${house.source}/roles/${role}/main.ts`),
        act("read", `${house.source}/deno.json`),
        act("list", `${home}/cache/${role}`),
        act("write", `${house.source}/deno.lock`),
      ]),
      /^NotCapable: /,
    );
  });

  Deno.test(`permissions(${role}) no network, program, environment, system or foreign file`, async () => {
    using tcp = countingListener();
    const results = await probe(house, role, [
      act("tcp", `127.0.0.1 ${tcp.port}`),
      act("tcp", `localhost ${tcp.port}`),
      act("tcp", `::1 ${tcp.port}`),
      act("tcp", `0.0.0.0 ${tcp.port}`),
      act("tcp-listen"),
      act("fetch", `http://127.0.0.1:${tcp.port}/`),
      // egressd's open network flag admits these; its own container is the wall (docs/threat-model.md).
      ...(role === "egressd" ? [] : [
        act("resolve", "example.org"),
        act("connect", "\0abstract"),
        act("listen", "\0abstract"),
      ]),
      act("env", "PATH"),
      act("env", "HOME"),
      act("env-all"),
      act("run", "/bin/sh"),
      act("run", "/bin/ls"),
      act("run", Deno.execPath()),
      ...(role === "brokerd" ? [] : [act("run", "/usr/bin/podman")]),
      act("hostname"),
      act("dlopen", "/lib/x86_64-linux-gnu/libc.so.6"),
      act("read", "/etc/passwd"),
      act("read", "/proc/self/environ"),
      act("read", "/proc/self/root/etc/passwd"),
      act("list", "/"),
    ]);
    refused(results, /^(?:NotCapable|PermissionDenied): /);
    strictEqual(tcp.count(), 0, "a connection was seen");
    deepStrictEqual(await probe(house, role, [act("env", "BOXMAKER_HOME", "home")]), {
      home: `ok:${house.home}`,
    });
  });

  Deno.test(`permissions(${role}) no code from text, and none from the network or a registry`, async () => {
    using tcp = countingListener();
    const lock = Deno.readTextFileSync(`${house.source}/deno.lock`);
    const url = `https://localhost:${tcp.port}/x.ts?secret=1`;
    refused(
      await probe(house, role, [
        act("import", url),
        act("import", "npm:left-pad@1.3.0"),
        act("import", "jsr:@std/assert@1.0.0"),
        act("worker", url),
        act("worker-import", url),
        act("worker-import", "npm:left-pad@1.3.0"),
      ]),
      /^TypeError: |^NotCapable: /,
    );
    strictEqual(tcp.count(), 0, "a connection was seen");
    strictEqual(Deno.readTextFileSync(`${house.source}/deno.lock`), lock);
    refused(
      await probe(house, role, [act("eval", "1"), act("function", "1"), act("worker-eval")]),
      /^EvalError: /,
    );
  });
}

Deno.test("permissions(brokerd) may start podman by its absolute path", {
  ignore: !exists("/usr/bin/podman"),
}, async () => {
  const results = await probe(house, "brokerd", [act("run", "/usr/bin/podman", "podman")]);
  deepStrictEqual(results, { podman: "ok" });
});

Deno.test("launch/serve localStorage of one role is not another's", async () => {
  await probe(house, "gatewayd", [act("storage-set", "secret")]);
  const found = await probe(house, "loopd", [act("storage-get", "", "found")]);
  deepStrictEqual(found, { found: "ok:nothing" });
});

function exists(path: string): boolean {
  try {
    Deno.statSync(path);
    return true;
  } catch (thrown) {
    ok(thrown instanceof Deno.errors.NotFound);
    return false;
  }
}
