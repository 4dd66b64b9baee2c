// Matches a text against a pattern with `*` (any run, also empty) and `?` (one code point); a
// backslash takes the next character as it is. There is no other syntax, and no pattern takes time
// beyond pattern length times text length: nothing is ever tried twice at the same place.

/** Whether all of `text` matches `pattern`. */
export function globMatches(pattern: string, text: string): boolean {
  const want = tokens(pattern);
  const have = [...text];
  let w = 0;
  let h = 0;
  let star = -1;
  let resume = 0;
  while (h < have.length) {
    const token = want[w];
    if (token === STAR) {
      star = w++;
      resume = h;
    } else if (token !== undefined && (token === ANY || token === have[h])) {
      w++;
      h++;
    } else if (star >= 0) {
      w = star + 1;
      h = ++resume;
    } else {
      return false;
    }
  }
  while (want[w] === STAR) w++;
  return w === want.length;
}

/** Why `pattern` cannot be used, or null. */
export function globProblem(pattern: string): string | null {
  return /(?:^|[^\\])(?:\\\\)*\\$/.test(pattern) ? "it ends in a lone backslash" : null;
}

// Longer than one code point, so that no character of a text is ever one of them.
const STAR = "**";
const ANY = "??";

function tokens(pattern: string): string[] {
  const found: string[] = [];
  let isEscaped = false;
  for (const point of pattern) {
    if (!isEscaped && point === "\\") {
      isEscaped = true;
      continue;
    }
    if (!isEscaped && point === "*") {
      if (found.at(-1) !== STAR) found.push(STAR);
    } else {
      found.push(!isEscaped && point === "?" ? ANY : point);
    }
    isEscaped = false;
  }
  return found;
}
