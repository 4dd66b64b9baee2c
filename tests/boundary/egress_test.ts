// Guards roles/egressd/README.md on the real program under its real flags: exact origins, one reading of
// a URL, no denied address, redirects handed back, secrets set last, bodies recorded before they leave.
import { deepStrictEqual, match, ok as isTrue, strictEqual } from "node:assert";
import { DENIED_RANGES } from "../../shared/config/egressd.ts";
import { sha256Hex } from "../../shared/tool/digest.ts";
import { call } from "../../shared/wire/dial.ts";
import { EGRESS_GO } from "../../shared/wire/egress.ts";
import { socketPath } from "../../shared/wire/sockets.ts";
import {
  type EgressRig,
  makeCertificates,
  startEgressd,
  startOrigin,
} from "../doubles/egress/egress_rig.ts";

const OPEN =
  `[deny]\nopen = ["127.0.0.0/8"]\n[limits]\nrequest_bytes = 100000\nresponse_bytes = 100000\n`;
let open: EgressRig;
let shut: EgressRig;
Deno.test.beforeAll(async () => {
  [open, shut] = await Promise.all([startEgressd(OPEN), startEgressd("")]);
});
Deno.test.afterAll(async () => {
  await open[Symbol.asyncDispose]();
  await shut[Symbol.asyncDispose]();
});

const urlsOf = (events: readonly { kind: string; body: object }[]) =>
  events.filter((one) => one.kind === "request")
    .map(({ body }) => `${Reflect.get(body, "url")} ${Reflect.get(body, "refused")}`);

Deno.test("egressd no spelling of a denied address is dialled, whatever the grant says", async () => {
  await using origin = startOrigin(() => new Response("reached"));
  const hosts = ["127.0.0.1", "localhost", "127.1", "2130706433", "0x7f000001", "0", "0.0.0.0"];
  const hard = ["[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::ffff:a00:1]"];
  const beyond = ["[fd00::1]", "[fe80::1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]"];
  const far = ["10.0.0.1", "172.16.0.1", "192.168.0.1", "100.64.0.1", "169.254.169.254"];
  const rest = ["192.0.0.1", "192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1"];
  const all = [...hosts, ...hard, ...beyond, ...far, ...rest, "255.255.255.255"];
  const exact = (host: string) => `http://${new URL(`http://${host}`).hostname}:${origin.port}`;
  const origins = [...new Set(all.map(exact))];
  await using way = await shut.open({ origins });
  for (const host of all) {
    const { status, text } = await way.get(`http://${host}:${origin.port}/x`);
    strictEqual(status, 502, `${host}: ${text}`);
  }
  strictEqual(origin.seen.length, 0);
});

Deno.test("egressd only the exact origin is reached, by one reading of the URL", async () => {
  await using origin = startOrigin((request) => new Response(new URL(request.url).pathname));
  const good = `http://127.0.0.1:${origin.port}`;
  await using way = await open.open({ origins: [good] });
  strictEqual((await way.get(`${good}/a`)).text.includes("/a"), true);
  strictEqual((await way.get(`http://127.1:${origin.port}/b`)).status, 200);
  strictEqual((await way.get(`HTTP://2130706433:${origin.port}/c`)).status, 200);
  const before = origin.seen.length;
  const bad: Readonly<Record<string, number>> = {
    [`https://127.0.0.1:${origin.port}/`]: 403,
    [`http://127.0.0.1:${origin.port + 1}/`]: 403,
    "http://127.0.0.1/": 403,
    [`http://localhost:${origin.port}/`]: 403,
    [`http://127.0.0.2:${origin.port}/`]: 403,
    [`http://[::1]:${origin.port}/`]: 403,
    [`http://127.0.0.1.evil.example:${origin.port}/`]: 403,
    [`http://127.0.0.1:${origin.port}@evil.example/`]: 400,
    [`http://evil.example@127.0.0.1:${origin.port}/`]: 400,
    [`http://127.0.0.1.:${origin.port}/`]: 400,
    [`http://localhost.:${origin.port}/`]: 400,
    [`ftp://127.0.0.1:${origin.port}/`]: 400,
    "/x": 400,
    "*": 400,
  };
  for (const [url, status] of Object.entries(bad)) {
    strictEqual((await way.get(url)).status, status, url);
  }
  for (const text of ["\0", "\t", "\x7f", "\\", " x", "\r\nX: y"]) {
    const got = await way.get(`http://127.0.0.1${text}:${origin.port}/`);
    isTrue(got.status === 400 || got.status === 403 || got.status === 0, `${text} ${got.status}`);
  }
  const connect = await way.raw(
    `CONNECT 127.0.0.1:${origin.port} HTTP/1.1\r\nHost: 127.0.0.1:${origin.port}\r\nConnection: close\r\n\r\n`,
  );
  match(connect, /^(?:HTTP\/1\.1 400|$)/);
  strictEqual(origin.seen.length, before);
  isTrue(urlsOf(way.events).includes(`${good}/a null`));
  isTrue(urlsOf(way.events).some((line) => line.endsWith("origin_not_granted")));
});

Deno.test("egressd the Host header never chooses, and two lengths are no request", async () => {
  await using origin = startOrigin((request) => new Response(request.headers.get("host")));
  const good = `http://127.0.0.1:${origin.port}`;
  await using way = await open.open({ origins: [good] });
  const ask = (target: string, host: string, more = "", body = "") =>
    way.raw(`POST ${target} HTTP/1.1\r\nHost: ${host}\r\n${more}Connection: close\r\n\r\n${body}`);
  match(await ask(`${good}/`, "evil.example", "Content-Length: 0\r\n"), /^HTTP\/1\.1 200/);
  strictEqual(origin.seen.at(-1)?.headers.get("host"), `127.0.0.1:${origin.port}`);
  match(await ask("http://evil.example/", `127.0.0.1:${origin.port}`), /^HTTP\/1\.1 403/);
  const before = origin.seen.length;
  const smuggled = `0\r\n\r\nGET ${good}/smuggled HTTP/1.1\r\nHost: x\r\n\r\n`;
  await ask(
    `${good}/`,
    "x",
    "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
    smuggled,
  );
  isTrue(!origin.seen.slice(before).some(({ line }) => line.includes("smuggled")));
});

Deno.test("egressd headers of the connection stay behind, an injected one replaces the program's", async () => {
  await using origin = startOrigin(() =>
    new Response("x", { headers: { "keep-alive": "5", "x-kept": "1", "set-cookie": "a=b" } })
  );
  const good = `http://127.0.0.1:${origin.port}`;
  const inject = { header: "Authorization", value: "Bearer canary" };
  await using way = await open.open({ origins: [good], inject });
  const got = await way.get(
    `${good}/`,
    "Authorization: mine\r\nProxy-Authorization: p\r\nX-Named: 1\r\nTE: trailers\r\nX-Kept: 1\r\n" +
      "Connection: X-Named\r\n",
  );
  strictEqual(got.status, 200);
  match(got.all, /x-kept: 1/i);
  const headers = origin.seen.at(-1)?.headers;
  strictEqual(headers?.get("authorization"), "Bearer canary");
  strictEqual(headers?.get("x-kept"), "1");
  for (const gone of ["proxy-authorization", "te", "x-named"]) {
    strictEqual(headers?.get(gone), null);
  }
  isTrue(!JSON.stringify(way.events).includes("canary"));
  isTrue(!got.all.includes("canary"));
});

Deno.test("egressd a redirect is handed back, and the next hop is matched anew", async () => {
  await using other = startOrigin(() => new Response("other"));
  await using origin = startOrigin(() =>
    Response.redirect(`http://127.0.0.1:${other.port}/next`, 302)
  );
  const good = `http://127.0.0.1:${origin.port}`;
  await using way = await open.open({ origins: [good] });
  const got = await way.get(`${good}/`);
  strictEqual(got.status, 302);
  match(got.all, new RegExp(`location: http://127.0.0.1:${other.port}/next`, "i"));
  strictEqual((await way.get(`http://127.0.0.1:${other.port}/next`)).status, 403);
  strictEqual(other.seen.length, 0);
});

Deno.test("egressd answers of one call end at its cap, and too long a body never leaves", async () => {
  await using origin = startOrigin(() => new Response("y".repeat(60_000)));
  const good = `http://127.0.0.1:${origin.port}`;
  await using way = await open.open({ origins: [good] });
  const first = await way.get(`${good}/`);
  isTrue(first.text.length >= 60_000);
  const second = await way.get(`${good}/`);
  isTrue(second.text.length < 60_000, `${second.text.length}`);
  const before = origin.seen.length;
  const body = "z".repeat(100_001);
  const long = await way.raw(
    `POST ${good}/ HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`,
  );
  match(long, /^HTTP\/1\.1 413/);
  strictEqual(origin.seen.length, before);
});

Deno.test("egressd with log_payload a body is told in full and waits for its go", async () => {
  await using origin = startOrigin(() => new Response("done"));
  const good = `http://127.0.0.1:${origin.port}`;
  const socket = socketPath(open.home, "broker-egress/egress");
  const pieces: string[] = [];
  const before: number[] = [];
  await using way = await open.open({ origins: [good], log_payload: true }, async (event) => {
    if (event.kind === "request_body") pieces.push(atob(event.body.base64));
    if (event.kind !== "request") return;
    before.push(origin.seen.length);
    strictEqual(event.body.sha256, sha256Hex(new TextEncoder().encode(pieces.join(""))));
    const wrong = await call(socket, EGRESS_GO, {
      call: way.call,
      n: event.body.n + 1,
      may_leave: true,
    });
    strictEqual(wrong.ok, false);
    const may_leave = event.body.n === 0;
    await call(socket, EGRESS_GO, { call: way.call, n: event.body.n, may_leave });
  });
  const body = "p".repeat(60_000);
  const ask = () =>
    way.raw(
      `POST ${good}/ HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`,
    );
  match(await ask(), /^HTTP\/1\.1 200/);
  strictEqual(pieces.join(""), body);
  strictEqual(origin.seen.at(-1)?.body, body);
  pieces.length = 0;
  match(await ask(), /^HTTP\/1\.1 502/);
  strictEqual(origin.seen.length, 1);
  deepStrictEqual(before, [0, 1]);
});

Deno.test("egressd the socket is the call's alone and goes when its caller does", async () => {
  const way = await open.open({ origins: ["https://x.example:443"] });
  const mode = (path: string) => (Deno.statSync(path).mode ?? 0) & 0o777;
  strictEqual(mode(`${open.home}/run/eg`), 0o700);
  strictEqual(mode(way.folder), 0o711);
  strictEqual(mode(`${way.folder}/s.sock`), 0o666);
  match(way.folder, /\/run\/eg\/[0-9a-f]{12}$/);
  strictEqual(
    await open.open({ call: way.call, origins: ["https://y.example:443"] }).catch(String).then(
      String,
    ),
    "Error: request-invalid: " + `${way.call} is open already`,
  );
  for (const origin of ["https://x.example", "https://x.example:443/", "https://*:443"]) {
    match(String(await open.open({ origins: [origin] }).catch(String)), /request-invalid/);
  }
  for (
    const [header, value] of [["Host", "x"], ["content-length", "1"], ["X-Key", "a\r\nb"], [
      "X-Key",
      "é",
    ]]
  ) {
    const inject = { header: header ?? "", value: value ?? "" };
    const origins = ["https://x.example:443"];
    const refused = String(await open.open({ origins, inject }).catch(String));
    match(refused, /request-invalid/);
    isTrue(!refused.includes("a\r"));
  }
  await way.close();
  await noFolders();
});

async function noFolders(): Promise<void> {
  for (let i = 0; i < 200; i++) {
    if ([...Deno.readDirSync(`${open.home}/run/eg`)].length === 0) return;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  throw new Error("the folder stayed");
}

Deno.test("egressd a call that ends takes along a half-sent request and one without an answer", async () => {
  const held = Promise.withResolvers<void>();
  const came = Promise.withResolvers<void>();
  await using origin = startOrigin(async () => {
    came.resolve();
    await held.promise;
    return new Response("late");
  });
  const good = `http://127.0.0.1:${origin.port}`;
  const way = await open.open({ origins: [good] });
  const half = way.raw(`POST ${good}/half HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc`);
  const unanswered = way.get(`${good}/slow`);
  await came.promise;
  await way.close();
  await noFolders();
  held.resolve();
  isTrue(!(await half).includes("200") && (await unanswered).status !== 200);
});

Deno.test("egressd one call's program takes neither the descriptors nor the way of another", async () => {
  await using origin = startOrigin(() => new Response("x"));
  const good = `http://127.0.0.1:${origin.port}`;
  const descriptors = () => [...Deno.readDirSync(`/proc/${open.pid}/fd`)].length;
  const before = descriptors();
  await using greedy = await open.open({ origins: [good] });
  const path = `${greedy.folder}/s.sock`;
  const held = await Promise.all(
    Array.from({ length: 120 }, () => Deno.connect({ transport: "unix", path })),
  );
  await using other = await open.open({ origins: [good] });
  strictEqual((await other.get(`${good}/other`)).status, 200);
  isTrue(descriptors() - before < 80, `${descriptors() - before} more descriptors`);
  for (const conn of held) conn.close();
  strictEqual((await greedy.get(`${good}/greedy`)).status, 200);
});

Deno.test("egressd requests of one call are bounded in number, at once and in time, answers that trickle too", async () => {
  const limits = "[limits]\nrequests = 6\nconcurrent = 2\nrequest_s = 2\n";
  await using rig = await startEgressd(`[deny]\nopen = ["127.0.0.0/8"]\n${limits}`);
  await using origin = startOrigin((request) => {
    if (request.url.endsWith("/quick")) return new Response("x");
    const start = (out: ReadableStreamDefaultController) => out.enqueue(new Uint8Array([120]));
    return new Response(new ReadableStream({ start }));
  });
  const good = `http://127.0.0.1:${origin.port}`;
  await using way = await rig.open({ origins: [good] });
  const trickle = async () => {
    const conn = await Deno.connect({ transport: "unix", path: `${way.folder}/s.sock` });
    await conn.write(new TextEncoder().encode(`GET ${good}/ HTTP/1.1\r\nHost: x\r\n\r\n`));
    await conn.read(new Uint8Array(1_000));
    return conn;
  };
  const [gone, kept] = [await trickle(), await trickle()];
  strictEqual((await way.get(`${good}/quick`)).status, 429);
  gone.close();
  const free = async () => {
    for (let i = 0; i < 100; i++) {
      const { status } = await way.get(`${good}/quick`);
      if (status !== 429) return status;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return 429;
  };
  strictEqual(await free(), 200, "an answer that nobody reads any more still counted");
  // The other one, and a body that never comes whole, end by their time.
  const half = way.raw(`POST ${good}/ HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc`);
  match(await half, /^HTTP\/1\.1 502/);
  while (await kept.read(new Uint8Array(1_000)).catch(() => null) !== null);
  kept.close();
  strictEqual((await way.get(`${good}/quick`)).status, 200);
  strictEqual((await way.get(`${good}/quick`)).status, 200);
  strictEqual((await way.get(`${good}/quick`)).status, 429, "the seventh request was carried");
});

const NO_OPENSSL = await new Deno.Command("openssl", { args: ["version"] }).output().then(
  () => "",
  () => " (skipped: openssl is not installed)",
);
Deno.test(
  `egressd TLS is made here: only a certificate of the named host and a known authority${NO_OPENSSL}`,
  { ignore: NO_OPENSSL !== "" },
  async () => {
    const folder = Deno.makeTempDirSync({ prefix: "bx-ca-" });
    try {
      const made = await makeCertificates(folder);
      await using origin = startOrigin(() => new Response("secure"), made.tls);
      const origins = [`https://localhost:${origin.port}`, `https://127.0.0.1:${origin.port}`];
      await using known = await startEgressd(`${OPEN}[tls]\nca_file = "${made.ca}"\n`);
      await using way = await known.open({ origins });
      const got = await way.get(`https://localhost:${origin.port}/`);
      match(got.text, /secure/);
      strictEqual((await way.get(`https://127.0.0.1:${origin.port}/`)).status, 502);
      await using unknown = await open.open({ origins });
      strictEqual((await unknown.get(`https://localhost:${origin.port}/`)).status, 502);
      strictEqual(origin.seen.length, 1);
    } finally {
      Deno.removeSync(folder, { recursive: true });
    }
  },
);

Deno.test("docs/egress.md lists exactly the ranges that are never dialled", () => {
  const page = Deno.readTextFileSync(new URL("../../docs/egress.md", import.meta.url));
  const listed = [...page.matchAll(/`([0-9.]+\/[0-9]+|\[[:0-9]+\])`/g)].map(([, range]) => range);
  deepStrictEqual(listed.toSorted(), [...DENIED_RANGES].toSorted());
});
