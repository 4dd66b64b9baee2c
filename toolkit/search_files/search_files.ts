// A plain text in the files below a folder, or file names by glob. No expression language, so the
// time is linear in what is read. Links, binary files and files over 16 MiB are skipped and counted.
import { decodeLossy } from "../../shared/wire/codec.ts";
import { err, ok } from "../../shared/results/result.ts";
import { type FileFacts, lookAt, openSame, readInto } from "../../shared/tool/files.ts";
import { escapeForDisplay, escapeProse } from "../../shared/text/escape.ts";
import {
  countArgument,
  flagArgument,
  optionalText,
  textArgument,
  type ToolCall,
  type ToolOutcome,
} from "../../shared/tool/sdk.ts";
import { globMatches } from "../../shared/text/glob.ts";

const DEFAULT_MAX = 200;
const MAX_FILE_BYTES = 16_777_216;
const MAX_ENTRIES = 100_000;
const MAX_DEPTH = 32;
const MAX_LINE_UNITS = 400;
const BINARY_PROBE_BYTES = 8_192;

interface Search {
  readonly call: ToolCall;
  readonly root: string;
  readonly text: string | null;
  readonly names: string | null;
  readonly isCaseIgnored: boolean;
  readonly max: number;
  shown: number;
  entries: number;
  skipped: number;
  isCut: boolean;
}

/** The body of the tool. The note says how many lines were shown and what was skipped. */
export async function searchFiles(call: ToolCall): Promise<ToolOutcome> {
  const search = searchOf(call);
  if (search.text === null && search.names === null) {
    return err("nothing-asked", "Give a text to find, or names to match, or both");
  }
  const found = await lookAt(call.files, search.root, "folder");
  if (!found.ok) return found;
  await searchBelow(search, "", MAX_DEPTH);
  return ok(note(search));
}

function searchOf(call: ToolCall): Search {
  const isCaseIgnored = flagArgument(call, "ignore_case");
  const text = optionalText(call, "text");
  return {
    call,
    root: textArgument(call, "path"),
    text: text !== null && isCaseIgnored ? text.toLowerCase() : text,
    names: optionalText(call, "names"),
    isCaseIgnored,
    max: countArgument(call, "max", DEFAULT_MAX),
    shown: 0,
    entries: 0,
    skipped: 0,
    isCut: false,
  };
}

function note(search: Search): string {
  const lines = search.isCut
    ? `the first ${search.shown} lines; more are left`
    : `${search.shown} lines`;
  const skipped = search.skipped > 0 ? `; ${search.skipped} entries skipped` : "";
  return `${lines}${skipped}`;
}

async function searchBelow(search: Search, below: string, depth: number): Promise<void> {
  const names = await search.call.files.list(`${search.root}/${below}`);
  if (!names.ok || depth === 0) {
    search.skipped++;
    return;
  }
  for (const name of names.value.toSorted()) {
    if (++search.entries > MAX_ENTRIES) search.isCut = true;
    if (search.isCut) return;
    const path = `${below}${name}`;
    const facts = await search.call.files.lstat(`${search.root}/${path}`);
    if (facts.ok && facts.value.kind === "folder") {
      await searchBelow(search, `${path}/`, depth - 1);
    } else if (facts.ok && facts.value.kind === "file") {
      if (search.names !== null && !globMatches(search.names, name)) continue;
      if (search.text === null) await show(search, escapeForDisplay(path, "line"));
      else await searchFile(search, path, facts.value, search.text);
    } else search.skipped++;
  }
}

async function searchFile(
  search: Search,
  path: string,
  facts: FileFacts,
  text: string,
): Promise<void> {
  const bytes = facts.size <= MAX_FILE_BYTES ? await readAll(search, path, facts) : null;
  if (bytes === null || bytes.subarray(0, BINARY_PROBE_BYTES).includes(0)) {
    search.skipped++;
    return;
  }
  let number = 0;
  for (const line of decodeLossy(bytes).split("\n")) {
    number++;
    const matches = (search.isCaseIgnored ? line.toLowerCase() : line).includes(text);
    if (!matches) continue;
    const shown = shownLine(line.endsWith("\r") ? line.slice(0, -1) : line);
    if (!await show(search, `${escapeForDisplay(path, "line")}:${number}:${shown}`)) return;
  }
}

/** One line of a file for display: invisible code points are shown, a long line is cut and says so. */
function shownLine(line: string): string {
  const shown = escapeProse(line.slice(0, MAX_LINE_UNITS));
  return line.length > MAX_LINE_UNITS ? `${shown} ... (${line.length} characters)` : shown;
}

async function show(search: Search, line: string): Promise<boolean> {
  if (search.shown >= search.max) {
    search.isCut = true;
    return false;
  }
  search.shown++;
  await search.call.write(`${line}\n`);
  return true;
}

async function readAll(search: Search, path: string, facts: FileFacts): Promise<Uint8Array | null> {
  const opened = await openSame(search.call.files, `${search.root}/${path}`, facts);
  if (!opened.ok) return null;
  const { file, size } = opened.value;
  try {
    const bytes = new Uint8Array(Math.min(size, MAX_FILE_BYTES));
    const filled = await readInto(file, bytes);
    return filled.ok ? bytes.subarray(0, filled.value) : null;
  } finally {
    file.close();
  }
}
