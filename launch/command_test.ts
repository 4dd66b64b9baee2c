// Guards: "a program of the owner's that cannot go on says so in one sentence, never with a stack".
import { match, strictEqual } from "node:assert";

const SOURCE = new URL("./", import.meta.url);

Deno.test("runMain() a missing home, a broken home and a wrong word end with one line", async () => {
  const home = Deno.makeTempDirSync({ prefix: "bx" });
  Deno.writeTextFileSync(`${home}/config`, "");
  Deno.mkdirSync(`${home}/trial`);
  const cases: [string, string[], Record<string, string>, RegExp][] = [
    ["up", [], { BOXMAKER_HOME: "/nonexistent/home" }, /no home folder at \/nonexistent\/home/],
    ["up", [], { BOXMAKER_HOME: home }, /home-unsafe: .*config is not a folder/],
    ["up", ["--nope"], { BOXMAKER_HOME: home }, /--nope/],
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
