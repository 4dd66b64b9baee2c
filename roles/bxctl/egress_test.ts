// Guards: `egress` hides no address it was told of, and invents none.
import { match, ok as isTrue, strictEqual } from "node:assert";
import { GRANTS_CHECK, type GrantSummary } from "../../shared/wire/broker_owner.ts";
import { ok } from "../../shared/results/result.ts";
import { on } from "../../shared/wire/listen.ts";
import { ownerRig } from "../../tests/doubles/house/owner_rig.ts";

const grant = (name: string, problems: string[]): GrantSummary => ({
  name,
  is_built_in: false,
  sha256: null,
  tool: "http_fetch",
  mode: "ask",
  max_taint: "private",
  expires_unix_ms: null,
  hosts: [`https://${name}:443`],
  problems,
});

Deno.test("egress without the launcher's words, or without brokerd, lists nothing as complete", async () => {
  await using rig = await ownerRig();
  strictEqual((await rig.run(["egress"])).status, 2);
  strictEqual((await rig.run(["egress", "--reach=egressd *"])).status, 1);
});

Deno.test("egress shows each role's address and the hosts of every grant that counts", async () => {
  await using rig = await ownerRig();
  const items = [grant("a.example", []), grant("broken.example", ["it does not count"])];
  await rig.serve("owner-broker/admin", [
    on(GRANTS_CHECK, () => ok({ kind: "grants", body: { items } })),
  ]);
  const words = ["--reach=inferproxy 10.0.0.9:8080", "--reach=egressd *", "--reach=loopd odd:1"];
  const ran = await rig.run(["egress", ...words]);
  strictEqual(ran.status, 0);
  match(ran.out, /^inferproxy +10\.0\.0\.9:8080 +the model server$/m);
  match(ran.out, /^loopd +odd:1 +not foreseen$/m);
  match(ran.out, /http_fetch +https:\/\/a\.example:443 +ask by a\.example$/m);
  isTrue(!ran.out.includes("broken.example"));
  match(ran.out, /^no address: gatewayd, brokerd, memoryd, bxctl,/m);
});
