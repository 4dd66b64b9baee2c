// A name server for tests, over UDP. What a name means changes from one question to the next, as the
// test says; a name without an answer does not exist.
import { createSocket } from "node:dgram";

/** Answers by kind, in the order in which questions come; the last one stays. */
export type Names = Readonly<
  Record<string, readonly { readonly a?: readonly string[]; readonly aaaa?: readonly string[] }[]>
>;

export interface NameServer extends AsyncDisposable {
  /** Questions asked, as `A name` or `AAAA name`. */
  readonly asked: string[];
}

export async function startNameServer(names: Names): Promise<NameServer> {
  const asked: string[] = [];
  const counts = new Map<string, number>();
  const socket = createSocket("udp4");
  socket.on("message", (message, from) => {
    const { name, end } = nameIn(message);
    const kind = (message[end] ?? 0) << 8 | (message[end + 1] ?? 0);
    const word = kind === 1 ? "A" : kind === 28 ? "AAAA" : String(kind);
    asked.push(`${word} ${name}`);
    const key = `${word} ${name}`;
    const nth = counts.get(key) ?? 0;
    counts.set(key, nth + 1);
    const told = names[name];
    const now = told?.[Math.min(nth, told.length - 1)];
    const addresses = kind === 1 ? now?.a ?? [] : kind === 28 ? now?.aaaa ?? [] : [];
    const question = message.subarray(12, end + 4);
    const head = Uint8Array.from([
      message[0] ?? 0,
      message[1] ?? 0,
      0x81,
      told === undefined ? 0x83 : 0x80,
      ...[0, 1, 0, addresses.length, 0, 0, 0, 0],
    ]);
    const records = addresses.flatMap((text) => {
      const bytes = kind === 1 ? text.split(".").map(Number) : ipv6(text);
      return [0xc0, 12, 0, kind, 0, 1, 0, 0, 0, 0, 0, bytes.length, ...bytes];
    });
    socket.send(Uint8Array.from([...head, ...question, ...records]), from.port, from.address);
  });
  await new Promise<void>((resolve, reject) => {
    socket.once("error", reject);
    socket.bind(53, "127.0.0.1", () => resolve());
  });
  return {
    asked,
    [Symbol.asyncDispose]: () => new Promise((resolve) => socket.close(() => resolve())),
  };
}

function nameIn(message: Uint8Array): { name: string; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = message[at] ?? 0; length > 0; length = message[at] ?? 0) {
    labels.push(new TextDecoder().decode(message.subarray(at + 1, at + 1 + length)));
    at += length + 1;
  }
  return { name: labels.join(".").toLowerCase(), end: at + 1 };
}

/** Only what tests write: at most one `::`, no embedded IPv4. */
function ipv6(text: string): number[] {
  const [left = "", right = ""] = text.split("::");
  const words = (part: string) =>
    part === "" ? [] : part.split(":").map((one) => parseInt(one, 16));
  const [before, after] = [words(left), words(right)];
  const gap = Array.from({ length: 8 - before.length - after.length }, () => 0);
  return [...before, ...gap, ...after].flatMap((word) => [word >> 8, word & 0xff]);
}
