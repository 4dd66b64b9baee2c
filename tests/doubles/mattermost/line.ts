// One raw TCP line that speaks WebSocket frames, and every way it can go wrong. It knows nothing of
// Mattermost; `hub.ts` decides what is said.
import type { Socket } from "node:net";
import { Buffer } from "node:buffer";
import { closePayload, createFrameReader, encodeFrame, type Frame, OPCODE } from "./ws_frames.ts";

export interface LineEvents {
  readonly onText: (text: string) => void;
  readonly onBinary: () => void;
  readonly onPong: () => void;
  readonly onPing: (payload: Uint8Array) => void;
  /** The other side is gone, or this side has ended the line. Said once. */
  readonly onGone: () => void;
}

export interface Line {
  sendText(text: string): void;
  sendPing(): void;
  sendPong(payload: Uint8Array): void;
  /** A TCP end without a close frame. */
  fin(): void;
  rst(): void;
  /** A close frame (null = empty payload), then the end. */
  close(code: number | null): void;
  /** Half-open: nothing is read or written any more and the other side is told nothing. */
  freeze(): void;
}

const MAX_CLIENT_MESSAGE = 8192;

export function createLine(socket: Socket, head: Uint8Array, events: LineEvents): Line {
  const reader = createFrameReader(MAX_CLIENT_MESSAGE);
  let isFrozen = false;
  let isGone = false;
  let parts: Uint8Array[] = [];
  let opcode: number = OPCODE.text;

  const gone = () => {
    if (isGone) return;
    isGone = true;
    if (!isFrozen) events.onGone();
  };
  const write = (bytes: Uint8Array) => {
    if (!isFrozen && !isGone && !socket.destroyed) socket.write(Buffer.from(bytes));
  };
  const end = () => {
    if (isFrozen) return; // Nothing that this side does reaches the other.
    socket.end();
    // A client that never answers the end must not hold the server.
    const timer = setTimeout(() => socket.destroy(), 50);
    socket.on("close", () => clearTimeout(timer));
    gone();
  };
  const close = (code: number | null) => {
    write(encodeFrame(OPCODE.close, closePayload(code)));
    end();
  };

  const message = (frame: Frame) => {
    if (frame.opcode !== OPCODE.continuation) {
      parts = [];
      opcode = frame.opcode;
    }
    parts.push(frame.payload);
    if (parts.reduce((sum, part) => sum + part.length, 0) > MAX_CLIENT_MESSAGE) return close(1009);
    if (!frame.isFinal) return;
    if (opcode === OPCODE.text) events.onText(Buffer.concat(parts).toString("utf8"));
    else events.onBinary();
    parts = [];
  };
  const take = (bytes: Uint8Array) => {
    if (isFrozen || isGone) return;
    const { frames, error } = reader.read(bytes);
    for (const frame of frames) {
      if (isGone || isFrozen) return;
      if (frame.opcode === OPCODE.ping) events.onPing(frame.payload);
      else if (frame.opcode === OPCODE.pong) events.onPong();
      else if (frame.opcode === OPCODE.close) close(1000);
      else message(frame);
    }
    if (error === "too-large") close(1009);
    else if (error === "unmasked") close(1002);
  };

  socket.on("data", (bytes: Uint8Array) => take(bytes));
  socket.on("error", () => gone());
  socket.on("end", () => {
    socket.end();
    gone();
  });
  socket.on("close", () => gone());
  if (head.length > 0) queueMicrotask(() => take(head));
  return {
    sendText: (text) => write(encodeFrame(OPCODE.text, Buffer.from(text, "utf8"))),
    sendPing: () => write(encodeFrame(OPCODE.ping, new Uint8Array(0))),
    sendPong: (payload) => write(encodeFrame(OPCODE.pong, payload)),
    fin: end,
    rst: () => {
      socket.resetAndDestroy();
      gone();
    },
    close,
    freeze: () => {
      isFrozen = true;
    },
  };
}
