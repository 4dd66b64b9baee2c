// Guards: "what runs from an earlier copy is never disturbed, and a changed checkout is copied again".
// The functions are those of bootstrap.sh itself, run in a folder of the test's own.
import { deepStrictEqual, notStrictEqual, strictEqual } from "node:assert";

const SCRIPT = Deno.readTextFileSync(new URL("./bootstrap.sh", import.meta.url));

function functionOf(name: string): string {
  const found = SCRIPT.match(new RegExp(`^${name}\\(\\) \\{\\n.*?^\\}$`, "ms"));
  if (found === null) throw new Error(`bootstrap.sh has no function ${name}`);
  return found[0];
}

function runShell(script: string, folder: string): string {
  const ran = new Deno.Command("/bin/sh", {
    args: ["-euc", script],
    cwd: folder,
    clearEnv: true,
    env: { PATH: "/usr/bin:/bin" },
    stdin: "null",
  }).outputSync();
  strictEqual(ran.code, 0, new TextDecoder().decode(ran.stderr));
  return new TextDecoder().decode(ran.stdout).trim();
}

function withFolder<T>(body: (folder: string) => T): T {
  const folder = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "b x" }));
  try {
    return body(folder);
  } finally {
    Deno.removeSync(folder, { recursive: true });
  }
}

Deno.test("remove_old_copies() keeps the newest three, those named by a process and those it works in", async () => {
  const copies = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "bx" }));
  const started: Deno.ChildProcess[] = [];
  const sleep = (args: string[], cwd: string) =>
    started.push(new Deno.Command("/bin/sh", { args, cwd, stdin: "piped" }).spawn());
  for (const [age, name] of ["p-6", "p-5", "p-4", "p-3", "p-2", "p-1", "q-9"].entries()) {
    Deno.mkdirSync(`${copies}/${name}`);
    Deno.utimeSync(`${copies}/${name}`, age + 1, age + 1);
  }
  sleep(["-c", "read line"], `${copies}/p-6`);
  sleep(["-c", "read line", `${copies}/p-5/main.ts`], copies);
  runShell(
    `copies=${copies} place=p\n${functionOf("remove_old_copies")}\nremove_old_copies`,
    copies,
  );
  const left = [...Deno.readDirSync(copies)].map((entry) => entry.name).sort();
  for (const child of started) {
    await child.stdin.close();
    await child.status;
  }
  Deno.removeSync(copies, { recursive: true });
  deepStrictEqual(left, ["p-1", "p-2", "p-3", "p-5", "p-6", "q-9"]);
});

Deno.test("pack_checkout() odd names and links arrive as they are, and every change gives another hash", () => {
  withFolder((folder) => {
    const here = `${folder}/here`;
    Deno.mkdirSync(`${here}/a b`, { recursive: true });
    const odd = ["-rf", "--checkpoint-action=exec=touch x", "a b/line\nbreak", "*", "@x", "é"];
    for (const name of odd) Deno.writeTextFileSync(`${here}/${name}`, name);
    Deno.symlinkSync("/nonexistent", `${here}/dangling`);
    Deno.symlinkSync("/etc", `${here}/folder`);
    const functions = ["checkout_files", "pack_checkout"].map(functionOf).join("\n");
    const run = (what: string) => runShell(`here='${here}'\n${functions}\n${what}`, folder);
    const hash = () => run("pack_checkout | sha256sum");
    const first = hash();
    strictEqual(hash(), first);
    run(`mkdir ../'${folder.split("/").at(-1)}'/copy; pack_checkout | tar -C copy -xf -`);
    for (const name of odd) strictEqual(Deno.readTextFileSync(`${folder}/copy/${name}`), name);
    strictEqual(Deno.readLinkSync(`${folder}/copy/dangling`), "/nonexistent");
    strictEqual(Deno.readLinkSync(`${folder}/copy/folder`), "/etc");
    Deno.chmodSync(`${here}/@x`, 0o755);
    const second = hash();
    notStrictEqual(second, first);
    Deno.removeSync(`${here}/dangling`);
    Deno.symlinkSync("/elsewhere", `${here}/dangling`);
    notStrictEqual(hash(), second);
  });
});

Deno.test("logged() shows why a command failed, also when it is one of its own that gave up", () => {
  withFolder((folder) => {
    const functions = ["logged", "refuse", "as_root"].map(functionOf).join("\n");
    const run = (what: string) => {
      const script = `say() { echo "$*" >&2; }\nis_root() { false; }\n${functions}\n${what}`;
      const { code, stderr } = new Deno.Command("/bin/sh", {
        args: ["-euc", script],
        cwd: folder,
        clearEnv: true,
        env: { PATH: "/usr/bin:/bin", TMPDIR: folder },
      }).outputSync();
      return { code, said: new TextDecoder().decode(stderr) };
    };
    for (const what of ["sh -c 'echo its own word; exit 7'", "as_root its own word"]) {
      const { code, said } = run(`sudo() { false; }\nlogged "It did not work" ${what}`);
      strictEqual(code, 3);
      strictEqual(/its own word[\s\S]*It did not work; its last lines/.test(said), true, said);
    }
    deepStrictEqual(run("logged x sh -c 'echo quiet'"), { code: 0, said: "" });
    deepStrictEqual([...Deno.readDirSync(folder)], []);
  });
});
