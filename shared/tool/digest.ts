// SHA-256 for what files, images and their tools are named and checked by.
import { createHash, hash } from "node:crypto";

/** A hash that is fed piece by piece. */
export interface Digest {
  update(bytes: Uint8Array): void;
  /** Lower-case hexadecimal; the digest takes nothing more afterwards. */
  hex(): string;
}

export function sha256(): Digest {
  const hash = createHash("sha256");
  return { update: (bytes) => void hash.update(bytes), hex: () => hash.digest("hex") };
}

/** Lower-case hexadecimal SHA-256 of `bytes`. */
export function sha256Hex(bytes: Uint8Array): string {
  return hash("sha256", bytes, "hex");
}
