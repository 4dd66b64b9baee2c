// One tool call in the hardened container beside a plain foreground `podman run` of the same image,
// program and folder: time to the first byte of output and to the end.
import { toolFlags } from "../../roles/brokerd/runtime/argv.ts";
import { podmanEnvironment } from "../../shared/podman/podman_env.ts";
import { manifest as READ_FILE } from "../../toolkit/read_file/manifest.ts";
import { inGrantFolder, openTestHouse, planFor, PODMAN } from "../doubles/container_house.ts";
import { inTurn, line, ms, spread } from "./rounds.ts";

const ROUNDS = 15;

interface Marks {
  first: number;
  end: number;
}

export async function benchToolCall(): Promise<void> {
  const { runtime, place, image } = await openTestHouse();
  await inGrantFolder(async (folder) => {
    await Deno.writeTextFile(`${folder}/a.txt`, "hello\n");
    const mounts = [{ hostPath: folder, write: false }];
    const args = { path: "/grant/0/a.txt" };
    const flags = toolFlags(READ_FILE, mounts);
    const ours: Marks[] = [];
    const plain: Marks[] = [];
    const hardened = async () => {
      const plan = planFor(image, "read_file", args, { mounts, flags, limits: READ_FILE.limits });
      const from = performance.now();
      let first = 0;
      const ran = await runtime.run(plan, {
        onOutput: () => void (first ||= performance.now() - from),
        signal: new AbortController().signal,
      });
      if (!ran.ok || ran.value.status !== "ok") throw new Error("The call did not succeed");
      ours.push({ first, end: performance.now() - from });
      return performance.now() - from;
    };
    const bare = async () => {
      const marks = await plainRun(place.folders, image.digest, folder, flags, args);
      plain.push(marks);
      return marks.end;
    };
    await inTurn({ hardened, bare }, ROUNDS);
    report(ours.slice(1), plain.slice(1));
  });
}

async function plainRun(
  folders: Parameters<typeof podmanEnvironment>[0],
  digest: string,
  folder: string,
  flags: readonly string[],
  args: unknown,
): Promise<Marks> {
  const from = performance.now();
  const child = new Deno.Command(PODMAN, {
    args: [
      "--runtime=runc",
      "run",
      "--rm",
      "-i",
      "--pull=never",
      // Its default network needs a program that the house does not, and would only make it slower.
      "--network=none",
      // The image's own user owns nothing on the host; as root of the map the folder can be read.
      "--user=0:0",
      `--volume=${folder}:/grant/0:ro`,
      `localhost/boxmaker/toolkit@sha256:${digest}`,
      "run",
      "--no-prompt",
      ...flags,
      "/tk/read_file.js",
    ],
    clearEnv: true,
    env: podmanEnvironment(folders),
    cwd: folders.store,
    stdin: "piped",
    stdout: "piped",
    stderr: "null",
  }).spawn();
  const writer = child.stdin.getWriter();
  await writer.write(new TextEncoder().encode(`${JSON.stringify({ args, secrets: {} })}\n`));
  let first = 0;
  for await (const _piece of child.stdout) first ||= performance.now() - from;
  await writer.close().catch(() => {});
  if (!(await child.status).success || first === 0) throw new Error("The plain run failed");
  return { first, end: performance.now() - from };
}

function report(ours: readonly Marks[], plain: readonly Marks[]): void {
  const p50 = (marks: readonly Marks[], key: keyof Marks) =>
    spread(marks.map((one) => one[key])).p50;
  for (
    const [key, what, limit] of [
      ["first", "tool call to the first output", 1.25],
      ["end", "tool call to the end", 0.9],
    ] as const
  ) {
    const a = p50(ours, key);
    const b = p50(plain, key);
    line(what, `${ms(a)} against ${ms(b)}: ${(a / b).toFixed(2)}`, `limit ${limit}`);
  }
}
