// What a container is given before it starts: the command line, the line on standard input, and a last
// look at what is about to be mounted.
import type { Disk } from "../../../shared/disk/disk.ts";
import { attempt } from "../../../shared/disk/durable.ts";
import { err, ok, type Result } from "../../../shared/results/result.ts";
import { encodeUtf8, parseCanonicalText } from "../../../shared/wire/codec.ts";
import { MAX_CALL_BYTES } from "../../../shared/tool/sdk.ts";
import { type ContainerHouse, containerName, mountProblem, runArgv } from "./argv.ts";
import type { Mount, RunPlan } from "./plan.ts";

export interface PreparedCall {
  readonly name: string;
  readonly argv: readonly string[];
  readonly line: Uint8Array;
}

/**
 * Makes a plan ready to start. Fails with `mount-refused` when a path is no longer its own real path,
 * is gone, or has a name that cannot be mounted; throws on a plan that brokerd should not have made.
 */
export function prepareCall(
  plan: RunPlan,
  house: ContainerHouse,
  disk: Disk,
): Result<PreparedCall> {
  for (const mount of plan.mounts) {
    const problem = mountRefusal(disk, mount);
    if (problem !== null) {
      return err("mount-refused", `Cannot mount ${JSON.stringify(mount.hostPath)}: ${problem}`);
    }
  }
  const { egressFolder } = plan;
  const egress = egressFolder === null ? null : attempt(() => disk.lstat(egressFolder).kind);
  if (egress !== null && !(egress.ok && egress.value === "folder")) {
    return err("mount-refused", "The call's way out is no folder");
  }
  return ok({
    name: containerName(plan.callId),
    argv: runArgv(plan, house),
    line: callLine(plan.argsJson, plan.secretsJson ?? "{}"),
  });
}

/** The one line of standard input: canonical JSON, so it holds no line break. */
export function callLine(argsJson: string, secretsJson: string): Uint8Array {
  for (const json of [argsJson, secretsJson]) {
    const value = parseCanonicalText(json);
    if (!value.ok || typeof value.value !== "object" || value.value === null) {
      throw new TypeError("A call's arguments and secrets are canonical JSON objects");
    }
  }
  const line = encodeUtf8(`{"args":${argsJson},"secrets":${secretsJson}}\n`);
  if (line.length > MAX_CALL_BYTES) throw new TypeError("A call's line is too long");
  return line;
}

/** Why this mount cannot be made as things are now, or null. */
function mountRefusal(disk: Disk, mount: Mount): string | null {
  const problem = mountProblem(mount.hostPath);
  if (problem !== null) return problem;
  const real = attempt(() => disk.realPath(mount.hostPath));
  if (!real.ok) return "it is gone or may not be read";
  if (real.value !== mount.hostPath) return "it now leads elsewhere";
  const facts = attempt(() => disk.lstat(mount.hostPath));
  if (!facts.ok) return "it is gone or may not be read";
  const { kind, links } = facts.value;
  if (kind === "file" && links !== 1) return "it has other names (hard links)";
  return kind === "file" || kind === "folder" ? null : `it is a ${kind}, not a file or folder`;
}
