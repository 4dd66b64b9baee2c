// Side-by-side measuring: both ways take turns in one run, so that a noisy machine hits them alike.

/** One timed act; resolves to milliseconds. */
export type Timed = () => Promise<number>;

export interface Spread {
  readonly p50: number;
  readonly p95: number;
}

/** Order statistics of a list of milliseconds. Throws on an empty list. */
export function spread(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (part: number) =>
    sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))];
  const p50 = at(0.5);
  const p95 = at(0.95);
  if (p50 === undefined || p95 === undefined) throw new TypeError("Nothing was measured");
  return { p50, p95 };
}

/** Runs each way `rounds` times in turn, after one round that is not counted. */
export async function inTurn(
  ways: Readonly<Record<string, Timed>>,
  rounds: number,
): Promise<Map<string, number[]>> {
  const results = new Map<string, number[]>(Object.keys(ways).map((name) => [name, []]));
  for (let round = -1; round < rounds; round++) {
    for (const [name, act] of Object.entries(ways)) {
      const ms = await act();
      if (round >= 0) results.get(name)?.push(ms);
    }
  }
  return results;
}

/** One printed line of a comparison. */
export function line(what: string, figure: string, limit = ""): void {
  console.log(`${what.padEnd(52)} ${figure.padEnd(34)} ${limit}`);
}

export const ms = (value: number) => `${value.toFixed(value < 10 ? 2 : 0)} ms`;
