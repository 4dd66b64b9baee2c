// Guards kept_secrets.ts: only a secret that brokerd.toml names here is kept, in a file of the owner's
// alone, and nothing of it is in an answer.
import { deepStrictEqual, ok as isTrue, strictEqual } from "node:assert";
import { err, ok, type Result } from "../../shared/results/result.ts";
import { encodeUtf8 } from "../../shared/wire/codec.ts";
import { faultyDisk } from "../../tests/doubles/faulty_disk.ts";
import { keepSecret } from "./kept_secrets.ts";

const path = "/h/broker/secrets/key";
const place = () => ({
  disk: faultyDisk(["/h", "/h/broker"]),
  home: "/h",
  secrets: {
    key: { file: path },
    other: { file: "/etc/key" },
    env: { env: "BOXMAKER_SECRET_KEY" },
    twin: { file: path },
  },
  record: (): Result<unknown> => ok(null),
});

Deno.test("keepSecret() a secret whose setting cannot be recorded is not set", () => {
  const at = { ...place(), record: () => err("disk-full", "") };
  const kept = keepSecret(at, "key", encodeUtf8("canary"));
  strictEqual(kept.ok ? "" : kept.code, "disk-full");
  deepStrictEqual(at.disk.list("/h/broker"), []);
});

Deno.test("keepSecret() nothing is written anywhere else, and nothing but one line", () => {
  const at = place();
  for (const name of ["other", "env", "twin", "unknown", "__proto__"]) {
    const kept = keepSecret(at, name, encodeUtf8("canary"));
    strictEqual(kept.ok ? "" : kept.code, "secret-missing", name);
    isTrue(!JSON.stringify(kept).includes("canary"));
  }
  for (const text of ["", "canary\nx", "canary\0", "canary\r"]) {
    const kept = keepSecret(at, "key", encodeUtf8(text));
    strictEqual(kept.ok ? "" : kept.code, "request-invalid");
    isTrue(!JSON.stringify(kept).includes("canary"));
  }
  strictEqual(keepSecret(at, "key", Uint8Array.of(0xff)).ok, false);
  deepStrictEqual(at.disk.list("/h/broker"), []);
});

Deno.test("keepSecret() the newest value is in one file of mode 0600", () => {
  const at = place();
  deepStrictEqual(keepSecret(at, "key", encodeUtf8("first")), { ok: true, value: false });
  deepStrictEqual(keepSecret(at, "key", encodeUtf8("second")), { ok: true, value: true });
  deepStrictEqual(at.disk.list("/h/broker/secrets").map((one) => one.name), ["key"]);
  const facts = at.disk.stat(path);
  strictEqual(facts.mode, 0o600);
  strictEqual(facts.size, 6);
});
