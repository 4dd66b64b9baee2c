// File names against a glob of `*` (any run) and `?` (one code point). One pass with one point of
// return, so the work is at most name length times glob length whatever the glob.

/** Whether the whole of `name` matches `glob`. */
export function nameMatches(glob: string, name: string): boolean {
  const want = [...glob];
  const have = [...name];
  let g = 0;
  let n = 0;
  let star = -1;
  let resume = 0;
  while (n < have.length) {
    if (want[g] === "*") {
      star = g++;
      resume = n;
    } else if (g < want.length && (want[g] === "?" || want[g] === have[n])) {
      g++;
      n++;
    } else if (star >= 0) {
      g = star + 1;
      n = ++resume;
    } else return false;
  }
  while (want[g] === "*") g++;
  return g === want.length;
}
