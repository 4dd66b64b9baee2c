// Guards the checks at start: each way in which the host, the image, the folders or the container can be
// wrong is found and named.
import { deepStrictEqual, ok as isTrue, strictEqual } from "node:assert";
import type { ImageEntry } from "../../../shared/tool/image_files.ts";
import { MAX_RUN_BYTES, podmanFiles, runFolderOf } from "../../../shared/podman/podman_env.ts";
import { denoDisk } from "../../../shared/disk/deno_disk.ts";
import { podmanFailure } from "./failures.ts";
import { hostFacts } from "./host_check.ts";
import { firstDifference, layerFolders } from "./image_check.ts";
import { checkProbe, type Seen } from "./probe_check.ts";
import { prepareFolders } from "./store_folder.ts";
import { readResult } from "./tool_result.ts";

const SEEN: Seen = {
  uid: 1000,
  gid: 1000,
  groups: "1000",
  capabilities: ["0000000000000000", "0000000000000000"],
  no_new_privileges: "1",
  seccomp: "2",
  interfaces: ["lo"],
  mounts: ["/", "/proc", "/tmp", "/dev/null"],
  processes: ["1"],
  environment: ["DENO_DIR", "DENO_NO_UPDATE_CHECK", "HOME", "HOSTNAME", "NO_COLOR"],
  root_write: "Error",
  connect: "PermissionDenied",
  listen: "PermissionDenied",
  command_line: "Error",
};

Deno.test("checkProbe() one wall that is missing is enough", () => {
  const evil: readonly Partial<Seen>[] = [
    { uid: 0 },
    { gid: 0 },
    { groups: "0 1000" },
    { capabilities: ["0000000000000400"] },
    { no_new_privileges: "0" },
    { seccomp: "0" },
    { interfaces: ["eth0", "lo"] },
    { interfaces: [] },
    { mounts: ["/", "/home/owner"] },
    { mounts: ["/", "/grant/0"] },
    { processes: ["1", "2"] },
    { environment: [...SEEN.environment, "HTTP_PROXY"] },
    { root_write: "allowed" },
    { connect: "ConnectionRefused" },
    { connect: "NotCapable" },
    { listen: "allowed" },
    { command_line: "allowed" },
  ];
  for (const change of evil) {
    const checked = checkProbe({ ...SEEN, ...change }, []);
    strictEqual(!checked.ok && checked.code, "runtime-unsafe", JSON.stringify(change));
  }
  isTrue(checkProbe(SEEN, []).ok);
  isTrue(checkProbe({ ...SEEN, mounts: ["/", "/grant/0"] }, ["/grant/0"]).ok);
});

const INFO = {
  host: {
    cgroupVersion: "v1",
    cgroupControllers: ["memory"],
    security: { rootless: true, seccompEnabled: true },
    idMappings: { uidmap: [1, 2] },
  },
  store: { graphDriverName: "overlay" },
  version: { Version: "4.3.1" },
};

Deno.test("hostFacts() refuses a host on which a wall cannot stand", () => {
  const { host } = INFO;
  const evil: readonly object[] = [
    {},
    { ...INFO, store: { graphDriverName: "vfs" } },
    { ...INFO, host: { ...host, security: { rootless: false, seccompEnabled: true } } },
    { ...INFO, host: { ...host, security: { rootless: true, seccompEnabled: false } } },
    { ...INFO, host: { ...host, idMappings: { uidmap: [1] } } },
    { ...INFO, host: { ...host, idMappings: { uidmap: null } } },
  ];
  for (const info of evil) strictEqual(hostFacts(JSON.stringify(info)).ok, false);
  strictEqual(hostFacts("not JSON").ok, false);
});

Deno.test("hostFacts() believes in a limit only on cgroup v2 with the controller listed", () => {
  const limits = (info: object) => {
    const facts = hostFacts(JSON.stringify(info));
    return facts.ok ? [...facts.value.cgroupLimits] : null;
  };
  deepStrictEqual(limits(INFO), []);
  const v2 = { ...INFO.host, cgroupVersion: "v2", cgroupControllers: ["pids", "memory", "io"] };
  deepStrictEqual(limits({ ...INFO, host: v2 }), ["memory", "pids"]);
});

const BUILT: readonly ImageEntry[] = [
  { path: "bin", type: "folder", mode: 0o755 },
  { path: "bin/deno", type: "file", mode: 0o755, size: 3, sha256: "a".repeat(64) },
  { path: "l", type: "link", target: "bin" },
];

Deno.test("firstDifference() finds any entry that is changed, missing, new or odd", () => {
  const listed = (entries: readonly object[]) => firstDifference(JSON.stringify(entries), BUILT);
  strictEqual(listed(BUILT), null);
  const [folder, program, link] = BUILT;
  const evil: readonly (readonly object[])[] = [
    [],
    BUILT.slice(1),
    [...BUILT, { path: "bin/sh", type: "file", mode: 0o755, size: 1, sha256: "b".repeat(64) }],
    [{ ...folder, mode: 0o777 }, { ...program }, { ...link }],
    [{ ...folder }, { ...program, sha256: "b".repeat(64) }, { ...link }],
    [{ ...folder }, { ...program, mode: 0o4755 }, { ...link }],
    [{ ...folder }, { ...program }, { ...link, target: "/" }],
    [...BUILT, { path: "dev/x", type: "other", mode: 0o666 }],
  ];
  for (const entries of evil) {
    strictEqual(typeof listed(entries), "string", JSON.stringify(entries));
  }
  strictEqual(typeof firstDifference("", BUILT), "string");
});

Deno.test("layerFolders() names the base and every copy of the image, and no other image", () => {
  const id = "c".repeat(64);
  const images = JSON.stringify([
    { id: "d".repeat(64), layer: "1".repeat(64), names: [] },
    { id, layer: "2".repeat(64), "mapped-layers": ["3".repeat(64), "4".repeat(64)], extra: 1 },
  ]);
  const folders = layerFolders(images, id, "/s");
  deepStrictEqual(folders.ok && folders.value.map(({ path }) => path), [
    `/s/overlay/${"2".repeat(64)}/diff`,
    `/s/overlay/${"3".repeat(64)}/diff1`,
    `/s/overlay/${"4".repeat(64)}/diff1`,
  ]);
  const missing = layerFolders(images, "e".repeat(64), "/s");
  strictEqual(!missing.ok && missing.code, "image-missing");
  const evil = layerFolders(JSON.stringify([{ id, layer: "../../etc" }]), id, "/s");
  strictEqual(!evil.ok && evil.code, "image-changed");
});

Deno.test("podmanFailure() every text of Podman's that we know has its own code", () => {
  const texts: readonly (readonly [number, string, string])[] = [
    [125, "Error: localhost/x@sha256:1: image not known", "image-missing"],
    [
      125,
      'Error: creating container storage: the container name "bx-c" is already in use by 1',
      "call-already-started",
    ],
    [125, "Error: statfs /a/b: no such file or directory", "mount-refused"],
    [
      126,
      'Error: runc: error mounting "/a" to rootfs at "/grant/0": invalid argument: OCI runtime error',
      "mount-refused",
    ],
    [125, "Error: database configuration mismatch: x", "runtime-moved"],
    [125, "Error: the specified runroot is longer than 50 characters", "runtime-moved"],
    [
      125,
      'Error: cannot re-exec process: exec: "newuidmap": executable file not found in $PATH',
      "runtime-unavailable",
    ],
    [1, "newuidmap: write to uid_map failed: Operation not permitted", "runtime-unavailable"],
    [
      126,
      "Error: OCI runtime error: crun: cgroups in hybrid mode not supported",
      "runtime-unavailable",
    ],
    [1, 'invalid internal status, try resetting the pause process with "x"', "runtime-unavailable"],
    [125, "Error: wrong number of fields", "internal"],
    [125, "Error: something new", "container-not-started"],
    [125, "", "container-not-started"],
  ];
  for (const [status, text, code] of texts) {
    strictEqual(podmanFailure(status, text).code, code, text);
  }
  isTrue(!podmanFailure(125, "Error: one\ntwo").detail.includes("two"));
});

Deno.test("readResult() takes only a result that agrees with what came", () => {
  const read = (json: string, bytes: number) => readResult(new TextEncoder().encode(json), bytes);
  strictEqual(readResult(null, 0), "The tool ended without a result");
  for (
    const json of [
      "",
      "[]",
      '{"ok":true}',
      '{"ok":true,"bytes":-1,"note":""}',
      '{"ok":true,"bytes":3,"note":"","more":1}',
      '{"ok":false,"code":"A B","message":"x"}',
      '{"ok":false,"code":"x","message":""}',
    ]
  ) {
    strictEqual(typeof read(json, 3), "string", json);
  }
  strictEqual(typeof read('{"ok":true,"bytes":4,"note":""}', 3), "string");
  deepStrictEqual(read('{"ok":true,"bytes":3,"note":"n"}', 3), { ok: true, bytes: 3, note: "n" });
});

Deno.test("runFolderOf() a long home still gets a folder that Podman can use", () => {
  strictEqual(runFolderOf("/var/lib/boxmaker/podman"), "/var/lib/boxmaker/podman-run");
  const long = runFolderOf(`/${"x".repeat(74)}/podman`);
  isTrue(long.length <= MAX_RUN_BYTES && long.startsWith("/tmp/podman-run-"));
  strictEqual(runFolderOf(`/${"y".repeat(74)}/podman`) === long, false);
});

Deno.test("podmanFiles() takes no folder whose name could end a line of its file", () => {
  for (const store of ['/a"b', "/a\nb", "/a\\b", "a"]) {
    let isRefused = false;
    try {
      podmanFiles({ store, run: "/r" });
    } catch (thrown) {
      isRefused = thrown instanceof TypeError;
    }
    isTrue(isRefused, store);
  }
});

Deno.test("prepareFolders() refuses folders that others can open, links, and paths too long", () => {
  const base = Deno.makeTempDirSync({ prefix: "bx-st-" });
  try {
    const folders = { store: `${base}/s`, run: `${base}/r` };
    const refused = (run: string) => {
      const prepared = prepareFolders(denoDisk, { store: folders.store, run });
      return !prepared.ok && prepared.code;
    };
    strictEqual(refused(`${base}/${"x".repeat(40)}`), "runtime-moved");
    if (Deno.uid() === 0) {
      strictEqual(refused(folders.run), "runtime-unavailable");
      return;
    }
    isTrue(prepareFolders(denoDisk, folders).ok);
    isTrue(prepareFolders(denoDisk, folders).ok);
    Deno.chmodSync(folders.run, 0o750);
    strictEqual(refused(folders.run), "runtime-unavailable");
    Deno.symlinkSync(folders.store, `${base}/l`);
    strictEqual(refused(`${base}/l`), "runtime-unavailable");
  } finally {
    Deno.removeSync(base, { recursive: true });
  }
});
