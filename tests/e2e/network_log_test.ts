// Guards "nothing of the house speaks to anything that is not listed": the whole house in a network
// of its own, every packet of which is written down and compared with what `bxctl egress` says.
import { deepStrictEqual, match, ok, strictEqual } from "node:assert";
import { inWatchedNetwork, NO_WATCH, PUBLIC } from "../doubles/namespace/private_network.ts";

const PROGRAM = decodeURIComponent(new URL("in_network/whole_house.ts", import.meta.url).pathname);
const RESOLVER = "udp 127.0.0.1:53";

function netTest(name: string, reason: string | null, run: () => Promise<void>): void {
  const why = reason === null ? "" : ` (skipped: ${reason})`;
  Deno.test({ name: `${name}${why}`, ignore: reason !== null, fn: run });
}

netTest(
  "watched network: a packet that nobody listed is seen, whatever it is",
  NO_WATCH,
  async () => {
    const spy = `import { createSocket } from "node:dgram";
    const soon = (act) => Promise.race([act.catch(String), new Promise((r) => setTimeout(r, 300))]);
    const socket = createSocket("udp4");
    socket.send("x", 9, "203.0.113.7", () => socket.close());
    await soon(Deno.connect({ hostname: "198.51.100.9", port: 443 }));
    await soon(Deno.connect({ hostname: "2001:db8::9", port: 443 }));
    await soon(Deno.connect({ hostname: "127.0.0.1", port: 9 }));
    await soon(fetch("http://spy.example/"));
    Deno.exit(0);`;
    const ran = await inWatchedNetwork([Deno.execPath(), "eval", spy], null);
    ok(ran.success, ran.err);
    for (
      const packet of [
        "udp 203.0.113.7:9",
        "tcp 198.51.100.9:443",
        "tcp [2001:db8:0:0:0:0:0:9]:443",
        "tcp 127.0.0.1:9",
        RESOLVER,
      ]
    ) ok(ran.packets.includes(packet), `${packet} was not seen: ${ran.packets.join(", ")}`);
  },
);

/** Runs the house and holds every packet against what bxctl egress printed there. */
async function compare(
  argument: string,
  user: { readonly name: string; readonly home: string } | null,
): Promise<Record<string, string>> {
  const ran = await inWatchedNetwork([Deno.execPath(), "run", "-A", PROGRAM, argument], user);
  ok(ran.success, `${ran.err}\n${ran.out}`);
  const { said, egress, up, asked } = JSON.parse(ran.out.trim().split("\n").at(-1) ?? "");
  strictEqual(up, 6, "a role was down");
  const rows: { who: string; address: string }[] = [...egress.roles, ...egress.calls];
  const listed = rows.map(({ address }) => address).filter((one) => /:\d+$/.test(one)).map((one) =>
    `tcp ${one.replace(/^https?:\/\//, "").replace("page.example", PUBLIC)}`
  );
  deepStrictEqual(
    rows.map(({ who }) => who.trim()).filter((who) => who !== "http_fetch").toSorted(),
    ["egressd", "gatewayd", "inferproxy"],
  );
  // Each of them was spoken to, so the log sees what there is; and nothing else was.
  deepStrictEqual(ran.packets.toSorted(), [...new Set([...listed, RESOLVER])].toSorted());
  strictEqual(listed.length, 3);
  ok(asked.every((one: string) => one.endsWith(" page.example")), `looked up: ${asked}`);
  match(said.hello, /./);
  match(said.recall, /tanks are blue/);
  match(said.fetch, /Tea costs 4/);
  strictEqual(said.phone, "0", "the conversation over Mattermost failed");
  return said;
}

netTest(
  "watched network: the whole house speaks to what bxctl egress lists and to nothing else",
  NO_WATCH ?? (Deno.uid() === 0 ? "for an ordinary user; root has the test below" : null),
  async () => void await compare("without", null),
);

netTest(
  "watched network: the whole house with its containers, as root sees it",
  NO_WATCH ?? (Deno.uid() === 0 ? null : "only root can give rootless containers such a network"),
  async () => {
    const home = (await Deno.readTextFile("/etc/passwd")).split("\n")
      .find((line) => line.startsWith("boxmaker:"))?.split(":")[5];
    ok(home !== undefined, "run sh deploy/bootstrap.sh once: there is no user boxmaker");
    const said = await compare("containers", { name: "boxmaker", home });
    match(said.list ?? "", /plan\.txt/);
  },
);
