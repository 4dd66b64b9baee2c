// The entries of a folder, sorted by name in code-unit order, one a line:
//
//   folder       - notes/
//   file      1204 notes/a.txt
//   link         - notes/old -> ../a.txt
//
// Links are shown and never followed; names are printed so that no line can be forged.
import { ok } from "../../shared/results/result.ts";
import { type FileFacts, lookAt, refused } from "../../shared/tool/files.ts";
import { escapeForDisplay } from "../../shared/text/escape.ts";
import {
  countArgument,
  textArgument,
  type ToolCall,
  type ToolOutcome,
} from "../../shared/tool/sdk.ts";

const DEFAULT_MAX = 500;

/** The body of the tool. The note says how many entries were shown and whether more are left. */
export async function listDir(call: ToolCall): Promise<ToolOutcome> {
  const root = textArgument(call, "path");
  const depth = countArgument(call, "depth", 1);
  const max = countArgument(call, "max", DEFAULT_MAX);
  const found = await lookAt(call.files, root, "folder");
  if (!found.ok) return found;
  const walk = { call, root, max, shown: 0, isCut: false };
  const problem = await listBelow(walk, "", depth);
  if (problem !== null) return problem;
  return ok(
    walk.isCut ? `the first ${walk.shown} entries; more are left` : `${walk.shown} entries`,
  );
}

interface Walk {
  readonly call: ToolCall;
  readonly root: string;
  readonly max: number;
  shown: number;
  isCut: boolean;
}

async function listBelow(walk: Walk, below: string, depth: number): Promise<ToolOutcome | null> {
  const { call, root } = walk;
  const names = await call.files.list(`${root}/${below}`);
  if (!names.ok) {
    if (below === "") return refused(names.code, "folder");
    await call.write(`unreadable   - ${escapeForDisplay(below, "line")}\n`);
    return null;
  }
  for (const name of names.value.toSorted()) {
    if (walk.shown >= walk.max) {
      walk.isCut = true;
      return null;
    }
    const facts = await call.files.lstat(`${root}/${below}${name}`);
    // An entry that vanished since the listing is left out; a name that is not UTF-8 is shown.
    if (!facts.ok && facts.code === "not-found" && !name.includes("\uFFFD")) continue;
    walk.shown++;
    await call.write(await line(walk, `${below}${name}`, facts.ok ? facts.value : null));
    if (facts.ok && facts.value.kind === "folder" && depth > 1) {
      await listBelow(walk, `${below}${name}/`, depth - 1);
      if (walk.isCut) return null;
    }
  }
  return null;
}

async function line(walk: Walk, path: string, facts: FileFacts | null): Promise<string> {
  const kind = facts?.kind ?? "unreadable";
  const size = facts?.kind === "file" ? String(facts.size) : "-";
  const head = `${kind.padEnd(6)} ${size.padStart(7)} ${escapeForDisplay(path, "line")}`;
  if (kind === "folder") return `${head}/\n`;
  if (kind !== "link") return `${head}\n`;
  const target = await walk.call.files.linkText(`${walk.root}/${path}`);
  return `${head} -> ${target.ok ? escapeForDisplay(target.value, "line") : "?"}\n`;
}
