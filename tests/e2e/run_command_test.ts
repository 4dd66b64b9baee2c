// Guards run_command in real containers: an image of the owner's own beside the toolkit's, exact words,
// no network, no folder but the granted one, and no other program.
import { match, ok as isTrue, strictEqual } from "node:assert";
import { buildImage, hostSources, writeImage } from "../../deploy/image/build.ts";
import { extraOf } from "../../deploy/image/extra.ts";
import { loadImage } from "../../deploy/image/load.ts";
import { toolFlags } from "../../roles/brokerd/runtime/argv.ts";
import { openRuntime } from "../../roles/brokerd/runtime/open_runtime.ts";
import type { Mount } from "../../roles/brokerd/runtime/plan.ts";
import { systemClock } from "../../shared/clock/clock.ts";
import { systemRandom } from "../../shared/clock/random.ts";
import { denoDisk } from "../../shared/disk/deno_disk.ts";
import { manifest } from "../../toolkit/run_command/manifest.ts";
import { argvProgram } from "../doubles/argv_program.ts";
import {
  containerTest,
  inGrantFolder,
  planFor,
  PODMAN,
  runPlan,
  testFolders,
} from "../doubles/container_house.ts";

const program = await argvProgram();
const why = program === null ? " (skipped: no C compiler)" : "";

containerTest(`run_command a program of an image of its own runs, alone${why}`, async (h) => {
  if (program === null) return;
  const folders = testFolders();
  const source = h.place.source;
  const list = `[files]\n"opt/show" = "/the/program"\n[links]\n"opt/alias" = "show"\n`;
  const extra = extraOf(list, "list.toml", (path) => {
    strictEqual(path, "/the/program");
    return program;
  });
  const image = buildImage(hostSources(source), extra, Deno.version.deno);
  const folder = `${folders.store}-run-image`;
  await writeImage(image, folder);
  const { digest } = image.names;
  await loadImage({ image: folder, digest, podman: PODMAN, ...folders });
  const place = { ...h.place, home: `/run-home-${Deno.pid}`, furtherImages: [folder, "/no/such"] };
  const runtime = openRuntime(place, { clock: systemClock, random: systemRandom, disk: denoDisk });
  strictEqual((await runtime.ready()).state, "ready");

  const run = (argv: string[], more: object, mounts: Mount[] = [], allowed = argv[0] ?? "") => {
    const flags = toolFlags(manifest, mounts, [], allowed);
    const limits = { ...manifest.limits, timeout_s: 20 };
    const own = { folder, digest, hasEscape: false };
    return runPlan(
      runtime,
      planFor(own, "run_command", { argv, ...more }, { mounts, flags, limits }),
    );
  };
  const elsewhere = await runPlan(
    runtime,
    planFor({ ...h.image, digest: "f".repeat(64) }, "run_command", {}),
  );
  strictEqual(elsewhere.status, "image-missing");
  for (const argv of [["/opt/none"], ["/bin/sh", "-c", "true"], ["/tk/run_command.js"]]) {
    strictEqual((await run(argv, {})).status, "tool_failed", argv.join(" "));
  }
  strictEqual((await run(["/opt/alias"], {}, [], "/opt/none")).status, "tool_failed");

  const ran = await run(["/opt/show", "a  b", "$HOME", "*"], { stdin: "line\n" });
  strictEqual(ran.status, "ok", ran.message);
  strictEqual(ran.message, "exit status 0");
  match(ran.text, /^arg a {2}b\narg \$HOME\narg \*\ncwd \/tmp\n/m);
  match(ran.text, /^in line$/m);
  match(ran.text, /^socket 1$/m);
  match(ran.text, /^to stderr$/m);
  isTrue(!/^env (?!PATH=|HOME=\/tmp|LANG=)/m.test(ran.text), ran.text);
  strictEqual((await run(["/opt/show", "fail"], {})).message, "exit status 7");

  await inGrantFolder(async (path) => {
    const there = await run(["/opt/show"], { cwd: "/grant/0" }, [{ hostPath: path, write: false }]);
    match(there.text, /^cwd \/grant\/0\nenv/m);
    match(there.text, /^write 30$/m);
    const written = await run(["/opt/show"], { workspace: "/grant/0" }, [
      { hostPath: path, write: true },
    ]);
    match(written.text, /^write 0$/m);
    isTrue(Deno.statSync(`${path}/made`).isFile);
  });
});
