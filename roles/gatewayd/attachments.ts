// Files that came with a message. A small text file becomes part of the message, named and marked, and
// raises the session's label; every other one is declined by name.
import type { Label } from "../../shared/labels/label.ts";
import { escapeForDisplay } from "../../shared/text/escape.ts";
import { decodeUtf8, encodeUtf8 } from "../../shared/wire/codec.ts";
import { MAX_MESSAGE_BYTES } from "../../shared/wire/limits.ts";
import { FileInfo } from "./mattermost.ts";
import { defused } from "./outgoing_text.ts";
import type { Rest } from "./rest.ts";
import type { Inbound } from "./store.ts";

/** A file is not the owner's own words. */
const FILE_LABEL: Label = { class: "private", untrusted: true };

export type ReadMessage =
  | {
    readonly is: "read";
    readonly text: string;
    readonly label: Label | null;
    /** One line for the owner for each file that was left out. */
    readonly declined: readonly string[];
  }
  | { readonly is: "again" };

export type Attachments = ReturnType<typeof makeAttachments>;

export function makeAttachments(rest: Rest, maxBytes: number) {
  const readFile = async (id: string): Promise<{ text: string } | { why: string } | null> => {
    const info = await rest.ask({ method: "GET", path: `/files/${id}/info` }, FileInfo);
    if (info.is === "unknown") return null;
    if (info.is !== "ok") return { why: "A file was not read: it cannot be had" };
    const name = escapeForDisplay(info.value.name, "line").slice(0, 200);
    const no = (why: string) => ({ why: `${defused(name)} was not read: ${why}` });
    if (info.value.size > maxBytes) return no(`it has more than ${maxBytes} bytes`);
    const bytes = await rest.file(id, maxBytes);
    if (bytes.is === "unknown") return null;
    if (bytes.is !== "ok") return no("it cannot be had");
    const text = decodeUtf8(bytes.value);
    if (!text.ok || text.value.includes("\0")) return no("only text files are");
    return { text: `[attached file ${name}]\n${text.value}\n[end of ${name}]` };
  };
  return {
    /** A message with the text of its files; `again` when the server did not answer. */
    async read(row: Pick<Inbound, "text" | "files">): Promise<ReadMessage> {
      const texts = [row.text];
      const declined: string[] = [];
      let room = MAX_MESSAGE_BYTES - encodeUtf8(row.text).length;
      for (const id of row.files.split(" ").filter((one) => one !== "")) {
        const file = await readFile(id);
        if (file === null) return { is: "again" };
        const size = "text" in file ? encodeUtf8(file.text).length + 2 : 0;
        if ("text" in file && size <= room) {
          texts.push(file.text);
          room -= size;
        } else {
          const why = "why" in file && file.why;
          declined.push(why || "A file was not read: together they are too long");
        }
      }
      const label = texts.length > 1 ? FILE_LABEL : null;
      return { is: "read", text: texts.filter((one) => one !== "").join("\n\n"), label, declined };
    },
  };
}
