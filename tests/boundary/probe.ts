// Stands in for a role's main.ts: tries the acts it is given under the role's real flags and prints
// what became of each as one JSON object, `{name: "ok" | "ok:<text>" | "<ErrorName>: <message>"}`.
// Self-contained, so that nothing has to be loaded for it.

/** One act: what to do and on what. */
export type Act = { readonly name: string; readonly act: string; readonly on: string };

const WORKER_EVAL = "data:text/javascript," + encodeURIComponent(
  "try { eval('1'); postMessage('ok') } catch (e) { postMessage(e.name + ': ' + e.message) }",
);

function workerImport(url: string): string {
  return "data:text/javascript," + encodeURIComponent(
    `import(${JSON.stringify(url)}).then(() => postMessage("ok"), ` +
      `(e) => postMessage(e.name + ": " + e.message))`,
  );
}

async function fromWorker(url: string): Promise<string> {
  const worker = new Worker(url, { type: "module" });
  try {
    return await new Promise((resolve, reject) => {
      worker.onmessage = (event) => resolve(String(event.data));
      worker.onerror = (event) => {
        event.preventDefault();
        reject(new TypeError(event.message));
      };
    });
  } finally {
    worker.terminate();
  }
}

function pair(on: string): [string, string] {
  const [from, to] = on.split(" ");
  return [from ?? "", to ?? ""];
}

async function connectTcp(on: string): Promise<void> {
  const [hostname, port] = pair(on);
  (await Deno.connect({ hostname, port: Number(port) })).close();
}

const ACTS: Readonly<Record<string, (on: string) => unknown>> = {
  connect: async (path) => (await Deno.connect({ transport: "unix", path })).close(),
  listen: (path) => Deno.listen({ transport: "unix", path }).close(),
  tcp: connectTcp,
  "tcp-listen": () => Deno.listen({ hostname: "127.0.0.1", port: 0 }).close(),
  fetch: async (url) => await (await fetch(url)).body?.cancel(),
  resolve: (name) => Deno.resolveDns(name, "A"),
  mkdir: (path) => Deno.mkdirSync(path),
  list: (path) => void [...Deno.readDirSync(path)],
  read: (path) => void Deno.readFileSync(path),
  write: (path) => Deno.writeFileSync(path, new Uint8Array([120]), { append: true }),
  remove: (path) => Deno.removeSync(path),
  link: (on) => Deno.linkSync(...pair(on)),
  rename: (on) => Deno.renameSync(...pair(on)),
  symlink: (on) => Deno.symlinkSync(...pair(on)),
  import: async (specifier) => void await import(specifier),
  worker: (url) => fromWorker(url),
  "worker-import": (url) => fromWorker(workerImport(url)),
  "worker-eval": () => fromWorker(WORKER_EVAL),
  // deno-lint-ignore no-eval
  eval: (text) => void (0, eval)(text),
  function: (text) => void new Function(text)(),
  env: (name) => Deno.env.get(name),
  "env-all": () => void Deno.env.toObject(),
  run: (program) => void new Deno.Command(program, { args: ["--version"] }).outputSync(),
  hostname: () => Deno.hostname(),
  dlopen: (path) => void Deno.dlopen(path, {}),
  "storage-set": (text) => localStorage.setItem("probe", text),
  "storage-get": () => localStorage.getItem("probe") ?? "nothing",
  umask: (path) => {
    Deno.writeFileSync(path, new Uint8Array());
    return (Deno.statSync(path).mode ?? 0).toString(8).slice(-3);
  },
  descriptors: () => Deno.args.length,
  wait: (ms) => new Promise((resolve) => setTimeout(resolve, Number(ms))),
};

async function attempt(act: Act): Promise<string> {
  try {
    const run = ACTS[act.act];
    if (run === undefined) return `no such act ${act.act}`;
    const value = await run(act.on);
    if (value === undefined) return "ok";
    return typeof value === "string" && /^(?:ok$|[A-Za-z]+: )/.test(value) ? value : `ok:${value}`;
  } catch (thrown) {
    return thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : `thrown ${thrown}`;
  }
}

const acts: Act[] = JSON.parse(Deno.args[0] ?? "[]");
const results: Record<string, string> = {};
for (const act of acts) results[act.name] = await attempt(act);
console.log(JSON.stringify(results));
Deno.exit(0);
