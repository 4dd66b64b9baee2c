// Reads secrets from where the owner keeps them, and carries them so that they cannot be printed.
//
// 1. A Secret shows as `[secret]` whatever prints, logs or encodes it; only `reveal` gives the text.
// 2. An owner-only file is refused unless it is a plain file of the home's owner that nobody else
//    may read. A systemd credential is protected by the service manager and has its own modes.
// 3. No message holds any part of a secret. An empty secret is no secret: refused.
import type { SecretSource } from "../config/fields.ts";
import type { Disk } from "../disk/disk.ts";
import { attempt, readBytes } from "../disk/durable.ts";
import type { Log } from "../log/log.ts";
import { assertNever, err, ok, type Result } from "../results/result.ts";
import { decodeUtf8 } from "../wire/codec.ts";

const MAX_SECRET_BYTES = 65_536;
const SHOWN = "[secret]";

class SecretText {
  readonly #text: string;
  constructor(text: string) {
    this.#text = text;
    Object.freeze(this);
  }
  /** The secret itself, for the one place that must send it. */
  reveal(): string {
    return this.#text;
  }
  toString(): string {
    return SHOWN;
  }
  toJSON(): string {
    return SHOWN;
  }
  [Symbol.toPrimitive](): string {
    return SHOWN;
  }
  [Symbol.for("Deno.customInspect")](): string {
    return SHOWN;
  }
  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return SHOWN;
  }
}
export type Secret = SecretText;

/** Wraps a text that must never be shown; for secrets that come from elsewhere than the store. */
export function secretOf(text: string): Secret {
  return new SecretText(text);
}

export type SecretPorts = {
  readonly disk: Disk;
  /** Reads one environment variable; undefined when unset. */
  readonly env: (name: string) => string | undefined;
  /** User id that must own a secret's file: the owner of the home folder. */
  readonly ownerUid: number;
  readonly log: Log;
};

/**
 * Reads the secret that `source` names, once. A trailing line end is not part of it. Fails with
 * `secret-missing` when there is none and `secret-unsafe` when others could have read it.
 */
export function readSecret(ports: SecretPorts, name: string, source: SecretSource): Result<Secret> {
  if ("env" in source) return fromText(name, ports.env(source.env), `variable ${source.env}`);
  if ("credential" in source) return fromFile(ports, name, source.credential, "credential");
  if ("file" in source) {
    ports.log.warn(`Secret ${name} is kept in a plain file: ${source.file}`);
    return fromFile(ports, name, source.file, "file");
  }
  return assertNever(source);
}

function fromText(name: string, text: string | undefined, where: string): Result<Secret> {
  const trimmed = text?.replace(/\r?\n$/, "") ?? "";
  if (trimmed === "") return err("secret-missing", `Cannot read secret ${name} from ${where}`);
  if (/[\0\r\n]/.test(trimmed)) {
    return err("secret-missing", `Secret ${name} in ${where} is not one line`);
  }
  return ok(secretOf(trimmed));
}

function fromFile(
  ports: SecretPorts,
  name: string,
  path: string,
  backend: "file" | "credential",
): Result<Secret> {
  const read = attempt(() => {
    // Judged by the open file, not by its name, so nothing can be swapped in between.
    const isLink = ports.disk.lstat(path).kind === "link";
    const file = ports.disk.open(path, "read");
    try {
      const facts = file.stat();
      const isOpen = (facts.mode & 0o077) !== 0 || facts.ownerUid !== ports.ownerUid || isLink;
      if (facts.kind !== "file" || facts.size > MAX_SECRET_BYTES) return "unreadable";
      if (backend === "file" && isOpen) return "unsafe";
      return readBytes(file, facts.size);
    } finally {
      file.close();
    }
  });
  if (!read.ok) {
    return read.code === "file-missing" ? fromText(name, undefined, path) : read;
  }
  if (read.value === "unreadable") return fromText(name, undefined, path);
  if (read.value === "unsafe") {
    const need = "it must be a file of the home's owner with mode 0600 or 0400";
    return err("secret-unsafe", `Cannot use secret ${name} as ${need}: ${path}`);
  }
  const text = decodeUtf8(read.value);
  return text.ok ? fromText(name, text.value, path) : fromText(name, undefined, path);
}
