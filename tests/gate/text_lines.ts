// Bytes to lines of text, for output that is read while it is written.

/** A stream of the lines of UTF-8 bytes, without their ends. */
export function textLines(bytes: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncIterable<string> {
  return lines(bytes.pipeThrough(new TextDecoderStream()));
}

async function* lines(text: AsyncIterable<string>): AsyncIterable<string> {
  let rest = "";
  for await (const piece of text) {
    const parts = (rest + piece).split("\n");
    rest = parts.pop() ?? "";
    yield* parts;
  }
  if (rest !== "") yield rest;
}
