// Guards: "half a result is never taken for a whole one" and "no server is left behind" of the model
// scripts, with a made-up cache and a stand-in server, so that nothing is fetched or built.
import { match, ok as isTrue, strictEqual } from "node:assert";

const DEPLOY = decodeURIComponent(new URL("../../deploy/", import.meta.url).pathname);
const SERVER = "#!/bin/sh\necho 'I srv: listening on http://127.0.0.1:4242' >&2\nexec sleep 600\n";

interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

async function run(
  script: string,
  cache: string,
  args: readonly string[],
  path = "/usr/bin:/bin",
): Promise<Ran> {
  const { code, stdout, stderr } = await new Deno.Command("/bin/sh", {
    args: [`${DEPLOY}${script}`, ...args],
    clearEnv: true,
    env: { BOXMAKER_CACHE: cache, PATH: path },
  }).output();
  const text = new TextDecoder();
  return { code, out: text.decode(stdout), err: text.decode(stderr) };
}

/** The shell's own answer to a question about deploy/model_paths.sh. */
async function said(call: string): Promise<string> {
  const { stdout } = await new Deno.Command("/bin/sh", {
    args: ["-c", `. "${DEPLOY}model_paths.sh"; ${call}`],
  }).output();
  return new TextDecoder().decode(stdout).trim();
}

/** A cache as `model` leaves it, with a stand-in for the server. */
async function filledCache(): Promise<string> {
  const cache = await Deno.makeTempDir({ prefix: "bxmodel" });
  const folders = {
    [`${cache}/${await said("llama_folder")}`]: {
      "llama-server": SERVER,
      [await said("echo $LLAMA_TEMPLATE")]: "template",
    },
    [`${cache}/${await said("smollm2_folder")}`]: { [await said("echo $SMOLLM2_FILE")]: "weights" },
  };
  for (const [folder, files] of Object.entries(folders)) {
    await Deno.mkdir(folder);
    for (const [name, text] of Object.entries(files)) {
      await Deno.writeTextFile(`${folder}/${name}`, text, { mode: 0o755 });
    }
    await new Deno.Command("/bin/sh", { args: ["-c", "sha256sum * > SHA256SUMS"], cwd: folder })
      .output();
  }
  return cache;
}

/** A folder with only these programs in it, as a machine that has no compiler. */
async function bareMachine(cache: string): Promise<string> {
  const bin = `${cache}/bin`;
  await Deno.mkdir(bin);
  const names = "sh id dirname sed sha256sum grep mkdir rm flock df awk cut tail cat kill";
  for (const name of names.split(" ")) await Deno.symlink(`/usr/bin/${name}`, `${bin}/${name}`);
  return bin;
}

Deno.test("model.sh notices one changed byte, and with --no-install says what it would need", async () => {
  const cache = await filledCache();
  try {
    strictEqual((await run("model.sh", cache, [])).code, 0);
    const weights = `${cache}/${await said("smollm2_folder")}/${await said("echo $SMOLLM2_FILE")}`;
    await Deno.writeTextFile(weights, "weighty");
    const ran = await run("model.sh", cache, ["--no-install"], await bareMachine(cache));
    strictEqual(ran.code, 3, ran.err);
    match(ran.err, /Cannot go on as --no-install was given: run apt-get install .*cmake/);
    const left = [...Deno.readDirSync(cache)].filter((entry) => entry.name.startsWith(".new"));
    strictEqual(left.length, 0);
  } finally {
    await Deno.remove(cache, { recursive: true });
  }
});

Deno.test("model.sh --where names three files, or fails when one folder is missing", async () => {
  const cache = await filledCache();
  try {
    const whole = await run("model.sh", cache, ["--where"]);
    strictEqual(whole.code, 0);
    for (const line of whole.out.trim().split("\n")) {
      match(line, /^(server|model|template)=\//);
      isTrue(Deno.statSync(line.slice(line.indexOf("=") + 1)).isFile);
    }
    await Deno.remove(`${cache}/${await said("smollm2_folder")}`, { recursive: true });
    const half = await run("model.sh", cache, ["--where"]);
    strictEqual(half.code, 1);
    strictEqual(half.out, "");
    strictEqual((await run("llama_server.sh", cache, [])).code, 3);
  } finally {
    await Deno.remove(cache, { recursive: true });
  }
});

Deno.test("model.sh refuses a relative cache folder and an unknown option", async () => {
  strictEqual((await run("model.sh", "cache", [])).code, 2);
  strictEqual((await run("model.sh", "/nowhere", ["--force"])).code, 2);
});

/** Resolves with a file's text once it is there. */
async function appears(path: string): Promise<string> {
  for (;;) {
    try {
      return await Deno.readTextFile(path);
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

function lives(pid: number): boolean {
  try {
    return !/^State:\s+[ZX]/m.test(Deno.readTextFileSync(`/proc/${pid}/status`));
  } catch {
    return false;
  }
}

Deno.test("llama_server.sh ends with the process that started it, and had told its port", async () => {
  const cache = await filledCache();
  try {
    const starter = `sh "${DEPLOY}llama_server.sh" --port-file "${cache}/port" & ` +
      `echo $! > "${cache}/pid.new"; mv "${cache}/pid.new" "${cache}/pid"; exec sleep 600`;
    const parent = new Deno.Command("/bin/sh", {
      args: ["-c", starter],
      env: { BOXMAKER_CACHE: cache },
      stderr: "null",
    }).spawn();
    strictEqual(await appears(`${cache}/port`), "4242\n");
    const pid = Number(await appears(`${cache}/pid`));
    isTrue(lives(pid));
    match(Deno.readTextFileSync(`/proc/${pid}/cmdline`), /^sleep/);
    parent.kill("SIGKILL");
    await parent.status;
    while (lives(pid)) await new Promise((resolve) => setTimeout(resolve, 20));
  } finally {
    await Deno.remove(cache, { recursive: true });
  }
});
