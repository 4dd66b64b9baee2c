// Runs one program for the gate with a limit on its time and gives back what it said.

export type ToolRun = {
  readonly code: number;
  readonly signal: Deno.Signal | null;
  readonly output: string;
};

const LIMIT_MS = 5 * 60_000;

/** Runs `program` in `folder`; stdout and stderr together, in that order. */
export async function runTool(
  program: string,
  args: readonly string[],
  folder: string,
): Promise<ToolRun> {
  const out = await new Deno.Command(program, {
    args: [...args],
    cwd: folder,
    env: { NO_COLOR: "1" },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
    signal: AbortSignal.timeout(LIMIT_MS),
  }).output();
  const decoder = new TextDecoder();
  const { code, signal } = out;
  return { code, signal, output: decoder.decode(out.stdout) + decoder.decode(out.stderr) };
}
