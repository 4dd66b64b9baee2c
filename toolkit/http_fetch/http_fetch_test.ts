// Guards http_fetch: bounded, plain text of what came; redirects hop by hop; every refusal by its name.
import { match, ok as isTrue, strictEqual } from "node:assert";
import fc from "fast-check";
import { playTool } from "../../tests/doubles/tool_call.ts";
import { type Get, httpFetch } from "./http_fetch.ts";
import { readableText } from "./readable.ts";

const page = (body: BodyInit, type = "text/html", more: ResponseInit = {}) =>
  new Response(body, { headers: { "content-type": type }, ...more });
const play = (get: Get, args: object = {}) =>
  playTool(httpFetch(get), { url: "https://a.example/x", ...args });

Deno.test("httpFetch() what is no text, no answer or no grant is told by name", async () => {
  const refused = (status: number) => new Response("x", { status, headers: { "x-egressd": "1" } });
  const cases: readonly (readonly [Get, string])[] = [
    [() => Promise.resolve(page("x", "image/png")), "not-text"],
    [() => Promise.resolve(page("x", "application/octet-stream")), "not-text"],
    [() => Promise.reject(new TypeError("fetch failed")), "no-answer"],
    [() => Promise.resolve(refused(502)), "no-answer"],
    [() => Promise.resolve(refused(403)), "not-granted"],
    [() => Promise.reject(new Deno.errors.NotCapable("x")), "not-granted"],
    [() => Promise.resolve(Response.redirect("https://a.example/y")), "too-many-redirects"],
    [() => Promise.resolve(Response.redirect("ftp://a.example/y")), "bad-url"],
    [() => Promise.resolve(Response.redirect("https://u@b.example/y")), "bad-url"],
  ];
  for (const [get, code] of cases) {
    const { outcome } = await play(get);
    strictEqual(outcome.ok ? "done" : outcome.code, code);
  }
  for (const url of ["file:///etc/passwd", "a.example", "https://a@b/"]) {
    const { outcome } = await play(() => Promise.reject(new Error("asked")), { url });
    strictEqual(outcome.ok ? "done" : outcome.code, "bad-url", url);
  }
});

Deno.test("httpFetch() each hop is asked for by itself", async () => {
  const asked: string[] = [];
  const { outcome, text } = await play((url) => {
    asked.push(url);
    const next = new Response(null, { status: 302, headers: { location: "../z" } });
    return Promise.resolve(asked.length === 1 ? next : page("<p>end"));
  }, { url: "https://a.example/x/y" });
  strictEqual(asked.join(" "), "https://a.example/x/y https://a.example/z");
  strictEqual(text, "Page: https://a.example/z\n\nend\n");
  strictEqual(outcome.ok && outcome.value, "status 200, 1 redirects followed");
});

Deno.test("httpFetch() cuts between characters and says so; a long page is read to its cap", async () => {
  const cut = await play(() => Promise.resolve(page("ééé", "text/plain")), { max_bytes: 3 });
  strictEqual(cut.text, "Page: https://a.example/x\n\né");
  match(cut.outcome.ok ? cut.outcome.value : "", /cut: 2 bytes/);
  const long = page("y".repeat(5_000_000), "text/plain");
  const { text } = await play(() => Promise.resolve(long), { max_bytes: 1_000_000 });
  isTrue(text.length < 1_000_100);
});

Deno.test("httpFetch() decodes what the answer or the page names", async () => {
  const latin = Uint8Array.of(0x63, 0x61, 0x66, 0xe9);
  const header = await play(() => Promise.resolve(page(latin, "text/plain; charset=ISO-8859-1")));
  match(header.text, /café$/);
  const html = new Uint8Array([...new TextEncoder().encode('<meta charset="latin1">'), ...latin]);
  match((await play(() => Promise.resolve(page(html)))).text, /café$/m);
  const none = await play(() => Promise.resolve(page("x", "text/plain; charset=no-such")));
  match(none.text, /x$/);
});

Deno.test("readableText() nothing of scripts, styles and what the page hides", () => {
  const html = `<html><head><title>T &amp; t</title><style>s1</style></head><body>
    <script>s2</script><noscript>s3</noscript><!-- s4 --><template>s5</template>
    <div hidden>s6<br>s6</div><p style="display : none">s7</p><span aria-hidden=true>s8</span>
    <svg><title>s9</title><text>s9</text></svg><p>seen</body>`;
  strictEqual(readableText(html, "https://a.example/"), "Title: T & t\n\nseen\n");
});

Deno.test("readableText() keeps headings, lists, tables, links and preformatted text", () => {
  const html = `<h2>Head</h2><p>One\n two <b>three</b><br>four</p><ul><li>a<li>b</ul>
    <table><tr><th>x<td>y</table><pre>  k\n   l</pre><a href="/p?q=1#f">link</a>
    <a href="javascript:x()">js</a> <a href="#top">top</a> <img src=x alt="a cat">`;
  strictEqual(
    readableText(html, "https://a.example/"),
    "## Head\n\nOne two three\nfour\n\n- a\n- b\n\n| x | y\n\n  k\n   l\n\n" +
      "link (https://a.example/p?q=1) js top [image: a cat]\n",
  );
});

Deno.test("readableText() any text at all gives some text, and soon (property)", () => {
  const tags = fc.constantFrom(
    "<p>",
    "</p>",
    "<a href=x>",
    "</a>",
    "<pre>",
    "</pre>",
    "<script>",
    "<div hidden>",
    "</div>",
    "<br/>",
    "<li>",
    "&#x1F600;",
    "&",
    "<",
    "<!--",
  );
  fc.assert(fc.property(fc.array(fc.oneof(tags, fc.string())), (parts) => {
    isTrue(readableText(parts.join(""), "https://a.example/").endsWith("\n"));
  }));
  isTrue(readableText("<div>".repeat(100_000), "https://a.example/").length < 10);
});
