// One durable append to a file that nobody else appends to.
import type { Disk } from "../../shared/disk/disk.ts";
import { openAppender } from "../../shared/disk/durable.ts";
import { ok, type Result } from "../../shared/results/result.ts";
import { encodeUtf8 } from "../../shared/wire/codec.ts";

/** Appends `text` to a file, made when absent, of which `keep` bytes are kept; its new size. */
export function appendText(
  disk: Disk,
  path: string,
  text: string,
  keep = Infinity,
): Result<number> {
  const opened = openAppender(disk, path);
  if (!opened.ok) return opened;
  const file = opened.value;
  try {
    const cut = keep < file.size() ? file.cutTo(keep) : ok(undefined);
    const appended = cut.ok ? file.append(encodeUtf8(text)) : cut;
    return appended.ok ? ok(file.size()) : appended;
  } finally {
    file.close();
  }
}
