// Guards the last look before a mount: whatever a path has become since it was decided on, only the very
// file or folder that was meant is mounted.
import { deepStrictEqual } from "node:assert";
import { denoDisk } from "../../../shared/disk/deno_disk.ts";
import { prepareCall } from "./call_line.ts";
import type { RunPlan } from "./plan.ts";

const PLAN: RunPlan = {
  callId: "c-01ARZ3NDEKTSV4RRFFQ69G5FAV",
  tool: "look",
  image: "0".repeat(64),
  argsJson: "{}",
  secretsJson: null,
  mounts: [],
  map: "owner",
  limits: { timeout_s: 5, output_bytes: 10, memory_mb: 64, pids: 32 },
  egressFolder: null,
  flags: [],
};
const HOUSE = {
  runtime: "runc",
  owner: "abc",
  seccompFile: "/s/seccomp.json",
  cgroupLimits: new Set<"memory">(),
} as const;

Deno.test("prepareCall() a path that is a link, a second name or gone by now is not mounted", () => {
  const base = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "bx" }));
  try {
    for (const name of ["plain", "linked", "named"]) Deno.writeTextFileSync(`${base}/${name}`, "");
    Deno.linkSync(`${base}/named`, `${base}/other`);
    Deno.mkdirSync(`${base}/folder`);
    Deno.symlinkSync(`${base}/folder`, `${base}/to_folder`);
    Deno.symlinkSync(`${base}/linked`, `${base}/to_file`);
    const names = ["to_file", "to_folder", "to_folder/x", "named", "gone", ".", "plain", "folder"];
    const mounted = names.filter((name) => {
      const mounts = [{ hostPath: `${base}/${name}`, write: false }];
      return prepareCall({ ...PLAN, mounts }, HOUSE, denoDisk).ok;
    });
    deepStrictEqual(mounted, ["plain", "folder"]);
    const ways = ["to_folder", "plain", "gone", "folder"].filter((name) => {
      const plan: RunPlan = { ...PLAN, map: "blind", egressFolder: `${base}/${name}` };
      return prepareCall(plan, HOUSE, denoDisk).ok;
    });
    deepStrictEqual(ways, ["folder"]);
  } finally {
    Deno.removeSync(base, { recursive: true });
  }
});
