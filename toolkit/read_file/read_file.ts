// Exact bytes of one file, from an offset, up to a limit. A link, a folder and anything that is not
// a plain file are refused by name; nothing is decoded or changed on the way.
import { err, ok } from "../../shared/results/result.ts";
import { faultSentence, type OpenFile } from "../../shared/tool/files.ts";
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
  const found = await call.files.lstat(path);
  if (!found.ok) return err(found.code, `The file ${faultSentence(found.code)}`);
  if (found.value.kind !== "file") {
    return err("not-a-file", `The path is a ${found.value.kind}, not a file`);
  }
  const file = await call.files.open(path, "read");
  if (!file.ok) return err(file.code, `The file ${faultSentence(file.code)}`);
  try {
    const facts = await file.value.facts();
    if (!facts.ok || facts.value.identity !== found.value.identity) {
      return err("changed", "The file was replaced while it was opened; ask again");
    }
    if (offset > facts.value.size) {
      return err("beyond-end", `The file has ${facts.value.size} bytes, the offset is ${offset}`);
    }
    const moved = await file.value.seek(offset);
    if (!moved.ok) return err(moved.code, `The file ${faultSentence(moved.code)}`);
    const sent = await copy(file.value, call, limit);
    if (typeof sent !== "number") return sent;
    return ok(`bytes ${offset} to ${offset + sent} of ${facts.value.size}`);
  } finally {
    file.value.close();
  }
}

async function copy(file: OpenFile, call: ToolCall, limit: number): Promise<number | ToolOutcome> {
  const buffer = new Uint8Array(PIECE_BYTES);
  let sent = 0;
  while (sent < limit) {
    const count = await file.read(buffer.subarray(0, Math.min(PIECE_BYTES, limit - sent)));
    if (!count.ok) return err(count.code, `The file ${faultSentence(count.code)}`);
    if (count.value === 0) break;
    await call.write(buffer.subarray(0, count.value));
    sent += count.value;
  }
  return sent;
}
