// One text file, written so that a reader sees the old one or the new one and never a half.
//
// 1. New content goes into a temporary file beside the target and is synced before it gets the name.
// 2. Create never replaces: the name is given by a hard link, which fails when it is taken.
// 3. A link or anything that is not a plain file is refused, before and after opening.
import { encodeUtf8 } from "../../shared/wire/codec.ts";
import { err, ok, type Result } from "../../shared/results/result.ts";
import { type FileFault, type Files, refused } from "../../shared/tool/files.ts";
import { safeWrite } from "../../shared/tool/safe_write.ts";
import {
  optionalText,
  textArgument,
  type ToolCall,
  type ToolOutcome,
} from "../../shared/tool/sdk.ts";

/** The body of the tool. The output is one line that says what was written. */
export async function writeFile(call: ToolCall): Promise<ToolOutcome> {
  const path = textArgument(call, "path");
  const bytes = encodeUtf8(textArgument(call, "content"));
  const mode = optionalText(call, "mode") ?? "create";
  const found = await call.files.lstat(path);
  if (!found.ok && found.code !== "not-found") return refused(found.code);
  if (found.ok && found.value.kind !== "file") {
    return err("not-a-file", `The path is a ${found.value.kind}, not a file`);
  }
  if (mode === "create") {
    if (found.ok) return err("exists", "The file already exists; use mode replace or append");
    return await report(call, bytes, "created", await safeWrite(call, path, bytes, null));
  }
  if (!found.ok) return err("not-found", "The file does not exist; use mode create");
  if (mode === "replace") {
    const replaced = await safeWrite(call, path, bytes, found.value.mode);
    return await report(call, bytes, "replaced", replaced);
  }
  if (mode !== "append") return err("bad-mode", "The mode is create, replace or append");
  const appended = await append(call.files, path, bytes, found.value.identity);
  return await report(call, bytes, "appended", appended);
}

async function report(
  call: ToolCall,
  bytes: Uint8Array<ArrayBuffer>,
  what: string,
  result: Result<null, FileFault>,
): Promise<ToolOutcome> {
  if (!result.ok) return refused(result.code);
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)).toHex();
  await call.write(`${what}: ${bytes.length} bytes, SHA-256 ${hash}\n`);
  return ok("");
}

async function append(
  files: Files,
  path: string,
  bytes: Uint8Array<ArrayBuffer>,
  identity: string,
): Promise<Result<null, FileFault>> {
  const file = await files.open(path, "append");
  if (!file.ok) return file;
  try {
    const facts = await file.value.facts();
    if (!facts.ok) return facts;
    if (facts.value.identity !== identity) return err("not-allowed", "The file was replaced");
    const written = await file.value.write(bytes);
    return written.ok ? await file.value.sync() : written;
  } finally {
    file.value.close();
  }
}
