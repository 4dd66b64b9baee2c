// What brokerd's runtime is asked to run and what it answers. A plan holds everything that a container
// gets; nothing is added later from anywhere else.
import type { Result } from "../../../shared/results/result.ts";
import type { ErrorCode } from "../../../shared/results/codes.ts";
import type { ToolLimits } from "../../../shared/tool/manifest.ts";

export interface Mount {
  /** Real path on the host of a file or folder; becomes /grant/<index> in the container. */
  readonly hostPath: string;
  readonly write: boolean;
}

/** `blind`: the tool owns nothing on the host. `owner`: it is the user, for calls with mounts only. */
export type UserMap = "blind" | "owner";

export interface RunPlan {
  /** `c-<ULID>`; also the container's name, so that a call starts at most once. */
  readonly callId: string;
  /** Name of the tool: the program tk/<tool>.js of the image. */
  readonly tool: string;
  /** Manifest digest of the image, 64 hexadecimal digits. */
  readonly image: string;
  /** The tool's arguments as JSON text, paths already those of the container (/grant/0/name). */
  readonly argsJson: string;
  /** The tool's secrets as JSON text of one object, or null. On standard input only. */
  readonly secretsJson: string | null;
  readonly mounts: readonly Mount[];
  readonly map: UserMap;
  readonly limits: ToolLimits;
  /** The call's egress folder on the host, mounted at /eg, or null. */
  readonly egressFolder: string | null;
  /** Deno's permission flags for the program; see `toolFlags`. */
  readonly flags: readonly string[];
}

export type RunStatus =
  | "ok"
  | "tool_failed"
  | "timeout"
  | "output_capped"
  | "killed"
  | "could_not_start";

export interface RunOutcome {
  readonly status: RunStatus;
  /** The reason code when it could not start, else null. */
  readonly code: ErrorCode | null;
  /** One sentence for the model: the tool's own when it failed, its note when it succeeded. */
  readonly message: string;
  readonly containerName: string;
  /** What Podman or the tool wrote on standard error: for the owner and the log, never the model. */
  readonly log: string;
}

export interface RunIo {
  /** Exact output, in order; at most `limits.output_bytes` in all. */
  onOutput(bytes: Uint8Array): void;
  /** Aborting kills the container; the outcome is `killed`. */
  readonly signal: AbortSignal;
}

/** What bxctl doctor shows about the walls in force. */
interface RuntimeFacts {
  readonly podman: string;
  readonly runtime: "runc" | "crun";
  /** Whether memory, process and CPU limits are cgroups of their own or process limits only. */
  readonly limits: "cgroup" | "process";
}

export type RuntimeStatus =
  | { readonly state: "starting" }
  | { readonly state: "ready"; readonly facts: RuntimeFacts }
  | { readonly state: "refusing"; readonly code: ErrorCode; readonly detail: string };

export interface Runtime {
  status(): RuntimeStatus;
  /** Runs one call to its end. Fails, with nothing started, when the runtime refuses or the plan is wrong. */
  run(plan: RunPlan, io: RunIo): Promise<Result<RunOutcome>>;
  /** Ends every running call as `killed` and removes its container. */
  killAll(): Promise<void>;
}
