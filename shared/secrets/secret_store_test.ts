import { deepStrictEqual, ok as assert, strictEqual } from "node:assert";
import { inspect } from "node:util";
import { denoDisk } from "../disk/deno_disk.ts";
import type { Log } from "../log/log.ts";
import { readSecret, secretOf, type SecretPorts } from "./secret_store.ts";

const CANARY = "canary-5f1d";

type World = { ports: SecretPorts; dir: string; warnings: string[] };

function inWorld(act: (world: World) => void): void {
  const dir = Deno.makeTempDirSync();
  try {
    const warnings: string[] = [];
    const note = (message: string) => {
      warnings.push(message);
    };
    const log: Log = { info: note, warn: note, error: note, failure: (what) => note(what) };
    const env = (name: string) => name === "BOXMAKER_SECRET_A" ? CANARY : undefined;
    const ownerUid = Deno.statSync(dir).uid ?? -1;
    act({ dir, warnings, ports: { disk: denoDisk, env, ownerUid, log } });
  } finally {
    Deno.removeSync(dir, { recursive: true });
  }
}

function put(dir: string, mode: number, text: string | Uint8Array<ArrayBuffer>): string {
  const file = `${dir}/${crypto.randomUUID()}`;
  Deno.writeFileSync(file, typeof text === "string" ? new TextEncoder().encode(text) : text);
  Deno.chmodSync(file, mode);
  return file;
}

Deno.test("readSecret() refuses a file that others may read, own or have linked in", () => {
  inWorld(({ ports, dir }) => {
    for (const mode of [0o644, 0o640, 0o604, 0o620, 0o601]) {
      const read = readSecret(ports, "t", { file: put(dir, mode, CANARY) });
      assert(!read.ok && read.code === "secret-unsafe", mode.toString(8));
      assert(!read.detail.includes(CANARY));
    }
    const good = put(dir, 0o600, CANARY);
    const foreign = readSecret({ ...ports, ownerUid: ports.ownerUid + 1 }, "t", { file: good });
    assert(!foreign.ok && foreign.code === "secret-unsafe");
    Deno.symlinkSync(good, `${dir}/link`);
    const linked = readSecret(ports, "t", { file: `${dir}/link` });
    assert(!linked.ok && linked.code === "secret-unsafe");
  });
});

Deno.test("readSecret() refuses what is absent, empty, not one line, not text or too large", () => {
  inWorld(({ ports, dir }) => {
    const sources = [
      { env: "BOXMAKER_SECRET_B" },
      { file: `${dir}/none` },
      { file: dir },
      { credential: `${dir}/none` },
      ...["", "\n", "a\nb", "a\0b", "x".repeat(65_537)].map((t) => ({ file: put(dir, 0o600, t) })),
      { file: put(dir, 0o600, new Uint8Array([0xff, 0xfe])) },
    ];
    for (const source of sources) {
      const read = readSecret(ports, "t", source);
      assert(!read.ok && ["secret-missing", "disk-error"].includes(read.code), inspect(source));
    }
  });
});

Deno.test("readSecret() reads all three backends and warns about a plain file", () => {
  inWorld(({ ports, dir, warnings }) => {
    const file = put(dir, 0o600, CANARY + "\n");
    const credential = put(dir, 0o440, CANARY + "\r\n");
    for (const source of [{ env: "BOXMAKER_SECRET_A" }, { credential }, { file }]) {
      const read = readSecret(ports, "t", source);
      assert(read.ok, inspect(source));
      strictEqual(read.value.reveal(), CANARY);
    }
    strictEqual(warnings.length, 1);
    assert(!warnings.join().includes(CANARY));
  });
});

Deno.test("secretOf() shows nothing through any way of printing", () => {
  const secret = secretOf(CANARY);
  const shown = [
    `${secret}`,
    "" + secret,
    String(secret),
    JSON.stringify({ secret }),
    inspect(secret),
    inspect({ a: [secret] }, { showHidden: true, depth: 9 }),
    Deno.inspect({ secret }),
    Object.entries(secret).join(),
    JSON.stringify(structuredClone({ ...secret })),
  ];
  for (const text of shown) assert(!text.includes(CANARY), text);
  deepStrictEqual(shown.slice(0, 5), [
    "[secret]",
    "[secret]",
    "[secret]",
    '{"secret":"[secret]"}',
    "[secret]",
  ]);
});
