// Turns the text of a TOML file into a frozen value of a strict schema, or into one sentence that
// names file, line and key. Nothing is guessed: an unknown key is refused, never dropped. Values are
// not quoted in messages, as a secret may have been pasted in the wrong place.
import { parse, TomlDate, TomlError } from "smol-toml";
import { z } from "zod";
import type { ErrorCode } from "../results/codes.ts";
import { err, messageOf, ok, type Result } from "../results/result.ts";
import { escapeForDisplay } from "../text/escape.ts";
import { nearestWord } from "./distance.ts";

type Issue = z.core.$ZodIssue;
type Source = { readonly toml: string; readonly file: string; readonly schema: z.ZodType };

/**
 * Parses and checks a file's text. `code` is the failure's code: `config-invalid` for a role's
 * configuration, `grants-invalid` for a grant. The detail reads `FILE:LINE: what is wrong`.
 */
export function parseConfig<S extends z.ZodType>(
  schema: S,
  toml: string,
  file: string,
  code: ErrorCode = "config-invalid",
): Result<z.output<S>> {
  const table = parseToml(toml, file, code);
  if (!table.ok) return table;
  const parsed = schema.safeParse(table.value);
  if (parsed.success) return ok(frozen(parsed.data));
  const source = { toml, file, schema };
  const first = foremost(parsed.error.issues);
  const more = parsed.error.issues.length - 1;
  const sentence = first === undefined ? file : describe(source, table.value, first, []);
  return err(code, more > 0 ? `${sentence} (and ${more} more)` : sentence);
}

function parseToml(toml: string, file: string, code: ErrorCode): Result<unknown> {
  try {
    return ok(parse(toml));
  } catch (thrown) {
    const line = thrown instanceof TomlError ? `${thrown.line}:${thrown.column}` : "1";
    const reason = messageOf(thrown).split("\n")[0]?.replace("Invalid TOML document: ", "") ?? "";
    return err(code, `${file}:${line}: not TOML: ${shown(reason)}`);
  }
}

function shown(text: string): string {
  return escapeForDisplay(text.slice(0, 200), "line");
}

function dotted(path: readonly PropertyKey[]): string {
  return shown(path.map(String).join("."));
}

function describe(source: Source, table: unknown, issue: Issue, above: PropertyKey[]): string {
  const path = [...above, ...issue.path];
  const at = (key: readonly PropertyKey[]) => `${source.file}:${lineOfKey(source.toml, key)}: `;
  if (issue.code === "unrecognized_keys") {
    const [key = ""] = issue.keys;
    const known = knownKeys(source.schema, path);
    const nearest = nearestWord(key, known);
    const hint = nearest === null
      ? `known keys are ${known.slice(0, 20).join(", ") || "none"}`
      : `nearest known key is "${nearest}"`;
    return `${at([...path, key])}unknown key "${shown(key)}"; ${hint}`;
  }
  if (issue.code === "invalid_union") {
    const branch = closestBranch(issue.errors);
    if (branch !== undefined) return describe(source, table, branch, path);
  }
  const found = valueAt(table, path);
  if (found === undefined && path.length > 0) {
    return `${at(path)}key "${dotted(path)}" is missing`;
  }
  if (issue.code === "invalid_type") {
    return `${at(path)}"${dotted(path)}" must be ${issue.expected}, found ${typeName(found)}`;
  }
  if (issue.code === "invalid_value") {
    const values = issue.values.map((value) => JSON.stringify(value)).join(", ");
    return `${at(path)}"${dotted(path)}" must be one of ${values}`;
  }
  return `${at(path)}"${dotted(path)}": ${shown(issue.message)}`;
}

/** Of a union's attempts the one that came furthest: the fewest complaints, the deepest first. */
function closestBranch(branches: readonly (readonly Issue[])[]): Issue | undefined {
  const depth = (issues: readonly Issue[]) => issues[0]?.path.length ?? 0;
  const sorted = branches.filter((issues) => issues.length > 0)
    .toSorted((a, b) => depth(b) - depth(a) || a.length - b.length);
  return foremost(sorted[0] ?? []);
}

/** A mistyped key explains the missing one beside it, so it is told first. */
function foremost(issues: readonly Issue[]): Issue | undefined {
  return issues.find((issue) => issue.code === "unrecognized_keys") ?? issues[0];
}

/** The line, from 1, on which a key's entry begins, or the nearest thing around it; for a text that parses. */
export function lineOfKey(toml: string, path: readonly PropertyKey[]): number {
  const lines = toml.split("\n");
  /** Whether so many lines hold the key; null when they end inside an entry. */
  const holds = (count: number, key: readonly PropertyKey[]) => {
    const table = parseToml(lines.slice(0, count).join("\n"), "", "config-invalid");
    return table.ok ? valueAt(table.value, key) !== undefined : null;
  };
  let key = path;
  while (key.length > 0 && holds(lines.length, key) !== true) key = key.slice(0, -1);
  if (key.length === 0) return 1;
  // Between two cuts that fall between entries, of which only the later one holds the key.
  let without = 0;
  let within = lines.length;
  for (;;) {
    const middle = (without + within) >> 1;
    const below = Array.from({ length: middle - without }, (_, i) => middle - i);
    const above = Array.from({ length: within - middle - 1 }, (_, i) => middle + 1 + i);
    const cut = [...below, ...above].find((count) => holds(count, key) !== null);
    if (cut === undefined) return without + 1;
    if (holds(cut, key) === true) within = cut;
    else without = cut;
  }
}

function isTable(value: unknown): value is { readonly [key: PropertyKey]: unknown } {
  return typeof value === "object" && value !== null;
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  let inner = value;
  for (const key of path) {
    inner = isTable(inner) && Object.hasOwn(inner, key) ? inner[key] : undefined;
  }
  return inner;
}

function typeName(value: unknown): string {
  if (Array.isArray(value)) return "array";
  if (value instanceof TomlDate) return "date-time";
  return typeof value === "object" ? "table" : typeof value;
}

/** Keys that the schema knows below a path, read from its JSON Schema form. */
function knownKeys(schema: z.ZodType, path: readonly PropertyKey[]): string[] {
  let places: unknown[] = [z.toJSONSchema(schema, { io: "input", unrepresentable: "any" })];
  for (const key of path) {
    places = places.flatMap(alternatives).flatMap((place) => below(place, key));
  }
  const keys = places.flatMap(alternatives)
    .flatMap((place) =>
      isTable(place) && isTable(place.properties) ? Object.keys(place.properties) : []
    );
  return [...new Set(keys)];
}

function alternatives(place: unknown): unknown[] {
  if (!isTable(place)) return [];
  const choices = [place.anyOf, place.oneOf, place.allOf].flatMap((list) =>
    Array.isArray(list) ? list : []
  );
  return [place, ...choices.flatMap(alternatives)];
}

function below(place: unknown, key: PropertyKey): unknown[] {
  if (!isTable(place)) return [];
  if (typeof key === "number") return [place.items];
  const known = isTable(place.properties) ? place.properties[key] : undefined;
  return [known ?? place.additionalProperties];
}

function frozen<T>(value: T): T {
  if (isTable(value) && !Object.isFrozen(value)) {
    for (const inner of Object.values(value)) frozen(inner);
    if (!(value instanceof Date)) Object.freeze(value);
  }
  return value;
}
