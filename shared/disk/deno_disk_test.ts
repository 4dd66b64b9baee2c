import { deepStrictEqual, ok as assert, strictEqual } from "node:assert";
import { denoDisk } from "./deno_disk.ts";
import { DiskError } from "./disk.ts";
import {
  createExclusive,
  createIdempotent,
  makeFolders,
  openAppender,
  readText,
  removeFile,
  replaceFile,
} from "./durable.ts";
import { takeRoleLock } from "./role_lock.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

async function inFolder(act: (dir: string) => void | Promise<void>): Promise<void> {
  const dir = Deno.makeTempDirSync();
  try {
    await act(dir);
  } finally {
    Deno.removeSync(dir, { recursive: true });
  }
}

function kindOf(call: () => unknown): string {
  try {
    call();
  } catch (thrown) {
    if (thrown instanceof DiskError) return thrown.kind;
    throw thrown;
  }
  return "no failure";
}

Deno.test("denoDisk gives every failure its kind", async () => {
  await inFolder((dir) => {
    Deno.writeTextFileSync(`${dir}/f`, "x");
    Deno.symlinkSync("/nowhere", `${dir}/dangling`);
    strictEqual(kindOf(() => denoDisk.open(`${dir}/none`, "read")), "not_found");
    strictEqual(kindOf(() => denoDisk.open(`${dir}/none`, "read_write")), "not_found");
    strictEqual(kindOf(() => denoDisk.open(`${dir}/f`, "create_new")), "already_exists");
    strictEqual(kindOf(() => denoDisk.open(`${dir}/dangling`, "create_new")), "already_exists");
    strictEqual(kindOf(() => denoDisk.mkdir(dir)), "already_exists");
    strictEqual(kindOf(() => denoDisk.link(`${dir}/f`, `${dir}/f`)), "already_exists");
    strictEqual(kindOf(() => denoDisk.open(`${dir}/f/g`, "read")), "io");
    strictEqual(kindOf(() => denoDisk.realPath(`${dir}/dangling`)), "not_found");
    const full = denoDisk.open("/dev/full", "append");
    strictEqual(kindOf(() => full.write(bytes("x"))), "no_space");
    full.close();
  });
});

Deno.test("denoDisk makes files 0600 and folders 0700 whatever the umask", async () => {
  await inFolder((dir) => {
    const before = Deno.umask(0);
    try {
      assert(makeFolders(denoDisk, `${dir}/a/b`).ok);
      assert(replaceFile(denoDisk, `${dir}/a/r`, bytes("r")).ok);
      assert(createExclusive(denoDisk, `${dir}/a/x`, bytes("x")).ok);
      const appender = openAppender(denoDisk, `${dir}/a/l`);
      assert(appender.ok);
      appender.value.close();
    } finally {
      Deno.umask(before);
    }
    strictEqual(denoDisk.stat(`${dir}/a/b`).mode, 0o700);
    for (const name of ["r", "x", "l"]) strictEqual(denoDisk.stat(`${dir}/a/${name}`).mode, 0o600);
  });
});

Deno.test("denoDisk carries the safe operations on a real file system", async () => {
  await inFolder((dir) => {
    const path = `${dir}/f`;
    Deno.writeTextFileSync(`${path}.tmp`, "leftover of a crash, longer than what follows");
    assert(replaceFile(denoDisk, path, bytes("one")).ok);
    assert(replaceFile(denoDisk, path, bytes("two")).ok);
    const taken = createExclusive(denoDisk, path, bytes("three"));
    assert(!taken.ok && taken.code === "file-exists");
    const same = createIdempotent(denoDisk, path, bytes("two"));
    assert(same.ok && same.value === "same");
    const appender = openAppender(denoDisk, path);
    assert(appender.ok && appender.value.size() === 3);
    assert(appender.value.append(bytes("!")).ok && appender.value.cutTo(2).ok);
    assert(appender.value.append(bytes("in")).ok);
    appender.value.close();
    deepStrictEqual(readText(denoDisk, path, 9), { ok: true, value: "twin" });
    Deno.symlinkSync("f", `${dir}/link`);
    deepStrictEqual(denoDisk.list(dir), [{ name: "f", kind: "file" }, {
      name: "link",
      kind: "link",
    }]);
    strictEqual(denoDisk.lstat(`${dir}/link`).kind, "link");
    strictEqual(denoDisk.stat(`${dir}/link`).inode, denoDisk.stat(path).inode);
    strictEqual(denoDisk.stat(path).links, 1);
    assert(removeFile(denoDisk, path).ok && removeFile(denoDisk, path).ok);
    assert(!makeFolders(denoDisk, `${dir}/link`).ok);
  });
});

const HOLDER = `
import { takeRoleLock } from "${new URL("./role_lock.ts", import.meta.url).href}";
import { denoDisk } from "${new URL("./deno_disk.ts", import.meta.url).href}";
const lock = takeRoleLock(denoDisk, Deno.args[0]);
console.log(lock.ok ? "held" : lock.code);
setInterval(() => {}, 1000);
`;

Deno.test("takeRoleLock() is refused while another process lives and free once it is killed", async () => {
  await inFolder(async (dir) => {
    const script = `${dir}/holder.ts`;
    Deno.writeTextFileSync(script, HOLDER);
    const config = decodeURIComponent(new URL("../../deno.json", import.meta.url).pathname);
    const child = new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--no-lock", "--config", config, script, `${dir}/lock`],
      stdout: "piped",
    }).spawn();
    const reader = child.stdout.getReader();
    const first = await reader.read();
    strictEqual(new TextDecoder().decode(first.value), "held\n");
    const refused = takeRoleLock(denoDisk, `${dir}/lock`);
    assert(!refused.ok && refused.code === "already-running");
    child.kill("SIGKILL");
    await child.status;
    await reader.cancel();
    const taken = takeRoleLock(denoDisk, `${dir}/lock`);
    assert(taken.ok);
    taken.value.release();
  });
});
