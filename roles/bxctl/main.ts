// bxctl: the owner's command line. A narrow client of the owner's sockets; it opens nothing else.
import { systemClock } from "../../shared/clock/clock.ts";
import { systemRandom } from "../../shared/clock/random.ts";
import { runCommand } from "./commands.ts";
import { denoTerminal } from "./deno_terminal.ts";

// `--json` may stand anywhere before a lone `--`, and means the same for every command.
const words = [...Deno.args];
const end = words.indexOf("--");
const json = words.indexOf("--json");
const wantsJson = json >= 0 && (end < 0 || json < end);
if (wantsJson) words.splice(json, 1);

async function run(): Promise<number> {
  try {
    return await runCommand(context, words);
  } catch (thrown) {
    // The reader of a pipe has seen enough: an end without a word, with the status of that signal.
    if (thrown instanceof Deno.errors.BrokenPipe) return 141;
    throw thrown;
  }
}

const context = {
  terminal: denoTerminal(Deno.exit),
  home: Deno.env.get("BOXMAKER_HOME") ?? "/var/lib/boxmaker",
  clock: systemClock,
  random: systemRandom,
  wantsJson,
};
Deno.exit(await run());
