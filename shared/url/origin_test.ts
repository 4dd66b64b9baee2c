// Guards shared/url/origin.ts: no two readers see different hosts in one text.
import { strictEqual } from "node:assert";
import fc from "fast-check";
import { readHttpUrl } from "./origin.ts";

const REFUSED = [
  "",
  "https://",
  "https:///x",
  "https:x.example/",
  "https:/x.example/",
  "//x.example/",
  "/x",
  "ftp://x.example/",
  "http+unix://%2feg%2fs.sock/",
  "file:///etc/passwd",
  "https://api.example@evil.example/",
  "https://a:b@x.example/",
  "https://@x.example/",
  "https://x.example./",
  "https://x.example.:443/",
  "http://127.0.0.1./",
  "https://*/",
  "https://*.x.example:443",
  "https://x..example/",
  "https://x.example\\.evil.example/",
  "https://x.example\\@evil.example/",
  "https://x.example\0.evil.example/",
  "https://x.example/\0",
  "https://x.example/\r\nHost: evil.example",
  " https://x.example/",
  "https://x.exam\tple/",
  "https://x.example:0/",
  "https://x.example:65536/",
  "https://x.example:4 43/",
  "https://x.example%00.evil.example/",
  "https://x.example\u200b.evil/",
  "https://[::1/",
  "https://[fe80::1%25eth0]/",
  `https://x.example/${"a".repeat(9_000)}`,
];

Deno.test("readHttpUrl() a text that two readers could take for two hosts is refused", () => {
  for (const text of REFUSED) strictEqual(readHttpUrl(text), null, JSON.stringify(text));
});

Deno.test("readHttpUrl() every spelling of one host is one origin", () => {
  const rows: Readonly<Record<string, string>> = {
    "https://x.example/a#b": "https://x.example:443",
    "HTTPS://X.Example:443/": "https://x.example:443",
    "https://x.example:0443/": "https://x.example:443",
    "http://x.example": "http://x.example:80",
    "http://x.example:443/": "http://x.example:443",
    "https://xn--bcher-kva.example/": "https://xn--bcher-kva.example:443",
    "https://bücher.example/": "https://xn--bcher-kva.example:443",
    "https://x%2eexample/": "https://x.example:443",
    "http://127.1/": "http://127.0.0.1:80",
    "http://2130706433/": "http://127.0.0.1:80",
    "http://0x7f000001/": "http://127.0.0.1:80",
    "http://0/": "http://0.0.0.0:80",
    "http://[::ffff:127.0.0.1]/": "http://[::ffff:7f00:1]:80",
    "http://[0:0:0:0:0:0:0:1]:80/": "http://[::1]:80",
    "https://x.example/?u=https://a@b/": "https://x.example:443",
  };
  for (const [text, origin] of Object.entries(rows)) {
    strictEqual(readHttpUrl(text)?.origin, origin, text);
  }
});

Deno.test("readHttpUrl() reading its own spelling again changes nothing (property)", () => {
  const tail = fc.string({ maxLength: 20, unit: "binary-ascii" });
  fc.assert(fc.property(tail, tail, (host, rest) => {
    const text = `https://${host}/${rest}`;
    const read = readHttpUrl(text);
    if (read === null) return;
    const again = readHttpUrl(read.href);
    strictEqual(again?.href, read.href);
    strictEqual(again?.origin, read.origin);
    strictEqual(new URL(read.href).hostname, new URL(read.origin).hostname);
  }));
});
