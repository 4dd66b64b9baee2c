// What Podman said when it could not do something, as a code of the house. Texts are matched on a
// stable part; a text that is not known is `container-not-started`, with its first line as the detail.
// The texts hold host paths: they are for the owner and the log, never for the model.
import type { ErrorCode } from "../../../shared/results/codes.ts";
import { INTERRUPTED } from "../../../shared/podman/podman_env.ts";
import { type Err, err } from "../../../shared/results/result.ts";

type Row = readonly [pattern: RegExp, code: ErrorCode, sentence: string];

const ROWS: readonly Row[] = [
  [INTERRUPTED, "runtime-unavailable", "Podman was interrupted and cannot go on by itself"],
  [
    /image not known|invalid reference format/,
    "image-missing",
    "The tool image is not in the store",
  ],
  [/container name ".*" is already in use/, "call-already-started", "This call was started before"],
  [
    /opening seccomp profile failed|loading seccomp profile .* failed/,
    "runtime-unavailable",
    "The system call profile is missing or damaged",
  ],
  [/statfs .*: no such file or directory/, "mount-refused", "A granted path is gone"],
  [
    /error mounting ".*" to rootfs.*invalid argument/s,
    "mount-refused",
    "A granted folder contains another mount",
  ],
  [
    /invalid mount option|duplicate mount destination|wrong number of fields/,
    "internal",
    "The mounts of this call were written wrongly",
  ],
  [
    /exec: "newuidmap": executable file not found/,
    "runtime-unavailable",
    "newuidmap is missing: install the package uidmap",
  ],
  [
    /no subuid ranges found|insufficient UIDs or GIDs|no subgid ranges found/,
    "runtime-unavailable",
    "This user has no lines in /etc/subuid and /etc/subgid",
  ],
  [
    /database configuration mismatch|is not owned by the current user/,
    "runtime-moved",
    "Podman's store or runtime folder was moved",
  ],
  [/longer than 50 characters/, "runtime-moved", "Podman's runtime folder has too long a path"],
  [
    /write to uid_map failed|cannot set up namespace/,
    "runtime-unavailable",
    "Setuid programs are forbidden here (NoNewPrivileges in the unit?)",
  ],
  [/cgroups in hybrid mode not supported/, "runtime-unavailable", "crun cannot run here: use runc"],
  [
    /exec: ".*": stat .*: no such file or directory/,
    "image-changed",
    "The image has no Deno where it should be",
  ],
  [
    /executable file .* not found|default OCI runtime .* not found/,
    "runtime-unavailable",
    "The container runtime is not installed",
  ],
  [
    /error setting rlimit/,
    "runtime-unavailable",
    "A limit of the call is above what this user may have",
  ],
];

/** Maps a failed podman command: its exit status and its standard error. */
export function podmanFailure(status: number, stderr: string): Err {
  const line = firstLine(stderr);
  for (const [pattern, code, sentence] of ROWS) {
    if (pattern.test(stderr)) return err(code, `${sentence}: ${line}`);
  }
  return err("container-not-started", `Podman ended with status ${status}: ${line}`);
}

function firstLine(text: string): string {
  const line = text.split("\n").find((part) => part.trim() !== "") ?? "it said nothing";
  return line.replace(/^Error: /, "").slice(0, 500);
}
