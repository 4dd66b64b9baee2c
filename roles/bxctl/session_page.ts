// A session as one page that needs nothing else: its turns, how each request found the cache, what
// was decided about each tool call, and where its label rose. Pure.
//
// 1. All text of the session is escaped, and shown as the terminal would show it: no control or
//    direction character stays whole.
// 2. The page runs nothing and loads nothing, and says so to the browser.
import { type CacheUse, cacheUses } from "../../shared/session_log/cache_use.ts";
import type { SessionRecord } from "../../shared/session_log/records.ts";
import { recordView } from "./record_view.ts";
import { shownLines } from "./terminal.ts";

function html(text: string): string {
  return shownLines(text).replace(/[&<>"']/g, (one) => `&#${one.charCodeAt(0)};`);
}

const STYLE = `
:root{color-scheme:light dark;--ink:#1d2430;--paper:#fbfaf7;--soft:#e9e6de;--dim:#6b7280;
--reuse:#4a8f7b;--read:#d08a3c;--bad:#b3423a}
@media(prefers-color-scheme:dark){:root{--ink:#e6e3dc;--paper:#191c21;--soft:#2a2f37;--dim:#98a0ab}}
body{margin:0 auto;padding:2rem 1rem 4rem;max-width:52rem;background:var(--paper);color:var(--ink);
font:16px/1.5 system-ui,sans-serif}
h1{font-size:1.3rem;margin:0}h2{font-size:1rem;margin:2.2rem 0 .6rem}p{margin:.3rem 0}
.dim{color:var(--dim);font-size:.85rem}
pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:.2rem 0;font:inherit}
.tool pre,details pre{font:13px/1.45 ui-monospace,monospace}
article{margin:.7rem 0;padding:.6rem .9rem;border-radius:.5rem;background:var(--soft)}
.owner{margin-left:3rem}.assistant{background:none;border-left:3px solid var(--reuse);border-radius:0}
.tool{border-left:3px solid var(--dim)}.tool.no,.notice{border-left:3px solid var(--bad)}
.cache{padding:0 .9rem;background:none}
.label{background:none;border:1px dashed var(--bad);color:var(--bad);font-size:.9rem}
svg{width:100%;height:auto;display:block}svg text{font:11px system-ui;fill:var(--dim)}
.reuse{fill:var(--reuse)}.read{fill:var(--read)}.expected{stroke:var(--ink);stroke-width:2}
i{display:inline-block;width:.8em;height:.8em;border-radius:2px;margin:0 .3em 0 .8em}`;

const pre = (text: string) => text === "" ? "" : `<pre>${html(text)}</pre>`;

function folded(summary: string, text: string): string {
  return `<details><summary class="dim">${html(summary)}</summary>${pre(text)}</details>`;
}

function shownRecord(one: SessionRecord): string {
  const view = recordView(one);
  if (view === null) return "";
  const { kind, head, texts, thought = "" } = view;
  const isLong = (text: string) => kind.startsWith("tool") && text.length >= 1_500;
  const body = texts.map((text) =>
    isLong(text) ? folded(`result, ${text.length} characters`, text) : pre(text)
  );
  const thoughts = thought === "" ? "" : folded("thought", thought);
  return `<article class="${kind}"><div class="dim">${html(head)}</div>${thoughts}${
    body.join("")
  }</article>\n`;
}

const WIDTH = 800;
const HEIGHT = 160;

/** One bar a request: reused below, read anew above, a line where the reuse was expected. */
function chart(uses: readonly CacheUse[]): string {
  if (uses.length === 0) return '<p class="dim">No request was measured.</p>';
  const most = Math.max(1, ...uses.flatMap((one) => [one.reused + one.read, one.expected ?? 0]));
  const step = WIDTH / uses.length;
  const wide = Math.min(28, step * 0.8).toFixed(1);
  const y = (tokens: number) => (tokens / most * HEIGHT).toFixed(1);
  const bars = uses.map((one, i) => {
    const x = (i * step + step * 0.1).toFixed(1);
    const rect = (kind: string, from: number, tokens: number) => {
      const top = (HEIGHT + 10 - Number(y(from + tokens))).toFixed(1);
      return `<rect class="${kind}" x="${x}" y="${top}" width="${wide}" height="${y(tokens)}"/>`;
    };
    const at = (HEIGHT + 10 - Number(y(one.expected ?? 0))).toFixed(1);
    const end = (Number(x) + Number(wide)).toFixed(1);
    const line = `<line class="expected" x1="${x}" x2="${end}" y1="${at}" y2="${at}"/>`;
    const told = `request ${i + 1}: ${one.reused} reused, ${one.read} read anew, expected ${
      one.expected ?? "nothing known"
    } ${one.cause}`;
    return `<g><title>${html(told)}</title>${rect("reuse", 0, one.reused)}${
      rect("read", one.reused, one.read)
    }${one.expected === null ? "" : line}</g>`;
  });
  const size = `viewBox="0 0 ${WIDTH} ${HEIGHT + 14}"`;
  return `<svg role="img" aria-label="tokens reused and read anew" ${size}>${bars.join("")}` +
    `<text x="0" y="9">${most} tokens</text></svg>`;
}

/** The whole page. `records` are those of one epoch. */
export function sessionPage(
  session: string,
  epoch: number,
  records: readonly SessionRecord[],
): string {
  const uses = cacheUses(records);
  const sum = (of: (one: CacheUse) => number) => uses.reduce((total, one) => total + of(one), 0);
  const turns = records.filter((one) => one.kind === "user").length;
  const raised = records.filter((one) => one.kind === "label" && one.untrusted).length;
  const facts = `${turns} turns, ${records.length} records, epoch ${epoch}; ${
    raised === 0 ? "no untrusted text entered" : "untrusted text entered: see the dashed lines"
  }`;
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>${html(session)}</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width"><style>${STYLE}</style></head><body>
<h1>${html(session)}</h1><p class="dim">${html(facts)}</p>
<h2>What the model server read</h2>${chart(uses)}
<p class="dim"><i class="reuse" style="background:var(--reuse)"></i>reused ${sum((u) => u.reused)}
<i style="background:var(--read)"></i>read anew ${sum((u) => u.read)} tokens; the line is what could
have been reused</p>
<h2>The conversation</h2>
${records.map(shownRecord).join("")}</body></html>
`;
}
