// Exact bytes of one file, from an offset, up to a limit. A link, a folder and anything that is not
// a plain file are refused by name; nothing is decoded or changed on the way.
import { err, ok } from "../../shared/results/result.ts";
import { lookAt, type OpenFile, openSame, refused } from "../../shared/tool/files.ts";
import {
  countArgument,
  textArgument,
  type ToolCall,
  type ToolOutcome,
} from "../../shared/tool/sdk.ts";

const DEFAULT_LIMIT = 262_144;
const PIECE_BYTES = 65_536;

/** The body of the tool. The note says which part of the file came. */
export async function readFile(call: ToolCall): Promise<ToolOutcome> {
  const path = textArgument(call, "path");
  const offset = countArgument(call, "offset", 0);
  const limit = countArgument(call, "limit", DEFAULT_LIMIT);
  const found = await lookAt(call.files, path, "file");
  if (!found.ok) return found;
  const opened = await openSame(call.files, path, found.value);
  if (!opened.ok) return opened;
  const { file, size } = opened.value;
  try {
    if (offset > size) {
      return err("beyond-end", `The file has ${size} bytes, the offset is ${offset}`);
    }
    const moved = await file.seek(offset);
    if (!moved.ok) return refused(moved.code);
    const sent = await copy(file, call, limit);
    return typeof sent === "number" ? ok(`bytes ${offset} to ${offset + sent} of ${size}`) : sent;
  } finally {
    file.close();
  }
}

async function copy(file: OpenFile, call: ToolCall, limit: number): Promise<number | ToolOutcome> {
  const buffer = new Uint8Array(PIECE_BYTES);
  let sent = 0;
  while (sent < limit) {
    const count = await file.read(buffer.subarray(0, Math.min(PIECE_BYTES, limit - sent)));
    if (!count.ok) return refused(count.code);
    if (count.value === 0) break;
    await call.write(buffer.subarray(0, count.value));
    sent += count.value;
  }
  return sent;
}
