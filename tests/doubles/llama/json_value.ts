// Small readers of untyped JSON for the double: narrowing, the template engine's own JSON style and
// the raw text of an object's members. Nothing here throws on bad input.

export type JsonObject = { readonly [key: string]: unknown };

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The value as a list; anything else is an empty list. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The member `key`, with `null` counted as absent. */
export function member(object: JsonObject, key: string): unknown {
  const value = Object.hasOwn(object, key) ? object[key] : undefined;
  return value === null ? undefined : value;
}

export function textOf(value: unknown, otherwise = ""): string {
  return typeof value === "string" ? value : otherwise;
}

export function numberOf(value: unknown, otherwise: number): number {
  return typeof value === "number" && Number.isFinite(value) ? value : otherwise;
}

/** The parsed text, or undefined when it is not JSON. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // The caller answers malformed text in its own words.
  }
}

/** JSON as the template engine writes it: a space after every comma and colon. */
export function spacedJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(spacedJson).join(", ")}]`;
  if (!isObject(value)) return JSON.stringify(value) ?? "null";
  const members = Object.entries(value).map(([k, v]) => `${JSON.stringify(k)}: ${spacedJson(v)}`);
  return `{${members.join(", ")}}`;
}

/** A value as the template prints it into a call: strings verbatim, booleans capitalised. */
export function templateValue(value: unknown): string {
  if (typeof value === "string") return value;
  if (value === true) return "True";
  if (value === false) return "False";
  if (value === null) return "None";
  return spacedJson(value);
}

export type RawMember = { readonly key: string; readonly raw: string };

/** Top-level members of an object's JSON text with each value's own bytes; null when it is none. */
export function rawMembers(text: string): readonly RawMember[] | null {
  if (!isObject(parsed(text))) return null;
  const inner = text.trim().slice(1, -1);
  return splitTop(inner, ",").filter((part) => part.trim() !== "").map((part) => {
    const [key = ""] = splitTop(part, ":");
    return { key: textOf(parsed(key)), raw: part.slice(key.length + 1).trim() };
  });
}

/** Splits valid JSON text at `separator`, ignoring what lies in strings, arrays and objects. */
function splitTop(text: string, separator: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let inString = false;
  let start = 0;
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (inString) {
      if (c === "\\") i++;
      else if (c === '"') inString = false;
    } else if (c === '"') inString = true;
    else if (c === "{" || c === "[") depth++;
    else if (c === "}" || c === "]") depth--;
    else if (c === separator && depth === 0) {
      parts.push(text.slice(start, i));
      start = i + 1;
    }
  }
  return [...parts, text.slice(start)];
}
