// Guards "no denied address, whatever name leads there": the real egressd, whose resolver answers a
// public address first and a private one afterwards, refuses at the moment of connecting.
import { deepStrictEqual, ok, strictEqual } from "node:assert";
import { inPrivateNetwork, NO_NETWORK } from "../doubles/namespace/private_network.ts";

const PROGRAM = decodeURIComponent(new URL("in_network/rebinding.ts", import.meta.url).pathname);
const WHY = NO_NETWORK === null ? "" : ` (skipped: ${NO_NETWORK})`;

async function asked(config: string) {
  const ran = await inPrivateNetwork([Deno.execPath(), "run", "-A", PROGRAM, config]);
  ok(ran.success, ran.err);
  return JSON.parse(ran.out.trim().split("\n").at(-1) ?? "");
}

Deno.test(
  `egressd a name that turns private after its first answer is not dialled, IPv6 neither${WHY}`,
  { ignore: NO_NETWORK !== null },
  async () => {
    const told = await asked("");
    // The way works, and the resolver is the test's own: without this nothing below means anything.
    deepStrictEqual(told.answers["stays.example"], [200, 200, 200]);
    for (const [name, statuses] of Object.entries(told.answers)) {
      if (/^turns|^later6/.test(name)) deepStrictEqual(statuses, [200, 502, 502], name);
      else if (name !== "stays.example") deepStrictEqual(statuses, [502, 502, 502], name);
    }
    strictEqual(Object.keys(told.answers).length, 11);
    const isPublic = (address: string) => /(?:^|:)93\.184\.216\.34$/.test(address);
    ok(told.reached.length > 0 && told.reached.every(isPublic), "a private address was reached");
    // It looks up what it was asked for, each time, and nothing else.
    strictEqual(told.asked.filter((one: string) => one === "A turns0.example").length, 3);
    ok(told.asked.every((one: string) => one.endsWith(".example")), told.asked.join());
  },
);

Deno.test(
  `egressd the same names are dialled where the owner opened their range, so the refusal is the range's${WHY}`,
  { ignore: NO_NETWORK !== null },
  async () => {
    const told = await asked('[deny]\nopen = ["127.0.0.0/8"]\n');
    deepStrictEqual(told.answers["turns0.example"], [200, 200, 200]);
    deepStrictEqual(told.answers["turns1.example"], [200, 502, 502]);
    ok(told.reached.some((address: string) => address.endsWith("127.0.0.1")));
  },
);
