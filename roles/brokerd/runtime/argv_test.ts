// Guards the container's command line: whatever a path is called, the right thing is mounted in the
// right place with the right words, or nothing is.
import { deepStrictEqual, ok as isTrue, strictEqual, throws } from "node:assert";
import fc from "fast-check";
import { type ContainerHouse, mountProblem, probeArgv, runArgv, toolFlags } from "./argv.ts";
import type { RunPlan } from "./plan.ts";
import type { Manifest } from "../../../shared/tool/manifest.ts";

const HOUSE: ContainerHouse = {
  runtime: "runc",
  owner: "abc123",
  seccompFile: "/srv/bx/podman/seccomp.json",
  cgroupLimits: new Set(),
};
const DIGEST = "0123456789abcdef".repeat(4);
const PLAN: RunPlan = {
  callId: "c-01ARZ3NDEKTSV4RRFFQ69G5FAV",
  tool: "write_file",
  image: DIGEST,
  argsJson: "{}",
  secretsJson: null,
  mounts: [{ hostPath: "/srv/docs", write: true }],
  map: "owner",
  limits: { timeout_s: 5, output_bytes: 1_000, memory_mb: 64, pids: 32 },
  egressFolder: null,
  flags: ["--allow-read=/grant/0", "--allow-write=/grant/0"],
};

const MANIFEST: Manifest = {
  name: "write_file",
  description: "Writes.",
  parameters: { type: "object", properties: {}, required: [], additionalProperties: false },
  paths: [],
  effect: "local",
  network: false,
  scratch: false,
  env: [],
  limits: PLAN.limits,
  summarise: false,
};

/** Splits one CSV record as Podman's reader does: quotes doubled inside a quoted field. */
function csvFields(record: string): string[] {
  const fields: string[] = [];
  for (let at = 0; at <= record.length;) {
    if (record[at] === '"') {
      let field = "";
      for (at++; record[at] !== '"' || record[at + 1] === '"'; at++) {
        if (record[at] === '"') at++;
        field += record[at];
      }
      fields.push(field);
      at += 2;
    } else {
      const end = record.indexOf(",", at);
      fields.push(record.slice(at, end < 0 ? undefined : end));
      at = end < 0 ? record.length + 1 : end + 1;
    }
  }
  return fields;
}

const mountsOf = (argv: readonly string[]) =>
  argv.filter((arg) => arg.startsWith("--mount=")).map((arg) => csvFields(arg.slice(8)));

const CORPUS = [
  "/srv/docs/x,src=/srv/private",
  "/srv/docs/a,ro=false",
  '/srv/docs/a "quoted" name',
  '/srv/docs/","src=/etc',
  "/srv/docs/with,comma",
  "/srv/docs/colon:/etc:rw",
  "/srv/docs/,dst=/tk",
  "/srv/docs/type=tmpfs",
  "/srv/docs/'",
  "/srv/docs/$HOME `id`",
];

Deno.test("runArgv() a name made of mount words mounts the path that has that name", () => {
  for (const hostPath of CORPUS) {
    const argv = runArgv({ ...PLAN, mounts: [{ hostPath, write: false }] }, HOUSE);
    deepStrictEqual(mountsOf(argv), [[
      "type=bind",
      `src=${hostPath}`,
      "dst=/grant/0",
      "ro=true",
      "bind-nonrecursive",
      "nosuid",
      "nodev",
      "noexec",
    ]]);
  }
});

Deno.test("runArgv() any names at all: sources are kept, destinations come from the index", () => {
  const name = fc.string({ unit: "binary", minLength: 1, maxLength: 20 });
  const path = fc.array(name, { minLength: 1, maxLength: 4 }).map((parts) => `/${parts.join("/")}`);
  const mounts = fc.array(fc.record({ hostPath: path, write: fc.boolean() }), { maxLength: 16 });
  fc.assert(fc.property(mounts, (all) => {
    const plan: RunPlan = { ...PLAN, mounts: all, map: "blind", flags: [] };
    if (all.some((mount) => mountProblem(mount.hostPath) !== null)) {
      throws(() => runArgv(plan, HOUSE), TypeError);
      return;
    }
    const found = mountsOf(runArgv(plan, HOUSE));
    strictEqual(found.length, all.length);
    for (const [index, fields] of found.entries()) {
      const mount = all[index];
      deepStrictEqual(fields.slice(0, 3), [
        "type=bind",
        `src=${mount?.hostPath}`,
        `dst=/grant/${index}`,
      ]);
      strictEqual(fields.includes("ro=true"), mount?.write === false);
      isTrue(fields.includes("bind-nonrecursive") && !fields.some((f) => /^:?[UzZ]$/.test(f)));
    }
  }));
});

Deno.test("mountProblem() refuses what Podman or a reader could take for something else", () => {
  for (
    const path of [
      "",
      "relative",
      "/a\nb",
      "/a\u0000",
      "/a\u007f",
      "/a\u0085",
      "/a\uFFFDb",
      "/a\ud800",
      "/a/../b",
      "/a/./b",
      "/..",
      "/a//b",
      "/a/",
    ]
  ) {
    strictEqual(typeof mountProblem(path), "string", JSON.stringify(path));
  }
  for (const path of CORPUS) strictEqual(mountProblem(path), null);
});

Deno.test("runArgv() takes no flag that opens more than was granted", () => {
  for (
    const flag of [
      "-A",
      "--allow-all",
      "--allow-read",
      "--allow-read=",
      "--allow-read=/",
      "--allow-read=/grant",
      "--allow-read=/grant/0/../..",
      "--allow-read=/grant/0,/etc",
      "--allow-write=/tk",
      "--allow-run=/bin/deno",
      "--allow-ffi",
      "--allow-sys",
      "--allow-net",
      "--allow-net=example.org:443",
      "--allow-env",
      "--allow-read=/tmp --allow-all",
      "--unstable",
      "/tk/probe.js",
    ]
  ) {
    throws(() => runArgv({ ...PLAN, flags: [flag] }, HOUSE), TypeError, flag);
  }
});

Deno.test("runArgv() throws on a plan of another form", () => {
  const evil: readonly Partial<RunPlan>[] = [
    { callId: "c-x --privileged" },
    { tool: "../bin/deno" },
    { tool: "a b" },
    { image: "latest" },
    { image: DIGEST.toUpperCase() },
    { mounts: [], map: "owner" },
    { mounts: Array.from({ length: 17 }, () => ({ hostPath: "/a", write: false })) },
    { limits: { ...PLAN.limits, pids: 1 } },
    { limits: { ...PLAN.limits, timeout_s: 0 } },
  ];
  for (const change of evil) throws(() => runArgv({ ...PLAN, ...change }, HOUSE));
  throws(() => runArgv(PLAN, { ...HOUSE, owner: "x y" }));
  throws(() => runArgv(PLAN, { ...HOUSE, seccompFile: "/a,b" }));
  throws(() => probeArgv(PLAN, HOUSE));
});

const REQUIRED = `--network=none --log-driver=passthrough --read-only --read-only-tmpfs=false
  --cap-drop=all --security-opt=no-new-privileges --user=1000:1000 --ipc=none --pid=private
  --uts=private --cgroupns=private --pull=never --rm -d -i --http-proxy=false --unsetenv-all
  --no-hosts --passwd=false --umask=0077 --stop-timeout=0 --timeout=7 --ulimit=nofile=256:256
  --ulimit=nproc=32:32 --ulimit=cpu=5:5 --ulimit=core=0:0 --ulimit=data=654311424:654311424
  --default-mounts-file=/dev/null --no-prompt --cached-only --no-remote --no-npm --no-config --no-lock`
  .split(/\s+/);

Deno.test("runArgv() every wall is in every command line, and nothing that breaks one", () => {
  for (const map of ["blind", "owner"] as const) {
    const argv = runArgv({ ...PLAN, map }, HOUSE);
    for (const flag of REQUIRED) isTrue(argv.includes(flag), flag);
    for (const kind of ["uidmap", "gidmap"]) {
      isTrue(argv.includes(`--${kind}=0:1:1`));
      isTrue(argv.includes(`--${kind}=1000:${map === "owner" ? 0 : 2}:1`));
    }
    const broken =
      /^(?:-v|--volume|--privileged|--device|--cap-add|--userns|--publish|-p)(?:=|$)|:U|=host/;
    deepStrictEqual(argv.filter((arg) => broken.test(arg) || /ulimit=(?:as|host)/.test(arg)), []);
    isTrue(argv.includes(`localhost/boxmaker/toolkit@sha256:${DIGEST}`));
    strictEqual(argv.at(-1), "/tk/write_file.js");
  }
});

Deno.test("runArgv() limits that would be ignored are not passed, those in force are", () => {
  const ignored = runArgv(PLAN, HOUSE).filter((arg) => /^--(?:memory|pids-limit|cpus)/.test(arg));
  deepStrictEqual(ignored, []);
  const inForce = runArgv(PLAN, { ...HOUSE, cgroupLimits: new Set(["memory", "pids", "cpu"]) });
  for (
    const flag of ["--memory=654311424b", "--memory-swap=654311424b", "--pids-limit=32", "--cpus=1"]
  ) {
    isTrue(inForce.includes(flag), flag);
  }
});

Deno.test("runArgv() neither arguments nor secrets are on the command line", () => {
  const plan = { ...PLAN, argsJson: '{"a":"CANARY-1"}', secretsJson: '{"k":"CANARY-2"}' };
  strictEqual(runArgv(plan, HOUSE).some((arg) => arg.includes("CANARY")), false);
});

Deno.test("toolFlags() a tool may touch its mounts and write only the writable ones", () => {
  const mounts = [{ hostPath: "/a", write: false }, { hostPath: "/b", write: true }];
  deepStrictEqual(toolFlags(MANIFEST, mounts), [
    "--allow-read=/grant/0,/grant/1",
    "--allow-write=/grant/1",
  ]);
  deepStrictEqual(toolFlags({ ...MANIFEST, scratch: true, env: ["A_B"] }, []), [
    "--allow-read=/tmp",
    "--allow-write=/tmp",
    "--allow-env=A_B",
  ]);
  deepStrictEqual(toolFlags(MANIFEST, []), []);
});
