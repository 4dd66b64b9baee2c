// Runs in a network of its own, whose only resolver is the test's: egressd under its real flags is
// asked for names that turn private, and prints what it answered and what was reached. An argument is
// added to its configuration.
import { startNameServer } from "../../doubles/namespace/name_server.ts";
import { startEgressd } from "../../doubles/egress/egress_rig.ts";

/** Public by its number; here it lies on this network's own loopback. */
const PUBLIC = "93.184.216.34";
const PRIVATE = ["127.0.0.1", "10.9.8.7", "169.254.169.254", "100.64.0.9", "192.168.7.7"];
const PORT = 8_080;

async function ip(...args: string[]): Promise<void> {
  const ran = await new Deno.Command("ip", { args }).output();
  if (!ran.success) throw new Error(new TextDecoder().decode(ran.stderr));
}

for (const address of [PUBLIC, ...PRIVATE.slice(1)]) await ip("addr", "add", address, "dev", "lo");
await ip("-6", "addr", "add", "fd00::9", "dev", "lo", "nodad");

const reached: string[] = [];
// Every connection counts, whatever comes over it.
const listener = Deno.listen({ hostname: "::", port: PORT });
(async () => {
  for await (const conn of listener) {
    if (conn.localAddr.transport === "tcp") reached.push(conn.localAddr.hostname);
    await conn.read(new Uint8Array(4_096));
    const text = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
    await conn.write(new TextEncoder().encode(text));
    conn.close();
  }
})();

const turning = (to: string) => [{ a: [PUBLIC] }, { a: [to] }];
const names = {
  "stays.example": [{ a: [PUBLIC] }],
  ...Object.fromEntries(PRIVATE.map((to, i) => [`turns${i}.example`, turning(to)])),
  // The public address of this one answers nothing, so that every other is tried.
  "both.example": [{ a: ["93.184.216.35", ...PRIVATE] }],
  "six.example": [{ aaaa: ["::1", "fd00::9"] }],
  "mapped.example": [{ aaaa: ["::ffff:7f00:1"] }],
  "mixed.example": [{ a: ["127.0.0.1"], aaaa: ["::1"] }],
  "later6.example": [{ a: [PUBLIC] }, { aaaa: ["::1"] }],
};
const answers: Record<string, number[]> = {};
{
  await using resolver = await startNameServer(names);
  await using egressd = await startEgressd(`${Deno.args[0] ?? ""}[limits]\nrequest_s = 4\n`);
  const origins = Object.keys(names).map((name) => `http://${name}:${PORT}`);
  for (const origin of origins) {
    await using way = await egressd.open({ origins: [origin] });
    const statuses: number[] = [];
    for (let i = 0; i < 3; i++) statuses.push((await way.get(`${origin}/`)).status);
    answers[new URL(origin).hostname] = statuses;
  }
  console.log(JSON.stringify({ answers, reached, asked: resolver.asked }));
}
Deno.exit(0);
