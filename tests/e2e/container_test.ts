// Inside real containers: no way out is there, limits bite, and every end has its name. Guards what
// toolkit/README.md says of a call.
import { deepStrictEqual, ok as isTrue, strictEqual } from "node:assert";
import { TOOLS } from "../../deploy/image/contents.ts";
import {
  type ContainerHouse,
  containerName,
  probeArgv,
  toolFlags,
} from "../../roles/brokerd/runtime/argv.ts";
import { callLine } from "../../roles/brokerd/runtime/call_line.ts";
import { denoProcesses } from "../../roles/brokerd/runtime/deno_process.ts";
import { podmanOver } from "../../roles/brokerd/runtime/podman.ts";
import { runCall } from "../../roles/brokerd/runtime/run_call.ts";
import type { Mount } from "../../roles/brokerd/runtime/plan.ts";
import { namesOf } from "../../roles/brokerd/runtime/seccomp.ts";
import { REFUSED } from "../doubles/refused_calls.ts";
import { systemClock } from "../../shared/clock/clock.ts";
import { podmanEnvironment } from "../../shared/podman/podman_env.ts";
import {
  type ContainerHouseForTests,
  containerTest,
  inGrantFolder as inFolder,
  openTestHouse,
  planFor,
  PODMAN,
  podman,
  runPlan,
  testFolders,
} from "../doubles/container_house.ts";

/** Runs a program of the image with every permission of the runtime, for looking at the walls. */
async function insideContainer(
  { image }: ContainerHouseForTests,
  program: string,
  what: string,
  mounts: readonly { hostPath: string; write: boolean }[] = [],
): Promise<string> {
  const folders = testFolders();
  const walls: ContainerHouse = {
    runtime: "runc",
    owner: "test",
    seccompFile: `${folders.store}/seccomp.json`,
    cgroupLimits: new Set(),
  };
  const plan = { ...planFor(image, "probe", { what }, { mounts }), flags: [] };
  const argv = [...probeArgv(plan, walls).slice(0, -1), `/tk/${program}.js`];
  const port = denoProcesses({
    path: PODMAN,
    environment: podmanEnvironment(folders),
    folder: folders.store,
  });
  const pieces: number[] = [];
  const outcome = await runCall(
    { name: containerName(plan.callId), argv, line: callLine(plan.argsJson, "{}") },
    plan,
    { onOutput: (bytes) => pieces.push(...bytes), signal: new AbortController().signal },
    { podman: podmanOver(port, systemClock, "runc"), clock: systemClock },
  );
  strictEqual(outcome.status, "ok", `${outcome.message} ${outcome.log}`);
  return new TextDecoder().decode(Uint8Array.from(pieces));
}

containerTest("container the kernel refuses every escape that the program tries", async (h) => {
  if (!h.image.hasEscape) return;
  const lines = (await insideContainer(h, "inside", "walls")).trimEnd().split("\n");
  const seen = new Map(lines.map((line) => [line.split(" ")[0], line.split(" ")[1]]));
  strictEqual(seen.get("end"), "0");
  let refused = 0;
  for (const name of namesOf(REFUSED)) {
    const answer = seen.get(`call:${name}`);
    // A name that this host's headers do not know cannot be called by its name here.
    if (answer === undefined) continue;
    refused++;
    strictEqual(answer, "1", name);
  }
  isTrue(refused > 70, `only ${refused} calls were tried`);
  for (const [name, answer] of seen) {
    if (name === undefined || name.startsWith("call:") || name === "end") continue;
    if (name.startsWith("ok:")) strictEqual(answer, "0", name);
    else isTrue(answer !== "0", `${name} succeeded`);
  }
  for (
    const name of ["newuser", "newns", "newnet", "clone-newuser", "mount", "ptrace", "socket-2"]
  ) {
    strictEqual(seen.get(name), "1", name);
  }
  for (const name of ["clone3", "openat2"]) strictEqual(seen.get(name), "38", name);
});

containerTest("container a call through the i386 entry dies", async (h) => {
  if (!h.image.hasEscape) return;
  strictEqual(await insideContainer(h, "inside", "i386"), "end SIGSYS\n");
});

containerTest(
  "container a program that forks runs into its own limit and takes nothing along",
  async (h) => {
    if (!h.image.hasEscape) return;
    const [bomb, beside] = await Promise.all([
      insideContainer(h, "inside", "forks"),
      runPlan(h.runtime, planFor(h.image, "misbehave", { what: "denied" })),
    ]);
    const count = Number(/forks (\d+)/.exec(bomb)?.[1]);
    isTrue(count > 0 && count < 32, bomb);
    strictEqual(beside.status, "ok");
  },
);

containerTest(
  "container a program in a granted folder cannot be run, not even by the owner map",
  async (h) => {
    if (!h.image.hasEscape) return;
    await inFolder(async (folder) => {
      await Deno.copyFile("/usr/bin/true", `${folder}/true`);
      await Deno.chmod(`${folder}/true`, 0o755);
      const mounts = [{ hostPath: folder, write: true }];
      const said = await insideContainer(h, "inside", "exec /grant/0/true", mounts);
      isTrue(/^exec 13$/m.test(said), said);
    });
  },
);

containerTest("container a tool's own flags leave it its grant and nothing else", async (h) => {
  const ran = await runPlan(h.runtime, planFor(h.image, "misbehave", { what: "denied" }));
  const answers = Object.fromEntries(ran.text.trimEnd().split("\n").map((line) => line.split(" ")));
  deepStrictEqual(answers, {
    read_etc: "NotCapable",
    read_proc: "NotCapable",
    read_tools: "NotCapable",
    run: "NotCapable",
    env: "NotCapable",
    connect: "NotCapable",
    sys: "NotCapable",
    ffi: "NotCapable",
    set_id: "PermissionDenied",
    link_out: "NotCapable",
  });
});

containerTest(
  "container each tool of the toolkit runs under its own flags and limits",
  async (h) => {
    await inFolder(async (folder) => {
      await Deno.mkdir(`${folder}-edit`);
      await Deno.writeTextFile(`${folder}-edit/a.txt`, "one two\n");
      await Deno.writeTextFile(`${folder}/a.txt`, "needle\n");
      const file = [{ hostPath: `${folder}/a.txt`, write: false }];
      const below = [{ hostPath: folder, write: false }];
      const calls: Readonly<Record<string, readonly [object, Mount[], string]>> = {
        edit_file: [
          { path: "/grant/0/a.txt", old: "two", new: "2" },
          [{ hostPath: `${folder}-edit`, write: true }],
          "replaced 1 place: 6 bytes\n",
        ],
        list_dir: [{ path: "/grant/0" }, below, "file         7 a.txt\n"],
        read_file: [{ path: "/grant/0" }, file, "needle\n"],
        search_files: [{ path: "/grant/0", text: "need" }, below, "a.txt:1:needle\n"],
        write_file: [
          { path: "/grant/0/b.txt", content: "x" },
          [{ hostPath: folder, write: true }],
          "created: 1 bytes, SHA-256 2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881\n",
        ],
      };
      // These two need a way out and an image of their own: journey 5 and run_command_test.ts run them.
      const elsewhere = ["http_fetch", "run_command"];
      for (const { name, limits, ...manifest } of TOOLS) {
        if (elsewhere.includes(name)) continue;
        const [args, mounts, expected] = calls[name] ?? [{}, [], "no call for this tool"];
        const flags = toolFlags({ name, limits, ...manifest }, mounts);
        const plan = planFor(h.image, name, { ...args }, { mounts, limits, flags });
        const ran = await runPlan(h.runtime, plan);
        deepStrictEqual([name, ran.status, ran.text], [name, "ok", expected]);
      }
      await Deno.remove(`${folder}-edit`, { recursive: true });
    });
  },
);

containerTest(
  "container nothing of the host is seen, with a grant only the grant is",
  async (h) => {
    await inFolder(async (folder) => {
      for (const mounts of [[], [{ hostPath: folder, write: false }]]) {
        const seen = JSON.parse(await insideContainer(h, "probe", "", mounts));
        deepStrictEqual(seen.interfaces, ["lo"]);
        deepStrictEqual(seen.processes, ["1"]);
        deepStrictEqual([seen.seccomp, seen.no_new_privileges, seen.uid], ["2", "1", 1000]);
        const kinds = /^\/(?:$|dev|proc|sys|tmp$|etc\/hostname$|run\/\.containerenv$)/;
        deepStrictEqual(
          seen.mounts.filter((path: string) => !kinds.test(path)),
          mounts.map((_mount, index) => `/grant/${index}`),
        );
      }
    });
  },
);

containerTest("container links in a granted folder lead nowhere", async (h) => {
  await inFolder(async (base) => {
    const folder = `${base}/granted`;
    await Deno.mkdir(folder);
    await Deno.writeTextFile(`${base}/outside`, "CANARY");
    await Deno.symlink(`${base}/outside`, `${folder}/absolute`);
    await Deno.symlink("../outside", `${folder}/relative`);
    await Deno.symlink(`/proc/1/root${base}/outside`, `${folder}/proc`);
    await Deno.symlink("/etc/passwd", `${folder}/passwd`);
    await Deno.symlink(base, `${folder}/up`);
    const mounts = [{ hostPath: folder, write: false }];
    for (const name of ["absolute", "relative", "proc", "passwd", "up/outside"]) {
      const args = { what: "read", path: `/grant/0/${name}` };
      const ran = await runPlan(h.runtime, planFor(h.image, "misbehave", args, { mounts }));
      // The image's own passwd names one user; the host's is never seen.
      isTrue(!ran.text.includes("CANARY") && !ran.text.includes("root:"), `${name}: ${ran.text}`);
    }
    const listed = await runPlan(
      h.runtime,
      planFor(h.image, "list_dir", { path: "/grant/0", depth: 8 }, { mounts }),
    );
    strictEqual(listed.text.includes("outside\n"), true);
    strictEqual(/^(?:file|folder)/m.test(listed.text), false, listed.text);
  });
});

containerTest(
  "container a read-only grant is not written, and a closed folder is opened by its owner only",
  async (h) => {
    await inFolder(async (folder) => {
      await Deno.chmod(folder, 0o700);
      await Deno.writeTextFile(`${folder}/a`, "text", { mode: 0o600 });
      const write = { path: "/grant/0/new", content: "x" };
      const readOnly = [{ hostPath: folder, write: false }];
      const flags = ["--allow-read=/grant/0", "--allow-write=/grant/0"];
      const refused = await runPlan(
        h.runtime,
        planFor(h.image, "write_file", write, { mounts: readOnly, flags }),
      );
      deepStrictEqual(
        [refused.status, refused.message],
        ["tool_failed", "The file may only be read by this call"],
      );
      const blind = await runPlan(
        h.runtime,
        planFor(h.image, "read_file", { path: "/grant/0/a" }, { mounts: readOnly, map: "blind" }),
      );
      strictEqual(blind.status, "tool_failed");
      strictEqual(blind.text, "");
      const owner = await runPlan(
        h.runtime,
        planFor(h.image, "read_file", { path: "/grant/0/a" }, { mounts: readOnly }),
      );
      deepStrictEqual([owner.status, owner.text], ["ok", "text"]);
      const made = await runPlan(
        h.runtime,
        planFor(h.image, "write_file", write, { mounts: [{ hostPath: folder, write: true }] }),
      );
      strictEqual(made.status, "ok");
      deepStrictEqual([...Deno.readDirSync(folder)].map((e) => e.name).toSorted(), ["a", "new"]);
      strictEqual(await Deno.readTextFile(`${folder}/new`), "x");
    });
  },
);

containerTest("container names made of mount words give the right file or a refusal", async (h) => {
  await inFolder(async (base) => {
    await Deno.mkdir(`${base}/private`);
    await Deno.writeTextFile(`${base}/private/f`, "PRIVATE");
    const names = ["with,comma", 'a "quoted" name', "a,ro=false", "x,src=", "sp ace", "ünï", "-v"];
    await Promise.all(names.map(async (name) => {
      const folder = `${base}/${name}`;
      await Deno.mkdir(folder);
      await Deno.writeTextFile(`${folder}/f`, name);
      const mounts = [{ hostPath: `${folder}/f`, write: false }];
      const plan = planFor(h.image, "read_file", { path: "/grant/0" }, { mounts });
      const ran = await runPlan(h.runtime, plan);
      deepStrictEqual([ran.status, ran.text], ["ok", name]);
    }));
    await Deno.mkdir(`${base}/line\nbreak`);
    const evil = [`${base}/line\nbreak`, `${base}/x,src=${base}/private`, `${base}/\uFFFD`];
    for (const hostPath of evil) {
      const mounts = [{ hostPath, write: false }];
      const ran = await runPlan(
        h.runtime,
        planFor(h.image, "list_dir", { path: "/grant/0" }, { mounts }),
      );
      strictEqual(ran.status, "mount-refused", hostPath);
    }
  });
});

containerTest("container a grant that changed since it was checked is not mounted", async (h) => {
  await inFolder(async (base) => {
    await Deno.mkdir(`${base}/real`);
    await Deno.symlink(`${base}/real`, `${base}/link`);
    const args = { path: "/grant/0" };
    for (const hostPath of [`${base}/link`, `${base}/gone`, "/dev/null"]) {
      const mounts = [{ hostPath, write: false }];
      strictEqual(
        (await runPlan(h.runtime, planFor(h.image, "list_dir", args, { mounts }))).status,
        "mount-refused",
        hostPath,
      );
    }
    // A mount below the folder, made where rootless Podman lives, as a user can make no other.
    await Deno.mkdir(`${base}/real/below`);
    const made = await podman(["unshare", "mount", "-t", "tmpfs", "none", `${base}/real/below`]);
    strictEqual(made.code, 0, made.stderr);
    try {
      const mounts = [{ hostPath: `${base}/real`, write: false }];
      const ran = await runPlan(h.runtime, planFor(h.image, "list_dir", args, { mounts }));
      deepStrictEqual(
        [ran.status, ran.run.ok && ran.run.value.code],
        ["could_not_start", "mount-refused"],
      );
    } finally {
      await podman(["unshare", "umount", `${base}/real/below`]);
    }
  });
});

containerTest("container every way to end badly has its name", async (h) => {
  const second = { timeout_s: 1, output_bytes: 65_536, memory_mb: 64, pids: 32 };
  const ends: readonly (readonly [string, string, RegExp])[] = [
    ["flood", "output_capped", /cut at 65536 bytes/],
    ["exit125", "tool_failed", /without a result/],
    ["silent", "tool_failed", /without a result/],
    ["unframed", "tool_failed", /outside its frames/],
    ["buffers", "tool_failed", /./],
    ["heap", "tool_failed", /64 MB of memory/],
  ];
  const slow = ["hang", "write_on"].map((what) => [what, /ended after 1 s/] as const);
  await Promise.all([
    ...ends.map(async ([what, status, message]) => {
      const ran = await runPlan(h.runtime, planFor(h.image, "misbehave", { what }));
      strictEqual(ran.status, status, `${what}: ${ran.message}`);
      isTrue(message.test(ran.message), `${what}: ${ran.message}`);
      isTrue(ran.text.length <= 65_536);
    }),
    ...slow.map(async ([what, message]) => {
      const limits = { ...second, output_bytes: 67_108_864 };
      const ran = await runPlan(h.runtime, planFor(h.image, "misbehave", { what }, { limits }));
      deepStrictEqual([ran.status, message.test(ran.message)], ["timeout", true], what);
    }),
    // A program that burns CPU meets its CPU limit or the clock, whichever is first.
    (async () => {
      const plan = planFor(h.image, "misbehave", { what: "spin" }, { limits: second });
      isTrue(["timeout", "tool_failed"].includes((await runPlan(h.runtime, plan)).status));
    })(),
  ]);
});

containerTest(
  "container a tool that is stopped is gone, and a full scratch or file fails in it only",
  async (h) => {
    const stop = new AbortController();
    const plan = planFor(h.image, "misbehave", { what: "hang" });
    const running = runPlan(h.runtime, plan, stop.signal);
    const timer = setTimeout(() => stop.abort(), 400);
    strictEqual((await running).status, "killed");
    clearTimeout(timer);
    strictEqual((await podman(["container", "exists", containerName(plan.callId)])).code, 1);
    const scratch = await runPlan(
      h.runtime,
      planFor(h.image, "misbehave", { what: "fill_scratch" }),
    );
    strictEqual(scratch.status, "tool_failed");
    isTrue(/No space left/.test(scratch.message) && scratch.text.endsWith("16\n"), scratch.text);
    await inFolder(async (folder) => {
      const mounts = [{ hostPath: folder, write: true }];
      const grant = await runPlan(
        h.runtime,
        planFor(h.image, "misbehave", { what: "fill_grant" }, { mounts }),
      );
      isTrue(/File too large/.test(grant.message), grant.message);
    });
  },
);

containerTest(
  "killAll() ends every call, waiting ones too, and has removed their containers",
  async (h) => {
    const plans = Array.from({ length: 6 }, () => planFor(h.image, "misbehave", { what: "hang" }));
    const running = plans.map((plan) => runPlan(h.runtime, plan));
    const first = containerName(plans[0]?.callId ?? "");
    while ((await podman(["container", "exists", first])).code !== 0);
    await h.runtime.killAll();
    const ends = (await Promise.all(running)).map(({ status }) => status);
    deepStrictEqual(ends, plans.map(() => "killed"));
    for (const { callId } of plans) {
      strictEqual((await podman(["container", "exists", containerName(callId)])).code, 1);
    }
  },
);

containerTest("container a second start of the same call is refused", async (h) => {
  const plan = planFor(h.image, "misbehave", { what: "hang" });
  const stop = new AbortController();
  const first = runPlan(h.runtime, plan, stop.signal);
  strictEqual((await runPlan(h.runtime, plan)).status, "call-already-started");
  // Another brokerd of the same home would meet the container's name.
  const other = await openTestHouse("another");
  let second = await runPlan(other.runtime, plan);
  for (let tries = 0; second.status === "killed" && tries < 3; tries++) {
    second = await runPlan(other.runtime, plan);
  }
  deepStrictEqual(
    [second.status, second.run.ok && second.run.value.code],
    ["could_not_start", "call-already-started"],
  );
  stop.abort();
  strictEqual((await first).status, "killed");
});
