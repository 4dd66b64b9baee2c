// A file written so that a reader sees the old one or the new one and never a half: a temporary file
// beside the target, synced before it gets the name.
import type { Result } from "../results/result.ts";
import type { FileFault, Files } from "./files.ts";
import type { ToolCall } from "./sdk.ts";

const NEW_FILE_MODE = 0o600;

/** Writes a temporary file and gives it the name: exclusively when `oldMode` is null, else replacing. */
export async function safeWrite(
  { files, random }: Pick<ToolCall, "files" | "random">,
  path: string,
  bytes: Uint8Array<ArrayBuffer>,
  oldMode: number | null,
): Promise<Result<null, FileFault>> {
  const folder = path.slice(0, path.lastIndexOf("/"));
  const temporary = `${folder}/.${random.bytes(12).toHex()}.tmp`;
  const written = await writeNew(files, temporary, bytes, oldMode ?? NEW_FILE_MODE);
  const named = !written.ok
    ? written
    : oldMode === null
    ? await files.link(temporary, path)
    : await files.rename(temporary, path);
  if (oldMode === null || !named.ok) await files.remove(temporary);
  return named.ok ? await files.syncFolder(folder) : named;
}

async function writeNew(
  files: Files,
  path: string,
  bytes: Uint8Array<ArrayBuffer>,
  mode: number,
): Promise<Result<null, FileFault>> {
  const file = await files.open(path, "create");
  if (!file.ok) return file;
  try {
    const written = await file.value.write(bytes);
    if (!written.ok) return written;
    const moded = await files.chmod(path, mode);
    return moded.ok ? await file.value.sync() : moded;
  } finally {
    file.value.close();
  }
}
