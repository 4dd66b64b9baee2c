// WebSocket frames by hand: what `Deno.upgradeWebSocket` cannot do (raw drops, withheld Pongs, empty
// close frames) needs the bytes themselves. Server side: reads masked frames, writes bare ones.

export const OPCODE = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;

export interface Frame {
  readonly opcode: number;
  readonly isFinal: boolean;
  readonly payload: Uint8Array;
}

/** One unmasked frame. */
export function encodeFrame(opcode: number, payload: Uint8Array): Uint8Array<ArrayBuffer> {
  const size = payload.length;
  const head = size < 126 ? 2 : size < 65_536 ? 4 : 10;
  const out = new Uint8Array(head + size);
  const view = new DataView(out.buffer);
  out[0] = 0x80 | opcode;
  if (size < 126) out[1] = size;
  else if (size < 65_536) {
    out[1] = 126;
    view.setUint16(2, size);
  } else {
    out[1] = 127;
    view.setBigUint64(2, BigInt(size));
  }
  out.set(payload, head);
  return out;
}

export type FrameError = "unmasked" | "too-large";

export interface FrameReader {
  /** Frames that these bytes complete; an error ends the connection. */
  read(bytes: Uint8Array): { readonly frames: Frame[]; readonly error: FrameError | null };
}

export function createFrameReader(maxBytes: number): FrameReader {
  let held = new Uint8Array(0);
  const take = (): Frame | FrameError | null => {
    if (held.length < 2) return null;
    const view = new DataView(held.buffer, held.byteOffset, held.byteLength);
    const first = view.getUint8(0);
    const second = view.getUint8(1);
    if ((second & 0x80) === 0) return "unmasked";
    const short = second & 0x7f;
    const head = short < 126 ? 2 : short === 126 ? 4 : 10;
    if (held.length < head) return null;
    const size = short < 126
      ? short
      : short === 126
      ? view.getUint16(2)
      : Number(view.getBigUint64(2));
    if (size > maxBytes) return "too-large";
    if (held.length < head + 4 + size) return null;
    const mask = held.subarray(head, head + 4);
    const payload = held.slice(head + 4, head + 4 + size).map((byte, at) =>
      byte ^ (mask[at % 4] ?? 0)
    );
    held = held.slice(head + 4 + size);
    return { opcode: first & 0x0f, isFinal: (first & 0x80) !== 0, payload };
  };
  return {
    read: (bytes) => {
      const joined = new Uint8Array(held.length + bytes.length);
      joined.set(held);
      joined.set(bytes, held.length);
      held = joined;
      const frames: Frame[] = [];
      for (;;) {
        const next = take();
        if (next === null) return { frames, error: null };
        if (typeof next === "string") return { frames, error: next };
        frames.push(next);
      }
    },
  };
}

/** A close frame's payload: two bytes of code, or nothing at all. */
export function closePayload(code: number | null): Uint8Array {
  return code === null ? new Uint8Array(0) : new Uint8Array([code >> 8, code & 0xff]);
}
