// Guards: showing a post fetches nothing and notifies nobody, whatever the model wrote; and cutting a
// text into posts loses nothing and breaks nothing. Judged by the double's own reading of Markdown.
import { deepStrictEqual, ok as isTrue, strictEqual } from "node:assert";
import fc from "fast-check";
import { mentionedNames } from "../../tests/doubles/mattermost/mentions.ts";
import type { RequestEntry } from "../../tests/doubles/mattermost/record.ts";
import { unsafePosts } from "../../tests/doubles/mattermost/safe_posts.ts";
import { points, postsOf, safeBlocks } from "./outgoing_text.ts";

const BOT = "b".repeat(26);
/** What the double finds wrong with a post of this text. */
function messageFaults(message: string): string[] {
  const body = { message, pending_post_id: `${BOT}:1`, props: { unsafe_links: "true" } };
  const entry: RequestEntry = {
    kind: "request",
    n: 0,
    atMs: 0,
    method: "POST",
    path: "/posts",
    query: "",
    headers: {},
    userId: BOT,
    body,
    isCommitted: true,
    status: 201,
    fault: "",
    post: null,
    isEcho: false,
  };
  return unsafePosts([entry], { botId: BOT });
}
const show = (text: string, limit = 16_383) => postsOf(safeBlocks(text), limit);

/** Each is what a rule breaks; the model puts them together as it likes. */
const PARTS = [
  "http://evil.example/x",
  "https://evil.example/?q=secret",
  "HTTP://evil.example",
  "www.evil.example",
  "ftp://evil.example",
  "mattermost://evil",
  "data:text/html,x",
  "mailto:a@evil.example",
  "![a](",
  "![",
  "](http://evil.example)",
  "[a]: http://evil.example",
  "[a][b]",
  '<img src="//evil.example">',
  "<http://evil.example>",
  "@channel",
  "@all",
  "\\@here",
  "&#64;all",
  "&commat;channel",
  "@",
  "all",
  "`",
  "``",
  "```",
  "```js",
  "~~~",
  "````",
  "```a`b",
  "    ",
  "> ",
  "- ",
  "\n",
  "\n\n",
  " ",
  "**",
  "\\",
  "\r\n",
  "\u200b",
  "\u202e",
  "\ud800",
  "!",
  "[",
  ":",
  "//",
  "/",
  "\r",
  "\v",
  "\u2028",
  "\u0085",
  "\u200d",
  "\ufe0f",
  "\u0301",
  "\uff20all",
  "@\u200dhere",
  "@@channel",
  ".@all.",
  "a@all",
  "owner@evil.example",
  "&#x40;all",
  "&#104;ttps://evil.example",
  "https&colon;//evil.example",
  "http:/evil.example",
  "https:evil.example",
  "http:\\/\\/evil.example",
  "//evil.example/x",
  "evil.example/x?q=secret",
  "\uff48ttp://evil.example",
  "http\u200d://evil.example",
  "www2.evil.example",
  "[a] (http://evil.example)",
  "[a][ http://evil.example ]",
  "[![x](http://evil.example)](y)",
  "![a][b]",
  "[b]: <http://evil.example> 'x'",
  "![a](/api/v4/users/me)",
  "https://chat.example.org/team/pl/abcdefghijklmnopqrstuvwxyz",
  "javascript:alert(1)",
  "mmaction://x",
  "#town ~town-square :owner: :+1:",
  "$\\href{http://evil.example}{x}$",
  "| a | b |\n|---|---|\n",
  "<!-- -->",
  "<a href=x>",
  "1. ",
  "\t",
  "# ",
];
const hostile = fc.array(fc.constantFrom(...PARTS), { maxLength: 14 }).map((all) => all.join(""));

Deno.test("safeBlocks() leaves no address to fetch and nobody to notify, whatever the text", () => {
  fc.assert(
    fc.property(hostile, fc.integer({ min: 120, max: 400 }), (text, limit) => {
      for (const post of [...show(text), ...show(text, limit)]) {
        deepStrictEqual(messageFaults(post), [], JSON.stringify(post));
        deepStrictEqual([...mentionedNames(post)], [], JSON.stringify(post));
      }
    }),
    { numRuns: 3_000 },
  );
});

Deno.test("safeBlocks() the judge itself sees each of the faults in text that was not made safe", () => {
  for (
    const part of [
      "![a](http://evil.example/x)",
      "http://evil.example/x",
      "[a](https://evil.example)",
      "http:/evil.example",
      "https:evil.example",
      "evil.example/x",
      "www2.evil.example",
      "[a] (http://evil.example)",
      "[b]: //evil.example",
      "&#104;ttps",
      "mailto:a@evil.example",
    ]
  ) {
    isTrue(messageFaults(part).length > 0, part);
  }
  for (const part of ["@channel", "\\@here", "hello @all!", "@@all", "(@owner)"]) {
    isTrue([...mentionedNames(part)].length > 0, part);
  }
});

Deno.test("safeBlocks() and postsOf() end on texts that make a slow pattern stand still", () => {
  const of = (text: string, times: number) => text.repeat(times);
  for (
    const text of [
      `\`\`\`${of(" ", 1e6)}\``,
      `~~~${of("\t", 1e6)}\``,
      `${of("[", 2e5)}${of("](", 1e5)}`,
      of("&a", 2e5),
      of("www", 2e5),
      of(".a", 2e5),
      `a${of("\u0301", 2e5)}`,
    ]
  ) isTrue(postsOf(safeBlocks(text), 16_000).length > 0);
});

Deno.test("safeBlocks() makes hidden characters visible and lone surrogates whole", () => {
  strictEqual(show("a\u202eb\u200bc\ud800")[0], "a\\u{202e}b\\u{200b}c\ufffd");
});

Deno.test("safeBlocks() code in a fence is untouched but for what is hidden in it", () => {
  const code = "@decorator\ncurl https://example.org/x  # <b>\n![x](y)";
  deepStrictEqual(show(`See:\n\`\`\`sh\n${code}\n\`\`\`\nDone`), [
    `See:\n\n\`\`\`sh\n${code}\n\`\`\`\n\nDone`,
  ]);
  strictEqual(show("```latex\n\\x\n```")[0]?.split("\n")[0], "```");
});

/** What a reader sees of posts: fences and the marks that were put in are left out. */
function seen(posts: readonly string[]): string {
  return posts.join("\n").replaceAll("\u200b", "").split("\n")
    .filter((line) => !/^`{3,}/.test(line)).join("").replace(/\s/g, "");
}

/** The fence that is still open at the end of a post. */
function openFence(post: string): string | null {
  let open: string | null = null;
  for (const line of post.split("\n")) {
    const mark: string = /^`{3,}/.exec(line)?.[0] ?? "";
    if (open === null) open = mark === "" ? null : mark;
    else if (line.trim() === mark && mark.length >= open.length) open = null;
  }
  return open;
}

const plain = fc.array(
  fc.oneof(
    fc.string({ unit: "grapheme", maxLength: 200 }),
    fc.constantFrom(
      "```py",
      "```",
      "x = '''",
      "👩‍👩‍👧‍👦".repeat(30),
      "e\u0301".repeat(90),
      "word ".repeat(60),
    ),
  ),
  { maxLength: 12 },
).map((lines) => lines.join("\n"));

Deno.test("postsOf() every post fits, closes its fences, and together they are the whole text", () => {
  fc.assert(
    fc.property(plain, fc.integer({ min: 120, max: 700 }), (text, limit) => {
      const posts = show(text, limit);
      for (const post of posts) {
        isTrue(points(post) <= limit, `${points(post)} > ${limit}`);
        isTrue(post.isWellFormed());
        strictEqual(openFence(post), null, JSON.stringify(post));
      }
      const whole = seen(show(text, 1_000_000));
      if (whole !== "(empty)") strictEqual(seen(posts), whole);
    }),
    { numRuns: 500 },
  );
});

Deno.test("postsOf() cuts between characters a reader sees and reopens a fence with its language", () => {
  const family = "👩‍👩‍👧‍👦";
  for (const post of show(family.repeat(100), 200)) {
    strictEqual(post.replaceAll(family, ""), "");
  }
  const posts = show(`\`\`\`rust\n${"let x = 1;\n".repeat(60)}\`\`\``, 300);
  isTrue(posts.length > 2);
  for (const post of posts) {
    isTrue(post.startsWith("```rust\n") && post.endsWith("\n```"), JSON.stringify(post));
  }
});
