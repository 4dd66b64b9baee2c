// Guards the hidden prompt of `bxctl secrets set` on a real terminal: nothing that is typed is shown,
// and the terminal shows what is typed again afterwards, however the prompt ended.
import { deepStrictEqual, match, ok, strictEqual } from "node:assert";
import { decodeUtf8 } from "../../shared/wire/codec.ts";
import { ok as good } from "../../shared/results/result.ts";
import { listen, on } from "../../shared/wire/listen.ts";
import { socketPath } from "../../shared/wire/sockets.ts";
import { SECRET_SET } from "../../shared/wire/broker_owner.ts";
import { NO_PTY, onTerminal, type Pty } from "../doubles/pty.ts";

const SOURCE = decodeURIComponent(new URL("../../", import.meta.url).pathname);
const CANARY = "hunter2-päss";

/** Types `keys` at the prompt; what brokerd got, what was shown, and the terminal's state after it. */
async function typed(keys: readonly string[], work?: (pty: Pty) => Promise<void>) {
  const home = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "bx" }));
  const got: string[] = [];
  const path = socketPath(home, "owner-broker/admin");
  for (const folder of ["run", "config", path.slice(home.length + 1, path.lastIndexOf("/"))]) {
    Deno.mkdirSync(`${home}/${folder}`, { recursive: true, mode: 0o700 });
  }
  const routes = [on(SECRET_SET, (_body, io) => {
    const text = decodeUtf8(io.upload);
    got.push(text.ok ? text.value : "not UTF-8");
    return good({ kind: "secret_kept", body: { was_there: false } });
  })];
  const server = listen({ path, routes, log: () => {} });
  try {
    // The shell outlives the signal of Ctrl-C and shows how the terminal was left.
    const command = `echo pid $$; exec /bin/sh ${SOURCE}launch/serve bxctl secrets set key`;
    const line = `trap : INT; /bin/sh -c '${command}'; ` +
      "echo status $?; stty -a; read -r rest; echo again:$rest";
    const pty = onTerminal(line, { BOXMAKER_HOME: home, BOXMAKER_DENO: Deno.execPath() });
    await pty.see(/not shown/);
    for (const key of keys) await pty.type(key);
    await work?.(pty);
    await pty.see(/status \d+[\s\S]*-?echo\b/);
    await pty.type("visible\n");
    return { got, screen: await pty.end() };
  } finally {
    await server.close();
    Deno.removeSync(home, { recursive: true });
  }
}

/** The terminal is as it was: lines are edited, and what is typed is shown. */
function restored(screen: string): void {
  const after = screen.slice(screen.indexOf("status "));
  for (const word of ["icanon", "echo", "isig"]) {
    match(after, new RegExp(`(?:^|[ ;])${word}\\b`, "m"), `${word} is off: ${after}`);
  }
  ok(after.includes("visible\r\nagain:visible"), `typing is not shown: ${after}`);
}

const why = NO_PTY === null ? "" : ` (skipped: ${NO_PTY})`;
function ptyTest(name: string, run: () => Promise<void>): void {
  Deno.test({ name: `${name}${why}`, ignore: NO_PTY !== null, fn: run });
}

ptyTest(
  "secrets set Ctrl-C ends the prompt, keeps nothing and leaves the terminal as it was",
  async () => {
    const { got, screen } = await typed([CANARY.slice(0, 7), "\x03"]);
    deepStrictEqual(got, []);
    ok(!screen.includes("hunter"), screen);
    match(screen, /status 130\b/);
    restored(screen);
  },
);

ptyTest(
  "secrets set a signal that ends the program leaves the terminal as it was, too",
  async () => {
    const { got, screen } = await typed(["hunter2"], async (pty) => {
      await new Promise((resolve) => setTimeout(resolve, 500));
      const pid = Number(/pid (\d+)/.exec(pty.screen())?.[1]);
      ok(pid > 1, pty.screen());
      Deno.kill(pid, "SIGTERM");
      return Promise.resolve();
    });
    deepStrictEqual(got, []);
    ok(!screen.includes("hunter"), screen);
    match(screen, /status 143\b/);
    restored(screen);
  },
);

ptyTest("secrets set Ctrl-D and an empty line keep nothing", async () => {
  for (const keys of ["\x04", "\n"]) {
    const { got, screen } = await typed([keys]);
    deepStrictEqual(got, []);
    match(screen, /No secret was typed[\s\S]*status 2/);
    restored(screen);
  }
});

ptyTest("secrets set shows nothing of what is typed, and takes back what is deleted", async () => {
  const { got, screen } = await typed([`${CANARY}x`, "\x7f", "\r"]);
  deepStrictEqual(got, [CANARY]);
  for (const part of [CANARY, "hunter", "päss", "*"]) ok(!screen.includes(part), screen);
  match(screen, /Kept the secret key[\s\S]*status 0/);
  restored(screen);
  strictEqual(screen.includes("Secret key (not shown): "), true);
});
