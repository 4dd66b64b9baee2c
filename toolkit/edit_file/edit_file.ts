// Exact words of one text file, replaced by others, or nothing at all changed.
//
// 1. Text that is not found, or is found more than once unless all are meant, changes nothing.
// 2. The file is read whole, and replaced as a whole; a reader never sees a half.
// 3. A link, a file that is not UTF-8 text, and one that was swapped meanwhile are refused.
import { err, ok, type Result } from "../../shared/results/result.ts";
import { lookAt, openSame, readInto, refused } from "../../shared/tool/files.ts";
import { safeWrite } from "../../shared/tool/safe_write.ts";
import {
  flagArgument,
  textArgument,
  type ToolCall,
  type ToolOutcome,
} from "../../shared/tool/sdk.ts";
import { decodeUtf8, encodeUtf8 } from "../../shared/wire/codec.ts";

const MAX_FILE_BYTES = 4_194_304;

type Read = { readonly text: string; readonly mode: number; readonly identity: string };

/** The body of the tool. The output is one line that says what was changed. */
export async function editFile(call: ToolCall): Promise<ToolOutcome> {
  const path = textArgument(call, "path");
  const old = textArgument(call, "old");
  const fresh = textArgument(call, "new");
  const found = await readText(call, path);
  if (!found.ok) return found;
  const parts = found.value.text.split(old);
  const count = parts.length - 1;
  if (old === "" || count === 0) return err("not-found", "The file does not hold the old text");
  if (count > 1 && !flagArgument(call, "all")) {
    return err("ambiguous", `The old text is there ${count} times; give more of it, or set all`);
  }
  if (old === fresh) return err("no-change", "The new text is the old text");
  const text = parts.join(fresh);
  const bytes = encodeUtf8(text);
  if (!text.isWellFormed() || bytes.length > MAX_FILE_BYTES) {
    return err("too-large", `The file would have ${bytes.length} bytes, or be no plain text`);
  }
  const now = await call.files.lstat(path);
  if (!now.ok || now.value.identity !== found.value.identity) {
    return err("changed", "The file was replaced while it was edited; ask again");
  }
  const written = await safeWrite(call, path, bytes, found.value.mode);
  if (!written.ok) return refused(written.code);
  await call.write(
    `replaced ${count} ${count === 1 ? "place" : "places"}: ${bytes.length} bytes\n`,
  );
  return ok("");
}

async function readText({ files }: ToolCall, path: string): Promise<Result<Read, string>> {
  const facts = await lookAt(files, path, "file");
  if (!facts.ok) return facts;
  const { size, mode, identity } = facts.value;
  if (size > MAX_FILE_BYTES) return err("too-large", `The file has ${size} bytes`);
  const opened = await openSame(files, path, facts.value);
  if (!opened.ok) return opened;
  try {
    const bytes = new Uint8Array(size);
    const filled = await readInto(opened.value.file, bytes);
    if (!filled.ok) return refused(filled.code);
    if (filled.value < size) return err("changed", "The file became shorter; ask again");
    const text = decodeUtf8(bytes);
    return text.ok ? ok({ text: text.value, mode, identity }) : err("not-text", "It is not text");
  } finally {
    opened.value.file.close();
  }
}
