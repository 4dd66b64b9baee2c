// Guards: "a program of the owner's that cannot go on says so in one sentence, never with a stack".
import { match, ok as isTrue, strictEqual } from "node:assert";
import { socketPath } from "../shared/wire/sockets.ts";

const SOURCE = new URL("./", import.meta.url);

Deno.test("runMain() a missing home, a broken home and a wrong word end with one line", async () => {
  const home = Deno.makeTempDirSync({ prefix: "bx" });
  Deno.writeTextFileSync(`${home}/config`, "");
  Deno.mkdirSync(`${home}/trial`);
  const cases: [string, string[], Record<string, string>, RegExp][] = [
    ["up", [], { BOXMAKER_HOME: "/nonexistent/home" }, /no home folder at \/nonexistent\/home/],
    ["up", [], { BOXMAKER_HOME: home }, /home-unsafe: .*config is not a folder/],
    ["up", ["--nope"], { BOXMAKER_HOME: home }, /--nope/],
    ["up", ["--only", "loopd,nope"], { BOXMAKER_HOME: home }, /no role nope/],
    ["up", ["--only", ""], { BOXMAKER_HOME: home }, /no role/],
    ["try", [], {}, /HOME is not set/],
    ["try", ["--nope"], { HOME: home }, /--nope/],
    ["try", [], { HOME: home }, /no try has made it/],
  ];
  for (const [name, words, env, why] of cases) {
    const { code, stderr } = await new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--no-check", new URL(`${name}.ts`, SOURCE).href, ...words],
      clearEnv: true,
      env: { PATH: "/usr/bin:/bin", DENO_DIR: `${home}/cache`, NO_COLOR: "1", ...env },
      stdin: "null",
    }).output();
    const said = new TextDecoder().decode(stderr);
    match(said, new RegExp(`^${name}: [^\\n]*\\n$`));
    match(said, why);
    strictEqual(code, 2);
  }
  Deno.removeSync(home, { recursive: true });
});

function upAt(home: string, words: readonly string[]): Deno.ChildProcess {
  return new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-check", new URL("up.ts", SOURCE).href, "--only", "egressd", ...words],
    env: { BOXMAKER_HOME: home },
    stdin: "null",
    stdout: "null",
    stderr: "piped",
  }).spawn();
}

const said = async (child: Deno.ChildProcess) =>
  new TextDecoder().decode((await child.output()).stderr);

/** Whether a role of the home still answers its socket. */
async function isServed(home: string): Promise<boolean> {
  const path = socketPath(home, "broker-egress/egress");
  try {
    (await Deno.connect({ transport: "unix", path })).close();
    return true;
  } catch {
    // Nobody is there, which is the answer.
    return false;
  }
}

Deno.test("up a home whose roles run already is left to them, and nothing is called ready", async () => {
  const home = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "bx" }));
  const ready = `${home}/ready`;
  const first = upAt(home, ["--ready-file", ready]);
  for (let i = 0; i < 400 && !await isServed(home); i++) {
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  const second = upAt(home, ["--ready-file", `${ready}2`]);
  const words = await said(second);
  match(words, /^up: egressd .*already/);
  strictEqual((await second.status).code, 2);
  isTrue(await isServed(home));
  first.kill("SIGTERM");
  match(await said(first), /up: ready\nup: stopping\n$/);
  strictEqual(await isServed(home), false);
  Deno.removeSync(home, { recursive: true });
});

Deno.test("up that cannot go on takes along what it started", async () => {
  const home = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "bx" }));
  const child = upAt(home, ["--ready-file", "/nonexistent/ready"]);
  match(await said(child), /\/nonexistent\/ready/);
  strictEqual((await child.status).code, 2);
  strictEqual(await isServed(home), false);
  Deno.removeSync(home, { recursive: true });
});
