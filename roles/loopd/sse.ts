// Server-sent events from bytes that may be cut or joined anywhere. Lines are found in bytes and
// decoded whole, so a character split over two reads is never seen in halves.
//
// Comments and the fields that carry nothing are passed over; a line that is no field of the format
// is foreign text (a proxy's own error) and breaks the stream.
import { err, ok, type Result } from "../../shared/results/result.ts";
import { decodeUtf8 } from "../../shared/wire/codec.ts";
import { joinBytes } from "../../shared/wire/chunks.ts";

const MAX_LINE_BYTES = 4_194_304;
const LINE_FEED = 10;

export function sseReader() {
  let rest: Uint8Array[] = [];
  let restBytes = 0;
  return {
    /** The data of every event completed by these bytes. Fails with `model-stream-broken`. */
    feed(bytes: Uint8Array): Result<string[]> {
      const events: string[] = [];
      let from = 0;
      for (;;) {
        const to = bytes.indexOf(LINE_FEED, from);
        if (to < 0) break;
        const line = joinBytes([...rest, bytes.subarray(from, to)]);
        rest = [];
        restBytes = 0;
        from = to + 1;
        const data = dataOf(line);
        if (!data.ok) return data;
        if (data.value !== null) events.push(data.value);
      }
      // The caller may use its buffer again.
      if (from < bytes.length) rest.push(bytes.slice(from));
      restBytes += bytes.length - from;
      if (restBytes > MAX_LINE_BYTES) return err("model-stream-broken", "A line is too long");
      return ok(events);
    },
  };
}

/** The data of one line, null when it carries none. */
function dataOf(bytes: Uint8Array): Result<string | null> {
  const decoded = decodeUtf8(bytes);
  if (!decoded.ok) return err("model-stream-broken", "The stream is not UTF-8");
  const line = decoded.value.replace(/\r$/, "");
  if (line === "" || line.startsWith(":") || /^(?:event|id|retry)(?::|$)/.test(line)) {
    return ok(null);
  }
  const data = /^data:(.*)$/s.exec(line)?.[1];
  if (data !== undefined) return ok(data.trimStart());
  return err("model-stream-broken", `The stream holds foreign text: ${line.slice(0, 200)}`);
}
