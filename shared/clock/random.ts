// Randomness as a port: logic takes a Random, so tests can replay a run from its seed.

export interface Random {
  /** `length` random bytes; the system port is cryptographically strong. */
  bytes(length: number): Uint8Array;
}

export const systemRandom: Random = {
  bytes: (length) => crypto.getRandomValues(new Uint8Array(length)),
};

/** A repeatable source for tests and scripted rehearsals; never used for a code or a nonce. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) & 0xff;
  };
  return { bytes: (length) => Uint8Array.from({ length }, next) };
}
