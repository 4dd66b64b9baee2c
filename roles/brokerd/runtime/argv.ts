// The exact command line of one call's container, as a pure function.
//
// 1. Every destination is made here from an index; nothing of a request chooses one.
// 2. Every mount is quoted as a CSV field, harmless names too; `-v` does not exist.
// 3. Names, digests, flags and numbers are checked against a closed form first; anything else throws,
//    because whoever made the plan is brokerd itself.
import { CallId, Sha256, ToolName } from "../../../shared/ids/ids.ts";
import { ToolLimits } from "../../../shared/tool/manifest.ts";
import type { Manifest } from "../../../shared/tool/manifest.ts";
import { IMAGE_REPOSITORY } from "../../../shared/tool/image_files.ts";
import type { Mount, RunPlan } from "./plan.ts";

/** What stands still between calls. */
export interface ContainerHouse {
  readonly runtime: "runc" | "crun";
  /** Value of the label that the sweep goes by: this home and no other. */
  readonly owner: string;
  readonly seccompFile: string;
  /** Limits that the host's cgroups enforce for this user; empty when they would be ignored. */
  readonly cgroupLimits: ReadonlySet<"memory" | "pids" | "cpu">;
}

/** Label by which the containers of a home are found. */
export const OWNER_LABEL = "boxmaker.owner";

/** What V8 reserves before a program has run a line; below it nothing starts. */
const RESERVED_DATA_BYTES = 587_202_560;
const MIB = 1_048_576;
/** Podman's own clock ends a container this much after ours should have. */
const TIMEOUT_MARGIN_S = 2;
const MAX_MOUNTS = 16;
const EGRESS_SOCKET = "/eg/s.sock";

const MAPS = { blind: 2, owner: 0 } as const;
const ENVIRONMENT = ["DENO_DIR=/dd", "NO_COLOR=1", "HOME=/tmp", "DENO_NO_UPDATE_CHECK=1"];
const FLAG =
  /^--allow-(?:(?:read|write)=\/(?:grant\/[0-9]+|tmp|eg\/s\.sock)(?:,\/(?:grant\/[0-9]+|tmp|eg\/s\.sock))*|env=[A-Z][A-Z0-9_]*(?:,[A-Z][A-Z0-9_]*)*|run=(?!\/bin\/deno$)(?:\/[A-Za-z0-9._+-]+)+|net=[\[\]a-z0-9.:_-]+(?:,[\[\]a-z0-9.:_-]+)*,unix:\/eg\/s\.sock)$/;

/** The container's name: one call, one name, one start. */
export function containerName(callId: string): string {
  return `bx-${CallId.parse(callId)}`;
}

/** How the image is named: by digest, never by a tag. */
export function imageReference(digest: string): string {
  return `${IMAGE_REPOSITORY}@sha256:${Sha256.parse(digest)}`;
}

/** Arguments of every podman process, before its command. */
export function podmanArgs(runtime: "runc" | "crun"): readonly string[] {
  return ["--runtime", runtime, "--log-level=error", "--default-mounts-file=/dev/null"];
}

/** The permission flags a tool's program gets for these mounts: its own needs and nothing else. */
export function toolFlags(
  manifest: Manifest,
  mounts: readonly Mount[],
  hosts: readonly string[] = [],
  program: string | null = null,
): readonly string[] {
  const own = [...(manifest.scratch ? ["/tmp"] : []), ...(hosts.length > 0 ? [EGRESS_SOCKET] : [])];
  const read = [...mounts.map((_mount, index) => `/grant/${index}`), ...own];
  const write = [...mounts.flatMap((m, index) => m.write ? [`/grant/${index}`] : []), ...own];
  const net = [
    ...hosts.map((origin) => origin.replace(/^https?:\/\//, "")),
    `unix:${EGRESS_SOCKET}`,
  ];
  return [
    ...(program === null ? [] : [`--allow-run=${program}`]),
    ...(hosts.length > 0 ? [`--allow-net=${net.join(",")}`] : []),
    ...(read.length > 0 ? [`--allow-read=${read.join(",")}`] : []),
    ...(write.length > 0 ? [`--allow-write=${write.join(",")}`] : []),
    ...(manifest.env.length > 0 ? [`--allow-env=${manifest.env.join(",")}`] : []),
  ];
}

/** The whole argv after the program's name, for an ordinary tool. Throws on a plan of another form. */
export function runArgv(plan: RunPlan, house: ContainerHouse): readonly string[] {
  for (const flag of plan.flags) {
    if (!FLAG.test(flag)) throw new TypeError(`Not a permission flag of a tool: ${flag}`);
  }
  return argv(plan, house, plan.flags);
}

/** As `runArgv`, for the probe: the same container, every permission of the runtime inside. */
export function probeArgv(plan: RunPlan, house: ContainerHouse): readonly string[] {
  if (plan.tool !== "probe") throw new TypeError("Only the probe runs without flags");
  return argv(plan, house, ["--allow-all"]);
}

function argv(plan: RunPlan, house: ContainerHouse, flags: readonly string[]): readonly string[] {
  const limits = ToolLimits.parse(plan.limits);
  return [
    ...podmanArgs(house.runtime),
    ...["run", "-d", "--rm", "-i", "--pull=never"],
    `--name=${containerName(plan.callId)}`,
    `--label=${OWNER_LABEL}=${labelValue(house.owner)}`,
    `--label=boxmaker.call=${plan.callId}`,
    ...WALLS,
    `--security-opt=seccomp=${plainPath(house.seccompFile)}`,
    ...userMap(plan),
    ...limitFlags(limits, house),
    ...ENVIRONMENT.map((value) => `--env=${value}`),
    ...egressFlags(plan.egressFolder),
    ...mountFlags(plan.mounts),
    imageReference(plan.image),
    ...[
      "run",
      "--no-prompt",
      "--cached-only",
      "--no-config",
      "--no-lock",
      "--no-remote",
      "--no-npm",
    ],
    "--no-code-cache",
    `--v8-flags=--max-old-space-size=${heapMiB(limits)}`,
    ...flags,
    `/tk/${ToolName.parse(plan.tool)}.js`,
  ];
}

const WALLS = [
  "--network=none",
  "--log-driver=passthrough",
  "--read-only",
  "--read-only-tmpfs=false",
  "--tmpfs=/tmp:rw,size=16m,mode=1777,noexec,nosuid,nodev",
  "--cap-drop=all",
  "--security-opt=no-new-privileges",
  "--security-opt=mask=/proc/cmdline:/proc/version:/sys/class:/sys/devices",
  "--user=1000:1000",
  "--hostname=tool",
  "--no-hosts",
  "--http-proxy=false",
  "--unsetenv-all",
  "--ipc=none",
  "--uts=private",
  "--pid=private",
  "--cgroupns=private",
  "--systemd=false",
  "--no-healthcheck",
  "--passwd=false",
  "--umask=0077",
  "--workdir=/tmp",
  "--stop-timeout=0",
] as const;

function userMap(plan: RunPlan): readonly string[] {
  if (plan.map === "owner" && plan.mounts.length === 0) {
    throw new TypeError("A call without mounts does not run as the owner");
  }
  const host = MAPS[plan.map];
  return ["--uidmap=0:1:1", `--uidmap=1000:${host}:1`, "--gidmap=0:1:1", `--gidmap=1000:${host}:1`];
}

function limitFlags(limits: ToolLimits, house: ContainerHouse): readonly string[] {
  const has = (name: "memory" | "pids" | "cpu") => house.cgroupLimits.has(name);
  const pair = (name: string, value: number) => `--ulimit=${name}=${value}:${value}`;
  const memory = RESERVED_DATA_BYTES + limits.memory_mb * MIB;
  return [
    `--timeout=${limits.timeout_s + TIMEOUT_MARGIN_S}`,
    pair("nofile", 256),
    pair("core", 0),
    pair("nproc", limits.pids),
    pair("cpu", limits.timeout_s),
    pair("fsize", FILE_BYTES),
    pair("data", memory),
    ...(has("memory") ? [`--memory=${memory}b`, `--memory-swap=${memory}b`] : []),
    ...(has("pids") ? [`--pids-limit=${limits.pids}`] : []),
    ...(has("cpu") ? ["--cpus=1"] : []),
  ];
}

/** Longest single file a tool may write. */
const FILE_BYTES = 64 * MIB;

/** V8's heap stays below the budget, so that its own limit speaks first. */
function heapMiB(limits: ToolLimits): number {
  return Math.max(16, Math.floor(limits.memory_mb * 0.75));
}

function egressFlags(folder: string | null): readonly string[] {
  if (folder === null) return [];
  return [
    `--env=HTTP_PROXY=unix:${EGRESS_SOCKET}`,
    `--env=HTTPS_PROXY=unix:${EGRESS_SOCKET}`,
    mountFlag({ hostPath: folder, write: false }, "/eg"),
  ];
}

function mountFlags(mounts: readonly Mount[]): readonly string[] {
  if (mounts.length > MAX_MOUNTS) throw new TypeError(`More than ${MAX_MOUNTS} mounts in one call`);
  return mounts.map((mount, index) => mountFlag(mount, `/grant/${index}`));
}

function mountFlag(mount: Mount, destination: string): string {
  if (mountProblem(mount.hostPath) !== null) throw new TypeError("A mount that cannot be named");
  const source = `"src=${mount.hostPath.replaceAll('"', '""')}"`;
  const access = mount.write ? "" : "ro=true,";
  return `--mount=type=bind,${source},dst=${destination},${access}bind-nonrecursive,nosuid,nodev,noexec`;
}

/** Why a host path cannot be a mount's source, or null. */
export function mountProblem(path: string): string | null {
  if (!path.startsWith("/")) return "it is not an absolute path";
  if (path.includes("\uFFFD") || !path.isWellFormed()) return "its name is not plain UTF-8";
  if (/\p{Cc}/u.test(path)) return "its name holds a control character";
  if (/(?:^|\/)\.{1,2}(?:\/|$)|\/\/|.\/$/.test(path)) return "it is not written in full";
  return null;
}

function plainPath(path: string): string {
  if (mountProblem(path) !== null || /[,:="]/.test(path)) {
    throw new TypeError("A folder of brokerd's own must have a plain path");
  }
  return path;
}

function labelValue(value: string): string {
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(value)) throw new TypeError("A label of another form");
  return value;
}
