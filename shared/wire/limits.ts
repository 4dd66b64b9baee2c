// Limits of the wire, in one place. Every one is tested at n-1, n and n+1.

export const WIRE_VERSION = 1;

/** A frame's JSON, in bytes; refused on the length prefix, before memory is reserved. */
export const MAX_FRAME_BYTES = 1_048_576;
/** Nesting of arrays and objects. */
export const MAX_DEPTH = 32;
/** Keys of one object. */
export const MAX_KEYS = 256;
/** One string, in UTF-8 bytes. Anything longer travels as chunks. */
export const MAX_STRING_BYTES = 65_536;
/** Raw bytes of one chunk, before base 64. */
export const MAX_CHUNK_BYTES = 49_152;

export const MAX_CONNECTIONS = 32;
export const FIRST_BYTE_MS = 30_000;
export const FRAME_MS = 2_000;
export const WRITE_MS = 2_000;
/** A request under way is kept visibly alive at this interval. */
export const KEEPALIVE_MS = 10_000;
/** A caller gives up when nothing, not even a keepalive, came for this long. */
export const SILENCE_MS = 35_000;

/** Tool arguments as JSON text. */
export const MAX_ARGUMENT_BYTES = 524_288;
/** The text of one message from the owner. */
export const MAX_MESSAGE_BYTES = 1_048_576;
/** Exact output of one tool call, whatever a grant says. */
export const MAX_OUTPUT_BYTES = 67_108_864;
