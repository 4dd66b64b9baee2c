// Guards the example grants: they are copied by hand, so each must hold as it stands.
import { deepStrictEqual, ok } from "node:assert";
import { GrantFile } from "./grant_schema.ts";
import { parseConfig } from "../../shared/config/load.ts";
import { openChat, ROOT, testHouse } from "../../tests/doubles/broker_house.ts";

const FOLDER = new URL("../../grants/", import.meta.url);

Deno.test("grants/ every example parses, has no problem in a house, and they go together", async () => {
  const names = [...Deno.readDirSync(FOLDER)].map((entry) => entry.name)
    .filter((name) => name.endsWith(".toml"));
  ok(names.length >= 5);
  const texts = Object.fromEntries(names.map((name) => {
    const text = Deno.readTextFileSync(new URL(name, FOLDER));
    ok(parseConfig(GrantFile, text, name).ok, name);
    return [name, text.replaceAll("/home/you/notes", ROOT)];
  }));
  const house = testHouse({ grants: texts }).open();
  const problems = house.grants.current().summaries.flatMap((one) => one.problems);
  deepStrictEqual(problems, []);
  openChat(house);
  await house.close();
});
