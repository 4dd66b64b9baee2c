import { deepStrictEqual, ok as assert, strictEqual } from "node:assert";
import fc from "fast-check";
import type { Result } from "../results/result.ts";
import {
  createExclusive,
  createIdempotent,
  isTemporaryName,
  makeFolders,
  mustEnd,
  openAppender,
  readText,
  readWhole,
  removeFile,
  replaceFile,
} from "./durable.ts";
import {
  type Fault,
  type FaultyDisk,
  faultyDisk,
  SimulatedCrash,
} from "../../tests/doubles/faulty_disk.ts";
import { takeRoleLock } from "./role_lock.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

/** The content of a file, or null when there is none. */
function contentOf(disk: FaultyDisk, path: string): string | null {
  disk.setFault(null);
  const text = readText(disk, path, 1_000);
  if (text.ok) return text.value;
  strictEqual(text.code, "file-missing");
  return null;
}

type Scenario = {
  readonly name: string;
  /** Content of /d/f before, null for none. */
  readonly before: string | null;
  readonly act: (disk: FaultyDisk) => Result<unknown>;
  readonly after: string | null;
  readonly path?: string;
};

const append = (disk: FaultyDisk, text: string): Result<unknown> => {
  const opened = openAppender(disk, "/d/f");
  if (!opened.ok) return opened;
  const done = opened.value.append(bytes(text));
  opened.value.close();
  return done;
};

const SCENARIOS: readonly Scenario[] = [
  {
    name: "replace",
    before: "old",
    act: (d) => replaceFile(d, "/d/f", bytes("new")),
    after: "new",
  },
  {
    name: "replace, first",
    before: null,
    act: (d) => replaceFile(d, "/d/f", bytes("n")),
    after: "n",
  },
  {
    name: "exclusive",
    before: null,
    act: (d) => createExclusive(d, "/d/f", bytes("n")),
    after: "n",
  },
  {
    name: "idempotent",
    before: null,
    act: (d) => createIdempotent(d, "/d/f", bytes("n")),
    after: "n",
  },
  {
    name: "idempotent, same",
    before: "n",
    act: (d) => createIdempotent(d, "/d/f", bytes("n")),
    after: "n",
  },
  { name: "append", before: "old", act: (d) => append(d, "+new"), after: "old+new" },
  { name: "append, first", before: null, act: (d) => append(d, "new"), after: "new" },
  { name: "remove", before: "old", act: (d) => removeFile(d, "/d/f"), after: null },
  {
    name: "folders",
    before: null,
    act: (d) => {
      const made = makeFolders(d, "/d/a/b");
      return made.ok ? replaceFile(d, "/d/a/b/f", bytes("x")) : made;
    },
    after: "x",
    path: "/d/a/b/f",
  },
];

/** What a reader may find when the operation was cut short: an append may be there in part. */
function isLegal(scenario: Scenario, content: string | null): boolean {
  if (content === scenario.before || content === scenario.after) return true;
  if (!scenario.name.startsWith("append") || content === null) return false;
  return (scenario.after ?? "").startsWith(content) && content.startsWith(scenario.before ?? "");
}

/** Runs a scenario under one fault; returns whether the fault was met and how many disks were seen. */
function runOnce(
  scenario: Scenario,
  fault: Fault,
): { readonly met: boolean; readonly disks: number } {
  const disk = faultyDisk(["/d"], null);
  const path = scenario.path ?? "/d/f";
  if (scenario.before !== null) disk.plant("/d/f", bytes(scenario.before));
  disk.setFault(fault);
  const where = `${scenario.name} ${JSON.stringify(fault)}`;
  let result: Result<unknown> | null = null;
  try {
    result = scenario.act(disk);
  } catch (thrown) {
    if (!(thrown instanceof SimulatedCrash)) throw thrown;
  }
  const met = disk.calls() >= fault.failAt;
  let disks = 0;
  for (const left of disk.afterCrash("every_byte")) {
    const content = contentOf(left, path);
    assert(isLegal(scenario, content), `${where}: a crash left ${content}`);
    if (result?.ok === true) {
      strictEqual(content, scenario.after, `${where}: success was not durable`);
    }
    disks++;
  }
  if (result !== null && !result.ok && !mustEnd(result)) {
    const content = contentOf(disk, path);
    const isAsBefore = content === scenario.before || (scenario.before === null && content === "");
    assert(isAsBefore || content === scenario.after, `${where}: left ${content}`);
  }
  return { met, disks };
}

Deno.test("durable.ts every operation holds when any one call fails, once and for good", () => {
  let runs = 0;
  let disks = 0;
  for (const scenario of SCENARIOS) {
    for (const kind of ["io", "no_space", "short", "crash"] as const) {
      for (const lasting of ["once", "for_good"] as const) {
        for (let failAt = 1;; failAt++) {
          const seen = runOnce(scenario, { failAt, kind, lasting, seed: failAt });
          runs++;
          disks += seen.disks;
          if (!seen.met) break;
          assert(failAt < 200, "the scenario does not end");
        }
      }
    }
  }
  console.log(`${runs} runs under faults, ${disks} disks after a crash`);
});

Deno.test("durable.ts a failed sync is disk-failed and nothing else is", () => {
  for (const scenario of SCENARIOS) {
    for (let failAt = 1;; failAt++) {
      const disk = faultyDisk(["/d"]);
      if (scenario.before !== null) disk.plant("/d/f", bytes(scenario.before));
      disk.setFault({ failAt, kind: "io", lasting: "once", seed: 0 });
      const syncs = countSyncs(disk);
      const result = scenario.act(syncs.disk);
      if (disk.calls() < failAt) break;
      if (syncs.failed()) assert(!result.ok && mustEnd(result), `${scenario.name} ${failAt}`);
      else if (!result.ok) strictEqual(result.code, "disk-error", `${scenario.name} ${failAt}`);
    }
  }
});

/** The same disk, noting whether a sync failed. */
function countSyncs(
  disk: FaultyDisk,
): { readonly disk: FaultyDisk; readonly failed: () => boolean } {
  let failed = false;
  const noted = (sync: () => void) => () => {
    try {
      sync();
    } catch (thrown) {
      failed = true;
      throw thrown;
    }
  };
  const wrapped: FaultyDisk = {
    ...disk,
    open: (path, mode) => {
      const file = disk.open(path, mode);
      return { ...file, sync: noted(file.sync) };
    },
    openFolder: (path) => {
      const folder = disk.openFolder(path);
      return { ...folder, sync: noted(folder.sync) };
    },
  };
  return { disk: wrapped, failed: () => failed };
}

Deno.test("openAppender() refuses everything after a failed sync and never syncs again", () => {
  const disk = faultyDisk(["/d"]);
  const opened = openAppender(disk, "/d/f");
  assert(opened.ok);
  disk.setFault({ failAt: 2, kind: "io", lasting: "once", seed: 0 });
  const failed = opened.value.append(bytes("x"));
  assert(!failed.ok && failed.code === "disk-failed");
  const calls = disk.calls();
  const again = opened.value.append(bytes("y"));
  assert(!again.ok && again.code === "disk-failed");
  strictEqual(disk.calls(), calls);
});

Deno.test("createExclusive() refuses a name that is taken and leaves the other file alone", () => {
  const disk = faultyDisk(["/d"]);
  disk.plant("/d/f", bytes("theirs"));
  const made = createExclusive(disk, "/d/f", bytes("ours"));
  assert(!made.ok && made.code === "file-exists");
  strictEqual(contentOf(disk, "/d/f"), "theirs");
  deepStrictEqual(disk.list("/d").map((entry) => entry.name), ["f"]);
});

Deno.test("createIdempotent() takes equal bytes for success and any others for a failure", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 9 }), fc.uint8Array({ maxLength: 9 }), (a, b) => {
      const disk = faultyDisk(["/d"]);
      disk.plant("/d/f", a);
      const made = createIdempotent(disk, "/d/f", b);
      const isSame = a.length === b.length && a.every((byte, i) => byte === b[i]);
      strictEqual(made.ok ? made.value : made.code, isSame ? "same" : "file-exists");
    }),
  );
});

Deno.test("readWhole() and readText() are bounded and refuse what is not what they read", () => {
  const disk = faultyDisk(["/d"]);
  disk.plant("/d/f", bytes("1234"));
  disk.plant("/d/bad", new Uint8Array([0xc3]));
  assert(readWhole(disk, "/d/f", 4).ok);
  const codes = [
    readWhole(disk, "/d/f", 3),
    readWhole(disk, "/d/none", 9),
    readWhole(disk, "/d", 9),
    readText(disk, "/d/bad", 9),
  ].map((result) => result.ok ? "ok" : result.code);
  deepStrictEqual(codes, ["file-too-large", "file-missing", "disk-error", "not-utf8"]);
});

Deno.test("makeFolders() accepts what is there and refuses a file in the way", () => {
  const disk = faultyDisk(["/d"]);
  assert(makeFolders(disk, "/d/a/b/c").ok && makeFolders(disk, "/d/a/b/c").ok);
  disk.plant("/d/f", bytes(""));
  assert(!makeFolders(disk, "/d/f").ok);
  assert(!makeFolders(disk, "/d/f/g").ok);
});

Deno.test("takeRoleLock() refuses a second instance until the first is gone", () => {
  const disk = faultyDisk(["/d"]);
  const first = takeRoleLock(disk, "/d/loopd.lock");
  assert(first.ok);
  const second = takeRoleLock(disk, "/d/loopd.lock");
  assert(!second.ok && second.code === "already-running");
  first.value.release();
  assert(takeRoleLock(disk, "/d/loopd.lock").ok);
  assert(isTemporaryName("head.json.tmp") && !isTemporaryName("head.json"));
});
