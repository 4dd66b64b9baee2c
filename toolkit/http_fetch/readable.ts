// HTML as text that a reader would see: headings, paragraphs, lists, tables, links. One pass, linear in
// the page; scripts, styles and what the page itself hides are left out.
import { Parser } from "htmlparser2";
import { readHttpUrl } from "../../shared/url/origin.ts";

const DROPPED = new Set(
  "script style noscript template svg math iframe object embed canvas audio video head select datalist"
    .split(" "),
);
const BLOCKS = new Set(
  ("address article aside blockquote body dd details div dl dt fieldset figcaption figure footer form " +
    "h1 h2 h3 h4 h5 h6 header hr html li main nav ol p pre section summary table tbody tfoot thead tr ul")
    .split(" "),
);
const VOID = new Set("area base br col embed hr img input link meta source track wbr".split(" "));
const SPACED = new Set("p h1 h2 h3 h4 h5 h6 pre table ul ol blockquote".split(" "));
const MAX_DEPTH = 2_000;
const PIECE = 16_384;

/** The text of a page whose address is `base`; links are shown after their words. */
export function readableText(html: string, base: string): string {
  const pieces: string[] = [];
  /** Elements inside a dropped one, the dropped one included. */
  let dropped = 0;
  let depth = 0;
  let preformatted = 0;
  let breaks = 0;
  let isInTitle = false;
  let title = "";
  const links: (string | null)[] = [];

  const say = (text: string) => {
    if (text === "") return;
    if (breaks > 0 && pieces.length > 0) pieces.push("\n".repeat(breaks));
    breaks = 0;
    pieces.push(text);
  };
  const block = (name: string) => {
    if (BLOCKS.has(name)) breaks = Math.max(breaks, SPACED.has(name) ? 2 : 1);
  };
  const words = (text: string) => {
    if (preformatted > 0) return say(text);
    const flat = text.replace(/[\s\u00a0]+/g, " ");
    const atStart = breaks > 0 || pieces.length === 0 || (pieces.at(-1) ?? "").endsWith(" ");
    say(atStart ? flat.replace(/^ /, "") : flat);
  };
  const open = (name: string, attributes: Readonly<Record<string, string>>) => {
    block(name);
    if (/^h[1-6]$/.test(name)) say(`${"#".repeat(Number(name[1]))} `);
    if (name === "li") say("- ");
    if (name === "td" || name === "th") words(" | ");
    if (name === "br") breaks = Math.max(breaks, 1);
    if (name === "img" && attributes.alt) words(` [image: ${attributes.alt}] `);
    if (name === "pre") preformatted++;
    if (name === "a") links.push(linkOf(attributes.href, base));
  };
  const parser = new Parser({
    onopentag(name, attributes) {
      depth++;
      if (name === "title" && title === "") isInTitle = true;
      const isDropped = dropped > 0 || DROPPED.has(name) || isHidden(attributes);
      if (!isDropped) open(name, attributes);
      else if (!VOID.has(name)) dropped++;
    },
    ontext(text) {
      if (isInTitle) title += text;
      else if (dropped === 0) words(text);
    },
    onclosetag(name) {
      depth--;
      if (name === "title") isInTitle = false;
      if (VOID.has(name)) return;
      if (dropped > 0) return void dropped--;
      if (name === "pre") preformatted--;
      if (name === "a") {
        const link = links.pop();
        if (link) say(` (${link})`);
      }
      block(name);
    },
  });
  // The parser's time grows with the depth: what is nested beyond any real page ends the reading.
  for (let at = 0; at < html.length && depth < MAX_DEPTH; at += PIECE) {
    parser.write(html.slice(at, at + PIECE));
  }
  parser.end();
  const heading = title.replace(/\s+/g, " ").trim();
  const text = pieces.join("").replace(/[ \t]+\n/g, "\n").trim();
  return `${heading === "" ? "" : `Title: ${heading}\n\n`}${text}\n`;
}

function isHidden(attributes: Readonly<Record<string, string>>): boolean {
  return attributes.hidden !== undefined || attributes["aria-hidden"] === "true" ||
    /(?:display\s*:\s*none|visibility\s*:\s*hidden)/i.test(attributes.style ?? "");
}

/** An address worth showing: another page, by http or https. */
function linkOf(href: string | undefined, base: string): string | null {
  if (href === undefined || href.startsWith("#") || !URL.canParse(href, base)) return null;
  return readHttpUrl(new URL(href, base).href)?.href ?? null;
}
