// One record of a chained log: how its line is written, hashed and judged.
//
// 1. A record is one line of canonical JSON that starts `{"v":1,"n":N,"prev":"HASH",`; what follows
//    is the caller's. No value can forge a line, as JSON escapes every line feed.
// 2. The hash is SHA-256 over `boxmaker/<domain>/v1\n` and the bytes of the line without its line
//    feed. It is never stored in the record itself.
// 3. Damage has a name; a line that fails any check is never passed on as a record.
import { createHash, hash } from "node:crypto";
import { type Err, err, ok, type Result } from "../results/result.ts";
import { canonicalText, encodeUtf8, parseCanonicalText } from "../wire/codec.ts";

/** The longest line, in bytes without its line feed. */
export const MAX_LINE_BYTES = 4_194_304;
/** `prev` of the first record of the first file. */
export const NO_PREVIOUS = "0".repeat(64);
export const RECORD_VERSION = 1;

/** Fields of a record beyond `v`, `n` and `prev`, which the chain sets itself. */
export type Fields = { readonly kind: string; readonly [key: string]: unknown };
/** A record's number and the hash of its line: what callers are acknowledged with and remember. */
export type Head = { readonly n: number; readonly hash: string };
/** What the next record must say. */
export type Expected = { readonly n: number; readonly prev: string };
/** `sealed` leaves out the parsing, for lines that a trusted hash further on vouches for. */
export type Depth = "parsed" | "sealed";

export type DamageName =
  | "not_utf8"
  | "nul"
  | "lone_surrogate"
  | "odd_separator"
  | "fused"
  | "not_json"
  | "not_canonical"
  | "not_a_record"
  | "too_long_line"
  | "newer_version"
  | "no_genesis"
  | "records_missing"
  | "records_repeated"
  | "chain_broken"
  | "torn"
  | "shorter_than_head"
  | "hash_differs"
  | "head_missing"
  | "head_invalid"
  | "log_missing"
  | "other_file"
  | "file_missing";

export type Damage = {
  readonly name: DamageName;
  /** The number the record should have had, -1 when it is not about one record. */
  readonly atRecord: number;
  /** Byte offset of the line in the file. */
  readonly offset: number;
  readonly detail: string;
};

export function damage(name: DamageName, atRecord: number, offset: number, detail: string): Damage {
  return { name, atRecord, offset, detail };
}

/** The failure a damaged log is reported with; the caller may map the code to its own. */
export function damageErr(path: string, found: Damage): Err & { readonly damage: Damage } {
  const where = found.atRecord < 0 ? "" : ` at record ${found.atRecord}, byte ${found.offset}`;
  const detail = `${path} is damaged (${found.name})${where}: ${found.detail}`;
  return { ...err("log-broken", detail), damage: found };
}

/** What is hashed before a line's bytes. */
export function domainPrefix(domain: string): string {
  return `boxmaker/${domain}/v1\n`;
}

/** Hash of a line (without line feed) in its domain, 64 lower-case hexadecimal digits. */
export function hashLine(domain: string, line: string): string {
  return hash("sha256", domainPrefix(domain) + line, "hex");
}

/** Hash of a line with its line feed, empty when the bytes are not exactly one. */
export function hashLineBytes(domain: string, bytes: Uint8Array): string {
  if (bytes.length < 2 || bytes.indexOf(10) !== bytes.length - 1) return "";
  const digest = createHash("sha256").update(domainPrefix(domain));
  return digest.update(bytes.subarray(0, -1)).digest("hex");
}

/** How the line of a record must begin. */
export function lineStart(next: Expected): string {
  return `{"v":${RECORD_VERSION},"n":${next.n},"prev":"${next.prev}",`;
}

/**
 * Renders a record's line, without line feed. Fails with `record-invalid` when the reader would
 * refuse it: too deep, too long, or a field that the chain sets itself.
 */
export function renderLine(next: Expected, fields: Fields): Result<string> {
  if ("v" in fields || "n" in fields || "prev" in fields) {
    return err("record-invalid", "Cannot write a record that sets v, n or prev itself");
  }
  const line = canonicalText({ v: RECORD_VERSION, ...next, ...fields });
  const parsed = parseCanonicalText(line);
  if (!parsed.ok) {
    return err("record-invalid", `Cannot write a ${fields.kind} record: ${parsed.detail}`);
  }
  const bytes = encodeUtf8(line).length;
  if (bytes <= MAX_LINE_BYTES) return ok(line);
  return err("record-invalid", `Cannot write a record of ${bytes} bytes: limit ${MAX_LINE_BYTES}`);
}

export function isObject(value: unknown): value is { readonly [key: string]: unknown } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export type Judged =
  | { readonly ok: true; readonly n: number; readonly value: unknown }
  | { readonly ok: false; readonly damage: Damage };

/**
 * Judges one line (null: not UTF-8) against what must come next. A `next` of null means that the line
 * opens a file and is believed about its number as far as its own `previous` field bears it out.
 */
export function judgeLine(line: string | null, next: Expected | null, offset: number): Judged {
  const atRecord = next?.n ?? 0;
  const no = (name: DamageName, detail: string): Judged => ({
    ok: false,
    damage: damage(name, atRecord, offset, detail),
  });
  if (line === null) return no("not_utf8", "The line is not UTF-8");
  const parsed = parseCanonicalText(line);
  if (!parsed.ok) return no(nameOf(line, parsed.code, parsed.detail), parsed.detail);
  const value = parsed.value;
  if (!isObject(value)) return no("not_a_record", "The line is no JSON object");
  if (typeof value.v === "number" && value.v > RECORD_VERSION) {
    return no("newer_version", `Version ${value.v} is newer than ${RECORD_VERSION}`);
  }
  const { n, prev } = value;
  if (typeof n !== "number" || !Number.isSafeInteger(n) || n < 0 || typeof prev !== "string") {
    return no("not_a_record", "The record lacks its number or previous hash");
  }
  if (!line.startsWith(lineStart({ n, prev }))) {
    return no("not_a_record", "The record does not start with v, n and prev");
  }
  if (next === null) {
    return firstOfFile(value, { n, prev })
      ? { ok: true, n, value }
      : no("no_genesis", "The file does not start with record 0 or a rotation");
  }
  if (n > next.n) return no("records_missing", `The record is number ${n}`);
  if (n < next.n) return no("records_repeated", `The record is number ${n}`);
  if (prev !== next.prev) return no("chain_broken", "It does not follow the record before it");
  return { ok: true, n, value };
}

/** A rotation's first record goes on counting, and names the file and head that it follows. */
function firstOfFile(value: { readonly [key: string]: unknown }, own: Expected): boolean {
  const previous = value.previous;
  if (previous === undefined) return own.n === 0 && own.prev === NO_PREVIOUS;
  return isObject(previous) && previous.n === own.n - 1 && previous.hash === own.prev &&
    typeof previous.file === "string";
}

function nameOf(line: string, code: string, detail: string): DamageName {
  if (line.includes("\0")) return "nul";
  if (detail.includes("lone surrogate")) return "lone_surrogate";
  if (code === "not-canonical") return "not_canonical";
  if (/\}\s*\{"v":/.test(line)) return "fused";
  return /[\u2028\u2029\u0085]/.test(line) ? "odd_separator" : "not_json";
}
