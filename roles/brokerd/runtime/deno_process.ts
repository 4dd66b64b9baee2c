// The one place where this role starts a program: Podman, by absolute path, with a cleared
// environment of constant names and pipes that are streamed and never collected whole.
import { err, messageOf, ok, type Result } from "../../../shared/results/result.ts";
import type { ProcessPort, Spawned } from "./process.ts";

export interface PodmanProgram {
  /** Absolute path. */
  readonly path: string;
  readonly environment: Readonly<Record<string, string>>;
  /** A folder that the user can read; Podman refuses to start elsewhere. */
  readonly folder: string;
}

/** The real port. */
export function denoProcesses(program: PodmanProgram): ProcessPort {
  if (!program.path.startsWith("/")) throw new TypeError("Podman is named by an absolute path");
  return { spawn: (args) => spawn(program, args) };
}

function spawn(program: PodmanProgram, args: readonly string[]): Result<Spawned> {
  let child: Deno.ChildProcess;
  try {
    child = new Deno.Command(program.path, {
      args: [...args],
      clearEnv: true,
      env: { ...program.environment },
      cwd: program.folder,
      stdin: "piped",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
  } catch (thrown) {
    return err("runtime-unavailable", `Cannot start ${program.path}: ${messageOf(thrown)}`);
  }
  const input = child.stdin.getWriter();
  // A reader that went away also rejects `closed`; write and close report it where it matters.
  input.closed.catch(() => {});
  const stdout = child.stdout.getReader();
  const stderr = child.stderr.getReader();
  return ok({
    write: (bytes) => input.write(bytes).then(() => true, () => false),
    closeInput: () => input.close().catch(() => {}),
    stdout: piecesOf(stdout),
    stderr: piecesOf(stderr),
    abandon: () => {
      for (const pipe of [stdout.cancel(), stderr.cancel(), input.abort()]) pipe.catch(() => {});
    },
    exit: child.status.then((status) => status.code),
    kill: () => killQuietly(child),
  });
}

async function* piecesOf(reader: ReadableStreamDefaultReader<Uint8Array>) {
  for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value;
}

function killQuietly(child: Deno.ChildProcess): void {
  try {
    child.kill("SIGKILL");
  } catch {
    // It has ended by itself.
  }
}
