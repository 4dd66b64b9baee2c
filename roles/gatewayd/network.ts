// The port to the network: the runtime's own WebSocket. Its close handshake may never end, so an end
// is reported when it is asked for, and what comes later is dropped.
import { encodeUtf8 } from "../../shared/wire/codec.ts";
import type { OpenWire } from "./connection.ts";

const MAX_SENT_BYTES = 8_192;

export const webSocketWire: OpenWire = (url, headers, on) => {
  const socket = new WebSocket(url, { headers });
  let isOver = false;
  const end = () => {
    if (isOver) return;
    isOver = true;
    on.end();
  };
  socket.onopen = () => {
    if (!isOver) on.open();
  };
  socket.onmessage = ({ data }) => {
    if (!isOver && typeof data === "string") on.message(data);
  };
  socket.onerror = end;
  socket.onclose = end;
  return {
    send(text) {
      const fits = encodeUtf8(text).length <= MAX_SENT_BYTES;
      if (fits && socket.readyState === WebSocket.OPEN) socket.send(text);
    },
    close() {
      end();
      socket.close();
    },
  };
};
