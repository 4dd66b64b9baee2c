// Looks at its own container and prints what it finds as one JSON object. It takes no input and is in
// no catalogue: brokerd runs it with every permission of the runtime, so that only the container's
// walls are left to be seen, before it accepts any call.
import { runTool } from "../../shared/tool/deno_tool.ts";
import { ok } from "../../shared/results/result.ts";

function field(status: string, name: string): string {
  return new RegExp(`^${name}:\\s*(.*)$`, "m").exec(status)?.[1]?.trim() ?? "";
}

/** `allowed`, or the name of the error. */
async function tried(work: () => unknown): Promise<string> {
  try {
    await work();
    return "allowed";
  } catch (thrown) {
    return thrown instanceof Error ? thrown.name : "unknown";
  }
}

await runTool(async (call) => {
  const status = Deno.readTextFileSync("/proc/self/status");
  const interfaces = Deno.readTextFileSync("/proc/net/dev").split("\n").slice(2)
    .map((line) => line.split(":")[0]?.trim() ?? "").filter((name) => name !== "");
  const mounts = Deno.readTextFileSync("/proc/self/mountinfo").trimEnd().split("\n")
    .map((line) => line.split(" ")[4] ?? "").toSorted();
  const processes = [...Deno.readDirSync("/proc")].map((entry) => entry.name)
    .filter((name) => /^[0-9]+$/.test(name)).toSorted();
  await call.write(JSON.stringify({
    uid: Deno.uid(),
    gid: Deno.gid(),
    groups: field(status, "Groups"),
    capabilities: ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"].map((n) => field(status, n)),
    no_new_privileges: field(status, "NoNewPrivs"),
    seccomp: field(status, "Seccomp"),
    interfaces,
    mounts,
    processes,
    environment: Object.keys(Deno.env.toObject()).toSorted(),
    root_write: await tried(() => Deno.writeTextFileSync("/x", "")),
    connect: await tried(() => Deno.connect({ hostname: "127.0.0.1", port: 9 })),
    listen: await tried(() => Deno.listen({ port: 0 }).close()),
    command_line: await tried(() => {
      if (Deno.readTextFileSync("/proc/cmdline") === "") throw new Error("masked");
    }),
  }));
  return ok("");
});
