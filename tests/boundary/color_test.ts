// Guards: colour goes to a terminal that wants it and nowhere else, whichever of the two outputs is one.
import { match, ok } from "node:assert";
import { NO_PTY, onTerminal } from "../doubles/pty.ts";

const SOURCE = decodeURIComponent(new URL("../../", import.meta.url).pathname);

/** What a complaint of bxctl looks like, written by a shell line that names it `$BX`. */
async function seen(line: string, env: Readonly<Record<string, string>> = {}): Promise<string> {
  const home = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "bx" }));
  try {
    const bx = `/bin/sh ${SOURCE}launch/serve bxctl nonsense`;
    const shell = { BOXMAKER_HOME: home, BOXMAKER_DENO: Deno.execPath(), BX: bx, ...env };
    return await onTerminal(line, shell).end();
  } finally {
    Deno.removeSync(home, { recursive: true });
  }
}

Deno.test({
  name:
    "denoTerminal() no escape reaches an output that is no terminal, or a terminal with NO_COLOR",
  ignore: NO_PTY !== null,
  fn: async () => {
    ok((await seen("$BX")).includes("\x1b[31musage"));
    for (const line of ["$BX 2>&1 >/dev/tty | cat", "$BX 2>&1 | cat"]) {
      const screen = await seen(line);
      match(screen, /usage: /);
      ok(!screen.includes("\x1b"), `${line}: ${JSON.stringify(screen)}`);
    }
    const plain = await seen("$BX", { NO_COLOR: "1" });
    match(plain, /usage: /);
    ok(!plain.includes("\x1b"), JSON.stringify(plain));
  },
});
