// Guards the judge of outgoing posts: it must see each breach, and nothing in posts that are well.
import { match, ok as assert, strictEqual, throws } from "node:assert";
import { mentionedNames } from "./mentions.ts";
import { rest, startRig } from "./rig.ts";
import { assertSafePosts, unsafePosts } from "./safe_posts.ts";

const ZERO = "\u200b";

const BREACHES: readonly (readonly [string, RegExp])[] = [
  ["look: https://evil.example/?q=secret", /the link/],
  ["HTTP://EVIL.EXAMPLE", /the link/],
  ["see www.evil.example/x", /the link/],
  ["![pixel](https://evil.example/p.png)", /an image/],
  ["![pixel][1]\n\n[1]: //evil.example/p.png", /a reference definition/],
  ["[text](//evil.example)", /without a scheme/],
  ["[text](javascript:alert(1))", /another scheme/],
  ['<img src="//evil.example/p.png">', /HTML image/],
  ["mailto:someone@evil.example", /mail or phone/],
  ["@all hello", /mentions @all/],
  ["a word,@Here.", /mentions @here/],
  ["\\@channel", /mentions @channel/],
  ["ask @owner about it", /mentions @owner/],
  ["x.@owner", /mentions @owner/],
  ["`a` @owner `b`", /mentions @owner/],
  ["`open @owner\n\nnew paragraph`", /mentions @owner/],
  ["```\ncode\n```\n@owner", /mentions @owner/],
  ["- item\n  ```\n@owner ends the list item", /mentions @owner/],
  ["> ```\n@owner", /mentions @owner/],
  ["half a character \ud800", /half a character/],
];

const INNOCENT = [
  "Plain words.",
  `@${ZERO}all, @${ZERO}owner and me@example.org`,
  "hxxps[:]//evil[.]example/x",
  "`https://evil.example` and `@all`",
  "```sh\ncurl https://evil.example\n@all\n```",
  "~~~\n![x](https://evil.example)\n~~~\nafter",
  `!${ZERO}[pixel]: gone`,
];

Deno.test("assertSafePosts() finds every breach and lets innocent posts pass", async () => {
  const { double, bot, dm, ...more } = await startRig({ knobs: { maxPostSize: 100 } });
  const rig = { double, bot, dm, ...more };
  const send = (message: string, body: object = {}) =>
    rest(rig, "POST", "/posts", {
      channel_id: dm,
      message,
      props: { unsafe_links: "true" },
      pending_post_id: `${bot.id}:${crypto.randomUUID()}`,
      ...body,
    });
  const faultsOf = async (message: string, body: object = {}) => {
    const from = double.traffic().length;
    await send(message, body);
    return unsafePosts(double.traffic(from), { botId: bot.id, maxPostSize: 100 }).join("\n");
  };
  try {
    throws(() => assertSafePosts(double.traffic(), { botId: bot.id }), /no post at all/);
    for (const message of INNOCENT) strictEqual(await faultsOf(message), "", message);
    for (const [message, expected] of BREACHES) {
      const found = await faultsOf(message);
      assert(expected.test(found), `${JSON.stringify(message)}: ${found}`);
    }
    match(await faultsOf("x".repeat(101)), /101 code points of at most 100/);
    strictEqual(await faultsOf("\u{1f600}".repeat(100)), "");
    match(await faultsOf("x", { props: { unsafe_links: true } }), /lacks props.unsafe_links/);
    match(await faultsOf("x", { props: { unsafe_links: "true", attachments: [] } }), /attachments/);
    match(await faultsOf("x", { pending_post_id: "" }), /pending id/);
    const from = double.traffic().length;
    await send("one", { props: { unsafe_links: "true", boxmaker_out: "answer-7" } });
    await send("two", { props: { unsafe_links: "true", boxmaker_out: "answer-7" } });
    await send("three", { root_id: "" });
    const record = double.traffic(from);
    match(unsafePosts(record, { botId: bot.id }).join("\n"), /durable key answer-7 again/);
    const threadOf = (message: string) => message === "three" ? "the-root" : undefined;
    match(unsafePosts(record, { botId: bot.id, threadOf }).join("\n"), /instead of "the-root"/);
    match(unsafePosts(record, { botId: bot.id, allowedHosts: [] }).join("\n"), /again/);
    throws(() => assertSafePosts(record, { botId: bot.id }), /Unsafe posts/);
  } finally {
    await double.stop();
  }
});

Deno.test("mentionedNames() reads text as the server does", () => {
  strictEqual(mentionedNames("hi @Owner, @bot.name.").join(" "), "owner bot.name bot");
  strictEqual(mentionedNames("mail me@example.org, x@all").join(" "), "");
  strictEqual(mentionedNames("(@all)").join(" "), "all");
});
