// Finds the line on which a key of a TOML text is written, so that a message can point at it. It is
// only asked about texts that parse; a value inside an inline table has its key's line.

const PART = `(?:[A-Za-z0-9_-]+|"(?:[^"\\\\]|\\\\.)*"|'[^']*')`;
const KEY = `${PART}(?:[ \\t]*\\.[ \\t]*${PART})*`;
const HEADER = new RegExp(`^[ \\t]*\\[(\\[?)[ \\t]*(${KEY})[ \\t]*\\]`);
const ASSIGN = new RegExp(`^[ \\t]*(${KEY})[ \\t]*=(.*)$`);

type Path = readonly PropertyKey[];
type Written = { readonly path: Path; readonly line: number };

function partsOf(key: string): string[] {
  const parts = key.match(new RegExp(PART, "g")) ?? [];
  return parts.map((part) => /^["']/.test(part) ? part.slice(1, -1) : part);
}

/** Adds the index of the element that an array of tables is at. */
function indexed(parts: readonly string[], counts: ReadonlyMap<string, number>): Path {
  const path: PropertyKey[] = [];
  let key = "";
  for (const part of parts) {
    path.push(part);
    key += `\n${part}`;
    const count = counts.get(key);
    if (count !== undefined) path.push(count);
  }
  return path;
}

function writtenKeys(toml: string): Written[] {
  const found: Written[] = [];
  const counts = new Map<string, number>();
  let table: Path = [];
  let fence: string | null = null;
  for (const [i, line] of toml.split("\n").entries()) {
    if (fence !== null) {
      if (line.includes(fence)) fence = null;
      continue;
    }
    const header = HEADER.exec(line);
    const assign = header === null ? ASSIGN.exec(line) : null;
    if (header !== null) {
      const parts = partsOf(header[2] ?? "");
      const key = parts.map((part) => `\n${part}`).join("");
      if (header[1] === "[") counts.set(key, (counts.get(key) ?? -1) + 1);
      table = indexed(parts, counts);
      found.push({ path: table, line: i + 1 });
    } else if (assign !== null) {
      found.push({ path: [...table, ...partsOf(assign[1] ?? "")], line: i + 1 });
    }
    fence = openFence(assign?.[2] ?? "");
  }
  return found;
}

/** The quotes of a multi-line string that starts on this line and does not end on it. */
function openFence(value: string): string | null {
  const fence = /^[ \t]*("""|''')/.exec(value)?.[1];
  if (fence === undefined) return null;
  return value.indexOf(fence, value.indexOf(fence) + 3) < 0 ? fence : null;
}

function sharedLength(a: Path, b: Path): number {
  let length = 0;
  while (length < a.length && length < b.length && a[length] === b[length]) length++;
  return length;
}

/** The 1-based line of the key, or of the nearest thing around it; 1 when nothing of it is written. */
export function lineOfKey(toml: string, path: Path): number {
  let best = { shared: 0, extra: Infinity, line: 1 };
  for (const written of writtenKeys(toml)) {
    const shared = sharedLength(written.path, path);
    const extra = written.path.length - shared;
    const isBetter = shared > best.shared || (shared === best.shared && extra < best.extra);
    if (shared > 0 && isBetter) best = { shared, extra, line: written.line };
  }
  return best.line;
}
