// A program on a real terminal, made by script(1): what a person would see, and keys a person types.
export const NO_PTY: string | null = await new Deno.Command("script", { args: ["--version"] })
  .output().then(() => null, () => "script (util-linux) is not installed");

export interface Pty {
  /** Everything that the terminal has shown so far. */
  screen(): string;
  /** Waits until the screen shows this; throws after a minute. */
  see(what: RegExp): Promise<void>;
  type(keys: string): Promise<void>;
  /** Waits for the program's end and gives the whole screen. */
  end(): Promise<string>;
}

/** Runs a shell line on a terminal of its own. */
export function onTerminal(line: string, env: Readonly<Record<string, string>>): Pty {
  const child = new Deno.Command("script", {
    args: ["-q", "-e", "-c", line, "/dev/null"],
    clearEnv: true,
    env: { PATH: "/usr/bin:/bin", SHELL: "/bin/sh", TERM: "xterm", ...env },
    stdin: "piped",
    stdout: "piped",
    stderr: "null",
  }).spawn();
  const keys = child.stdin.getWriter();
  let screen = "";
  const over = (async () => {
    for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) screen += text;
    await child.status;
  })();
  return {
    screen: () => screen,
    async see(what) {
      for (let i = 0; i < 2_400; i++) {
        if (what.test(screen)) return;
        await new Promise((resolve) => setTimeout(resolve, 25));
      }
      throw new Error(`the terminal never showed ${what}: ${JSON.stringify(screen)}`);
    },
    type: (text) => keys.write(new TextEncoder().encode(text)),
    async end() {
      await over;
      await keys.close().catch(() => {});
      return screen;
    },
  };
}
