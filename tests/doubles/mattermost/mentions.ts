// The server's own idea of a mention: text nodes of a message, cut into words, of which some begin
// with "@". Code never mentions. Written apart from the client's neutralising, so that each checks
// the other; where Markdown is ambiguous this reading finds text rather than code.

/** Markdown's text outside code, as one string per stretch. Cautious: doubtful code counts as text. */
export function textOutsideCode(message: string): string[] {
  const out: string[] = [];
  let block: string[] = [];
  const flush = () => {
    if (block.length > 0) out.push(...outsideSpans(block.join("\n")));
    block = [];
  };
  let fence: { readonly mark: string; readonly indent: number } | null = null;
  for (const line of message.split(/\r\n|\n|\r/)) {
    const indent = line.length - line.trimStart().length;
    if (fence !== null) {
      const closes = new RegExp(`^ {0,3}\\${fence.mark[0]}{${fence.mark.length},}[ \\t]*$`);
      if (closes.test(line)) {
        fence = null;
        continue;
      }
      // An indented fence may belong to a list item, which a less indented line ends.
      if (fence.indent === 0 || indent >= fence.indent || line.trim() === "") continue;
      fence = null;
    }
    const opens = /^( {0,3})(`{3,}(?=[^`]*$)|~{3,})(.*)$/.exec(line);
    if (opens !== null) {
      flush();
      fence = { mark: opens[2] ?? "```", indent: opens[1]?.length ?? 0 };
    } else if (line.trim() === "") flush();
    else block.push(line);
  }
  flush();
  return out;
}

/** The stretches of one paragraph that no code span covers. */
function outsideSpans(paragraph: string): string[] {
  const runs = [...paragraph.matchAll(/`+/g)];
  const out: string[] = [];
  let from = 0;
  for (let at = 0; at < runs.length; at++) {
    const open = runs[at];
    if (open === undefined || open.index < from || isEscaped(paragraph, open.index)) continue;
    const close = runs.slice(at + 1).find((run) => run[0].length === open[0].length);
    if (close === undefined) continue;
    out.push(paragraph.slice(from, open.index));
    from = close.index + close[0].length;
  }
  out.push(paragraph.slice(from));
  return out;
}

function isEscaped(text: string, index: number): boolean {
  let count = 0;
  while (text[index - 1 - count] === "\\") count++;
  return count % 2 === 1;
}

const CHANNEL_WIDE = /(?<![\p{L}\p{N}_])@(channel|all|here)(?![\p{L}\p{N}_])/giu;

/** Every name that the message may notify: "@all" and its kin, and words that begin with "@". */
export function mentionedNames(message: string): string[] {
  const names: string[] = [];
  for (const text of textOutsideCode(message)) {
    for (const found of text.matchAll(CHANNEL_WIDE)) names.push((found[1] ?? "").toLowerCase());
    for (const word of text.split(/[^\p{L}\p{N}:.\-_@]+/u)) {
      for (const part of [word, ...word.split(/[.\-:]/)]) {
        const name = /^@([\p{L}\p{N}._-]+)/u.exec(part)?.[1];
        if (name !== undefined) names.push(name.toLowerCase().replace(/[.\-_:]+$/, ""));
      }
    }
  }
  return [...new Set(names)].filter((name) => name !== "");
}
