// Finds the known word that a mistyped one probably stands for.

/** Edits (insert, delete, replace, swap of neighbours) that turn `a` into `b`. */
export function editDistance(a: string, b: string): number {
  let older: number[] = [];
  let above = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1;
      let best = Math.min((above[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (above[j - 1] ?? 0) + same);
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (isSwap) best = Math.min(best, (older[j - 2] ?? 0) + 1);
      row.push(best);
    }
    older = above;
    above = row;
  }
  return above[b.length] ?? 0;
}

/** The nearest of `known` to `word`, or null when nothing is near enough to be meant. */
export function nearestWord(word: string, known: readonly string[]): string | null {
  const limit = Math.max(2, Math.floor(word.length / 3));
  let best: string | null = null;
  let bestDistance = limit + 1;
  for (const candidate of known) {
    if (Math.abs(candidate.length - word.length) >= bestDistance) continue;
    const distance = editDistance(word.slice(0, 64), candidate);
    if (distance >= bestDistance || distance >= Math.max(word.length, candidate.length)) continue;
    best = candidate;
    bestDistance = distance;
  }
  return best;
}
