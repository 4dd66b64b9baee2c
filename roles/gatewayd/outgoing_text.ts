// Makes a model's text safe to show, and cuts it into posts. Showing a post must fetch nothing and
// notify nobody, on servers and clients of any version.
//
// 1. The only code that counts is a fence this module writes itself: at the line's start, after a blank
//    line, longer than any run of backticks in it. No other run of three can be read as a fence.
// 2. Everything else, inline code included, is broken with U+200B wherever an address, an image, a
//    link, markup or a mention could begin. Invisible characters of the text were made visible before,
//    so those that are left are ours.
// 3. A cut falls between two characters a reader sees, and no cut can join what was broken.
import { escapeProse } from "../../shared/text/escape.ts";

const BREAK = "\u200b";
const FENCE = /^ {0,3}(`{3,}|~{3,})([^`\n]*)$/;
/** Languages that a client may render instead of showing. */
const RENDERED = /^(?:latex|tex|katex|math|mermaid|html|svg)$/i;

/** What a client may make an address of without two slashes. */
const SCHEME =
  /(https?|ftps?|ssh|git|mailto|tel|sms|data|javascript|vbscript|file|mattermost|mmaction)(?=:)/gi;

/** A run of prose, or of code with its language. */
export type Block = { readonly code: string | null; readonly lines: readonly string[] };

/** The safe blocks of a text. */
export function safeBlocks(text: string): Block[] {
  return blocksOf(escapeProse(text.replaceAll("\r\n", "\n").toWellFormed())).map((block) =>
    block.code === null ? { code: null, lines: block.lines.map(defused) } : {
      code: language(block.code),
      // A longer run would need a fence that no post holds.
      lines: block.lines.map((line) => line.replace(/`{32}(?=`)/g, `$&${BREAK}`)),
    }
  );
}

/** The texts of a post that this module made, cut anew; what is safe stays as it is. */
export function cutAgain(post: string, limit: number): string[] {
  return postsOf(blocksOf(post), limit);
}

function blocksOf(text: string): Block[] {
  const blocks: Block[] = [];
  let open: { readonly mark: string; readonly code: string } | null = null;
  let lines: string[] = [];
  const close = () => {
    if (lines.length > 0) blocks.push({ code: open?.code ?? null, lines });
    lines = [];
  };
  for (const line of text.split("\n")) {
    const [, mark = "", info = ""] = FENCE.exec(line) ?? [];
    if (open === null && mark !== "") {
      close();
      open = { mark, code: info };
    } else if (open !== null && mark.startsWith(open.mark) && info.trim() === "") {
      close();
      open = null;
    } else lines.push(line);
  }
  close();
  return blocks;
}

function language(info: string): string {
  const word = info.trim().split(/\s/)[0] ?? "";
  return /^[A-Za-z0-9_+#.-]{1,20}$/.test(word) && !RENDERED.test(word) ? word : "";
}

/** One line of prose in which nothing is fetched, linked, rendered as markup or addressed. */
export function defused(line: string): string {
  return line
    .replace(/([`~])(?=\1{2})/g, `$1${BREAK}`)
    .replace(/!(?=\[)/g, `!${BREAK}`)
    .replace(/\](?=[(:[])/g, `]${BREAK}`)
    .replace(/:(?=\/)/g, `:${BREAK}`)
    .replace(SCHEME, `$1${BREAK}`)
    .replace(/(www\d{0,3})\./gi, `$1${BREAK}.`)
    .replace(/\.(?=[a-z]{2,24}\/)/gi, `${BREAK}.`)
    .replace(/<(?=[a-z/!?])/gi, `<${BREAK}`)
    .replace(/&(?=#?[a-z0-9]+;)/gi, `&${BREAK}`)
    .replace(/@(?=\S)/g, `@${BREAK}`);
}

/** The blocks as the texts of one or more posts, each of at most `limit` code points (100 or more). */
export function postsOf(blocks: readonly Block[], limit: number): string[] {
  const posts: string[] = [];
  let body = "";
  let size = 0;
  const flush = () => {
    if (body.trim() !== "") posts.push(body.replace(/(?<!\n)\n+$/, ""));
    body = "";
    size = 0;
  };
  const put = (line: string) => {
    body += `${line}\n`;
    size += points(line) + 1;
  };
  for (const { code, lines } of blocks) {
    const fence = code === null ? "" : fenceFor(lines);
    const closing = code === null ? 0 : fence.length + 1;
    const open = () => {
      if (code !== null) put(fence + code);
    };
    const room = limit - points(fence + (code ?? "")) - closing - 3;
    if (size + 2 * closing + (code?.length ?? 0) + 40 > limit) flush();
    const isApart = size === 0 || body.endsWith("\n\n") || (code === null && lines[0] === "");
    if (!isApart) put("");
    open();
    for (const piece of lines.flatMap((line) => pieces(line, room))) {
      if (size + points(piece) + 1 + closing > limit) {
        if (code !== null) put(fence);
        flush();
        open();
      }
      put(piece);
    }
    if (code !== null) put(fence);
  }
  flush();
  return posts.length === 0 ? ["(empty)"] : posts;
}

/** A fence longer than any run of backticks in the lines. */
export function fenceFor(lines: readonly string[]): string {
  const longest = Math.max(
    2,
    ...lines.map((line) => Math.max(0, ...[...line.matchAll(/`+/g)].map(([run]) => run.length))),
  );
  return "`".repeat(longest + 1);
}

/** The text as a sentence begins. */
export function capital(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

/** Length in code points, which is how the server counts. */
export function points(text: string): number {
  let count = 0;
  for (const _ of text) count++;
  return count;
}

/** A line in pieces of at most `room` code points, cut at a space where there is one near the end. */
function pieces(line: string, room: number): string[] {
  if (line.length <= room || points(line) <= room) return [line];
  const cut: string[] = [];
  let piece = "";
  let size = 0;
  const segments = new Intl.Segmenter(undefined, { granularity: "grapheme" });
  for (const { segment } of segments.segment(line)) {
    // One visible character may be longer than a post: then its code points are what is cut between.
    for (const part of points(segment) > room ? segment : [segment]) {
      if (size + points(part) > room) {
        const space = piece.lastIndexOf(" ") + 1;
        const at = space > piece.length / 2 ? space : piece.length;
        cut.push(piece.slice(0, at));
        piece = piece.slice(at);
        size = points(piece);
      }
      piece += part;
      size += points(part);
    }
  }
  return [...cut, piece];
}
