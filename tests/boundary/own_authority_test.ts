// Guards: a server whose certificate only the owner's own authority vouches for is reached under
// gatewayd's real flags when `ca_file` names it, and refused, by the reason, when it does not.
import { match, strictEqual } from "node:assert";
import { GatewaydConfig } from "../../shared/config/gatewayd.ts";
import { permissions } from "../../roles/gatewayd/permissions.ts";
import { keepRunning, prepareHome } from "../chaos/kept_role.ts";
import { SOURCE } from "../doubles/role_process.ts";
import { assertSafePosts } from "../doubles/mattermost/safe_posts.ts";
import { startRig } from "../doubles/mattermost/rig.ts";

const TLS = decodeURIComponent(new URL("../doubles/mattermost/tls", import.meta.url).pathname);

async function until(what: string, holds: () => boolean): Promise<void> {
  for (let i = 0; i < 800; i++) {
    if (holds()) return;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  throw new Error(what);
}

Deno.test("gatewayd reaches a server by the owner's own authority, and no other without it", async () => {
  const [key, cert] = await Promise.all(
    ["key.pem", "cert.pem"].map((name) => Deno.readTextFile(`${TLS}/${name}`)),
  );
  const rig = await startRig({ tls: { key: key ?? "", cert: cert ?? "" } });
  try {
    for (const ca_file of [undefined, `${TLS}/ca.pem`]) {
      const base = await Deno.makeTempDir({ prefix: "bxt" });
      const home = `${base}/home`;
      await prepareHome(home);
      const token = { file: `${base}/token` };
      await Deno.writeTextFile(token.file, rig.bot.token, { mode: 0o600 });
      const mattermost = { url: rig.double.url, owner_id: rig.owner.id, token, ca_file };
      const more = ca_file === undefined ? "" : `ca_file = "${ca_file}"\n`;
      const toml = `[mattermost]\nurl = "${rig.double.url}"\nowner_id = "${rig.owner.id}"\n` +
        `token = { file = "${token.file}" }\n${more}`;
      await Deno.writeTextFile(`${home}/config/gatewayd.toml`, toml);
      const flags = permissions(GatewaydConfig.parse({ mattermost }), {
        home,
        source: SOURCE,
        workerFiles: [],
      });
      const role = keepRunning("gatewayd", home, flags);
      const log = () => Deno.readTextFileSync(`${home}/logs/gatewayd.log`);
      try {
        if (ca_file === undefined) {
          await until("no reason was told", () => /channel-unreachable/.test(log()));
          match(log(), /channel-unreachable: .*certificate/);
          strictEqual(rig.double.sockets(), 0);
        } else await until(`not connected: ${log()}`, () => rig.double.sockets() === 1);
        strictEqual(role.problems.join(), "");
      } finally {
        await role.stop();
        assertSafePosts(rig.double.traffic(), { botId: rig.bot.id, mayBeEmpty: true });
        await Deno.remove(base, { recursive: true });
      }
    }
  } finally {
    await rig.double.stop();
  }
});
