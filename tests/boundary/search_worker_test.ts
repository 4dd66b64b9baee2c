// Guards: the search Worker reads logs and notes.md, writes the index, and can do nothing else.
import { deepStrictEqual } from "node:assert";
import { workerPermissions } from "../../roles/memoryd/index_port.ts";

const ALLOWED = ["read a session", "read notes.md", "write the index"];

Deno.test("workerPermissions() lets the search Worker do three things and refuses the rest", async () => {
  const home = Deno.realPathSync(Deno.makeTempDirSync());
  for (const name of ["sessions", "memory", "index", "config"]) Deno.mkdirSync(`${home}/${name}`);
  for (const file of ["sessions/s", "memory/notes.md", "memory/memory.md", "config/memoryd.toml"]) {
    Deno.writeTextFileSync(`${home}/${file}`, "kept");
  }
  const worker = new Worker(new URL("./search_probe.ts", import.meta.url), {
    type: "module",
    deno: { permissions: workerPermissions(home) },
  });
  try {
    const told = new Promise<Record<string, string>>((resolve) => {
      worker.addEventListener("message", (event) => resolve(event.data));
    });
    worker.postMessage(home);
    const done = await told;
    const names = Object.keys(done);
    deepStrictEqual(names.filter((name) => done[name] === "done"), ALLOWED);
    const refused = names.filter((name) => done[name] === "NotCapable");
    deepStrictEqual(refused, names.filter((name) => !ALLOWED.includes(name)));
  } finally {
    worker.terminate();
    Deno.removeSync(home, { recursive: true });
  }
});
