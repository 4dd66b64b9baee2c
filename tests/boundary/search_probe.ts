// Stands in the search Worker's place and tells which acts its permissions let it do.
const acts: Record<string, (home: string) => unknown> = {
  "read a session": (home) => Deno.readTextFileSync(`${home}/sessions/s`),
  "read notes.md": (home) => Deno.readTextFileSync(`${home}/memory/notes.md`),
  "write the index": (home) => Deno.writeTextFileSync(`${home}/index/x`, ""),
  "write a session": (home) => Deno.writeTextFileSync(`${home}/sessions/s`, ""),
  "write notes.md": (home) => Deno.writeTextFileSync(`${home}/memory/notes.md`, ""),
  "read memory.md": (home) => Deno.readTextFileSync(`${home}/memory/memory.md`),
  "write memory.md": (home) => Deno.writeTextFileSync(`${home}/memory/memory.md`, ""),
  "read the configuration": (home) => Deno.readTextFileSync(`${home}/config/memoryd.toml`),
  "read the environment": () => Deno.env.get("HOME"),
  "listen": () => Deno.listen({ port: 0, hostname: "127.0.0.1" }),
  "dial a socket": (home) => Deno.listen({ transport: "unix", path: `${home}/index/s.sock` }),
  "run a program": () => new Deno.Command("/bin/true").outputSync(),
  "read the process table": () => Deno.readTextFileSync("/proc/self/environ"),
};

globalThis.addEventListener("message", (event) => {
  const home = event instanceof MessageEvent ? String(event.data) : "";
  const done: Record<string, string> = {};
  for (const [name, act] of Object.entries(acts)) {
    try {
      act(home);
      done[name] = "done";
    } catch (thrown) {
      done[name] = thrown instanceof Error ? thrown.name : String(thrown);
    }
  }
  const post: unknown = Reflect.get(globalThis, "postMessage");
  if (typeof post === "function") post.call(globalThis, done);
});
