// Guards run_command: the words of argv as they are, both outputs, the status, and every way not to start.
import { match, strictEqual } from "node:assert";
import { playTool } from "../../tests/doubles/tool_call.ts";
import { runCommand, type Spawn } from "./run_command.ts";

const spawn: Spawn = ({ argv, cwd }) =>
  new Deno.Command(argv[0] ?? "", {
    args: argv.slice(1),
    cwd,
    clearEnv: true,
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
const play = (args: Record<string, unknown>) => playTool(runCommand(spawn), args);

Deno.test("runCommand() a program that is not there, or two folders, is told by name", async () => {
  const none = await play({ argv: ["/no/such"] });
  strictEqual(none.outcome.ok ? "" : none.outcome.code, "not-started");
  const two = await play({ argv: ["/bin/echo"], cwd: "/tmp", workspace: "/tmp" });
  strictEqual(two.outcome.ok ? "" : two.outcome.code, "two-folders");
});

Deno.test("runCommand() no word is taken apart or expanded", async () => {
  const { text } = await play({ argv: ["/bin/echo", "a  b", "$HOME", "*", "; ls", "`x`"] });
  strictEqual(text, "a  b $HOME * ; ls `x`\n");
});

Deno.test("runCommand() passes input on, both outputs back, and tells the status", async () => {
  const cat = await play({ argv: ["/bin/cat"], stdin: "é\n" });
  strictEqual(cat.text, "é\n");
  strictEqual(cat.outcome.ok && cat.outcome.value, "exit status 0");
  const failing = await play({ argv: ["/bin/sh", "-c", "echo out; echo bad >&2; exit 3"] });
  strictEqual(failing.outcome.ok && failing.outcome.value, "exit status 3");
  match(failing.text, /out/);
  match(failing.text, /bad/);
  const deaf = await play({ argv: ["/bin/true"], stdin: "x".repeat(262_144) });
  strictEqual(deaf.outcome.ok && deaf.outcome.value, "exit status 0");
  const killed = await play({ argv: ["/bin/sh", "-c", "kill -9 $$"] });
  strictEqual(killed.outcome.ok && killed.outcome.value, "ended by signal SIGKILL");
  strictEqual((await play({ argv: ["/bin/pwd"], cwd: "/usr" })).text, "/usr\n");
});
