// Journey 4: a fact is noted and recalled in another session. docs/journeys/journey-4-fact-recalled.md
import { match, notStrictEqual, ok as isTrue, strictEqual } from "node:assert";
import { e2eHouse, houseTest } from "../doubles/e2e_house.ts";

houseTest("journey 4: a fact told in one session is recalled in another", async () => {
  await using house = await e2eHouse();
  const told = await house.chat("note that the launch window moved to Thursday");
  strictEqual(told.kind, "reply", told.text);
  const asked = await house.chat("what do you know about the launch window");
  notStrictEqual(asked.session, told.session);
  match(asked.text, /Thursday/);
  const search = await house.json("recall", "launch window");
  isTrue(JSON.stringify(search).includes("Thursday"));
  const notes = await Deno.readTextFile(`${house.house.home}/memory/notes.md`);
  match(notes, /launch window moved to Thursday/);
});

houseTest(
  "journey 4: an identity entry reaches the next session and not the running one",
  async () => {
    await using house = await e2eHouse();
    const told = await house.chat("remember that the owner prefers answers in UTC");
    strictEqual(told.kind, "reply", told.text);
    const home = house.house.home;
    match(await Deno.readTextFile(`${home}/memory/memory.md`), /prefers answers in UTC/);
    const baseline = (session: string) =>
      Deno.readTextFile(`${home}/sessions/${session}/0.baseline.json`);
    isTrue(!(await baseline(told.session)).includes("prefers answers in UTC"));
    await house.chat("hello again", told.session);
    isTrue(!(await baseline(told.session)).includes("prefers answers in UTC"));
    const fresh = await house.chat("hello");
    match(await baseline(fresh.session), /prefers answers in UTC/);
  },
);

houseTest(
  "journey 4: the index is disposable: deleted, it is built again and finds the same",
  async () => {
    await using house = await e2eHouse();
    await house.chat("note that the spare key hangs behind the barometer");
    const before = await house.json("recall", "spare key");
    strictEqual((await house.bx("reindex")).status, 0);
    const after = await house.json("recall", "spare key");
    strictEqual(JSON.stringify(after), JSON.stringify(before));
    await Deno.remove(`${house.house.home}/index`, { recursive: true });
    await house.kill("memoryd");
    const rebuilt = await house.json("recall", "spare key");
    strictEqual(JSON.stringify(rebuilt), JSON.stringify(before));
  },
);
