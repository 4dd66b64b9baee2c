// The program of the tool `run_command`, run by Deno in a fresh container whose image holds the programs.
import { runTool } from "../../shared/tool/deno_tool.ts";
import { runCommand } from "./run_command.ts";

await runTool(runCommand(({ argv, cwd }) => {
  const [program = "", ...args] = argv;
  return new Deno.Command(program, {
    args: [...args],
    cwd,
    clearEnv: true,
    env: { PATH: "/usr/bin:/bin", HOME: "/tmp", LANG: "C.UTF-8" },
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
}));
