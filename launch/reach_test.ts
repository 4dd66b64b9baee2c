// Guards: docs/egress.md names exactly the roles that may reach an address, and bxctl is told of all.
import { deepStrictEqual } from "node:assert";
import { reach } from "./reach.ts";

const SOURCE = decodeURIComponent(new URL("..", import.meta.url).pathname).replace(/\/$/, "");
const SERVER = `[mattermost]\nurl = "https://chat.example"\nowner_id = "${"a".repeat(26)}"\n` +
  'token = { file = "/etc/key" }\n';

Deno.test("reach() is what docs/egress.md says: these roles and no other, at what is configured", () => {
  const home = Deno.makeTempDirSync({ prefix: "bx" });
  try {
    Deno.mkdirSync(`${home}/config`);
    const page = Deno.readTextFileSync(`${SOURCE}/docs/egress.md`);
    const told = [...page.matchAll(/^\| ([a-z]+) +\|/gm)].map(([, who]) => who ?? "")
      .filter((who) => who !== "who");
    const rolesOf = (words: readonly string[]) =>
      [...new Set(words.map((word) => word.slice("--reach=".length).split(" ")[0]))].toSorted();
    deepStrictEqual(reach(home, SOURCE), [
      "--reach=inferproxy 127.0.0.1:8080",
      "--reach=egressd *",
    ]);
    Deno.writeTextFileSync(`${home}/config/gatewayd.toml`, SERVER);
    Deno.writeTextFileSync(
      `${home}/config/inferproxy.toml`,
      '[upstream]\naddress = "model.example:9000"\n',
    );
    const all = reach(home, SOURCE);
    deepStrictEqual(rolesOf(all), told.toSorted());
    deepStrictEqual(all.toSorted(), [
      "--reach=egressd *",
      "--reach=gatewayd chat.example:443",
      "--reach=inferproxy model.example:9000",
    ]);
  } finally {
    Deno.removeSync(home, { recursive: true });
  }
});
