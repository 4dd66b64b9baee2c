// How the owner's own programs end: with the status of their main function, or with one line that
// says why they cannot go on. A stack is of no use to the one who reads it.
import { messageOf } from "../shared/results/result.ts";
import { escapeForDisplay } from "../shared/text/escape.ts";

/** Runs `main` and ends the process: with its status, or with 2 after one line when it throws. */
export async function runMain(name: string, main: () => Promise<number>): Promise<never> {
  try {
    Deno.exit(await main());
  } catch (thrown) {
    console.error(`${name}: ${escapeForDisplay(messageOf(thrown), "line")}`);
    Deno.exit(2);
  }
}

/** Resolves when the process is told to end by one of these signals. */
export function stopSignal(
  names: readonly Deno.Signal[] = ["SIGINT", "SIGTERM", "SIGHUP"],
): Promise<void> {
  return new Promise((resolve) => {
    for (const name of names) Deno.addSignalListener(name, () => resolve());
  });
}
