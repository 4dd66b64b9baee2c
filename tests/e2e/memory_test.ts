// What memory proves, in a whole house: facts cross sessions, edits do not cross into a running prompt,
// the prompt stays small, and what came from outside stays marked.
import { deepStrictEqual, match, ok as isTrue, strictEqual } from "node:assert";
import { type E2eHouse, e2eHouse, houseTest, usualGrants } from "../doubles/e2e_house.ts";

const MOST_TOKENS = 3_000;

function readsOutsiders(papers: string): Record<string, string> {
  const read = `tool = "read_file"\nmode = "auto"\npaths = ["${papers}"]\nmax_taint = "private"\n` +
    `result_class = "private"\nuntrusted = true\n`;
  return { ...usualGrants(papers), "read.toml": read };
}

const fileOf = (house: E2eHouse, name: string) =>
  Deno.readTextFile(`${house.house.home}/memory/${name}`);
const promptOf = (house: E2eHouse, session: string) =>
  Deno.readTextFile(`${house.house.home}/sessions/${session}/0.baseline.json`);

houseTest(
  "memory 1 and 2: a fact is recalled in another session, also after it was moved out",
  async () => {
    await using house = await e2eHouse();
    await house.chat("note that the spare key hangs behind the barometer");
    const asked = await house.chat("what do you know about the spare key");
    match(asked.text, /behind the barometer/);
    strictEqual(asked.label.untrusted, false);
    await house.chat("remember that the owner prefers answers in UTC");
    const moved = await house.chat("move the owner prefers answers in UTC out of memory");
    match(moved.text, /memory\.md updated \(0 of 2,200 characters/);
    strictEqual(await fileOf(house, "memory.md"), "");
    match(
      (await house.chat("recall answers in UTC")).text,
      /\[1\] identity .*moved from memory\.md/,
    );
    const hits = await house.json("recall", "answers in UTC");
    match(JSON.stringify(hits), /"source":"notes\.md entry 2"/);
    const status = await house.json("memory", "status");
    match(JSON.stringify(status.found), /"hits":1,.*notes\.md entry/);
  },
);

houseTest(
  "memory 3: under ask, an edit waits for the owner and reaches only the next session",
  async () => {
    const brokerd = `[memory]\nidentity_writes = "ask"\n`;
    await using house = await e2eHouse({ extra: { brokerd } });
    await house.chat("note that notes never wait");
    const asked = house.chat("remember that the owner likes tea");
    const question = await house.question();
    match(question.text, /the owner likes tea/);
    strictEqual(await fileOf(house, "memory.md"), "");
    strictEqual((await house.bx("approve", question.code)).status, 0);
    const told = await asked;
    strictEqual(await fileOf(house, "memory.md"), "the owner likes tea");
    const frozen = await promptOf(house, told.session);
    isTrue(!frozen.includes("likes tea"));
    await house.kill("loopd");
    await house.chat("hello again", told.session);
    strictEqual(await promptOf(house, told.session), frozen);
    const fresh = await house.chat("hello");
    match(await promptOf(house, fresh.session), /likes tea/);
    const refused = house.chat("remember that the owner likes rain");
    strictEqual((await house.bx("deny", (await house.question()).code)).status, 0);
    await refused;
    strictEqual(await fileOf(house, "memory.md"), "the owner likes tea");
  },
);

houseTest(
  "memory 3: staged edits wait for review; log, undo and purge do what they say",
  async () => {
    const brokerd = `[memory]\nidentity_writes = "staged"\n`;
    await using house = await e2eHouse({ extra: { brokerd } });
    const told = await house.chat("remember that the owner likes tea");
    match(told.text, /Queued for the owner's review/);
    await house.chat("remember about me that I live in Bergen", told.session);
    strictEqual(await fileOf(house, "memory.md"), "");
    const { staged } = await house.json("memory", "review");
    const calls = Array.isArray(staged) ? staged.map((one) => String(one.call)) : [];
    strictEqual(calls.length, 2);
    match((await house.bx("memory", "review", calls[0] ?? "")).out, /the owner likes tea/);
    strictEqual((await house.bx("memory", "review", calls[0] ?? "", "apply")).status, 0);
    strictEqual((await house.bx("memory", "review", calls[1] ?? "", "drop")).status, 0);
    strictEqual(await fileOf(house, "memory.md"), "the owner likes tea");
    strictEqual(await fileOf(house, "user.md"), "");
    strictEqual((await house.bx("memory", "undo", "memory.md")).status, 0);
    strictEqual(await fileOf(house, "memory.md"), "");
    strictEqual((await house.bx("memory", "undo", "memory")).status, 0);
    match((await house.bx("memory", "log")).out, /edit add .* memory\.md .*\n.*undo .*\n.*undo /);
    match((await house.bx("memory", "show", "1")).out, /after:\n {2}the owner likes tea/);
    const source = ["memory", "purge", "--source", told.session];
    match((await house.bx(...source)).out, /Would hide 1 entries/);
    strictEqual(await fileOf(house, "memory.md"), "the owner likes tea");
    match((await house.bx(...source, "--yes", "--why", "a try")).out, /Hidden for good/);
    strictEqual(await fileOf(house, "memory.md"), "");
    await house.kill("memoryd");
    await Deno.remove(`${house.house.home}/index/memory.sqlite3`);
    strictEqual((await house.bx("reindex")).status, 0);
    deepStrictEqual((await house.json("recall", "tea Bergen")).hits, []);
    const doctor = await house.bx("doctor");
    strictEqual(doctor.status, 0, doctor.out + doctor.err);
  },
);

houseTest("memory 4: what every conversation begins with stays within its tokens", async () => {
  await using house = await e2eHouse();
  const bill = await house.json("prompt");
  isTrue(Number(bill.total) > 0 && Number(bill.total) <= MOST_TOKENS, JSON.stringify(bill));
  // Full files are told to the owner and not refused.
  const home = `${house.house.home}/memory`;
  await Deno.writeTextFile(`${home}/memory.md`, "tea ".repeat(550).trim());
  await Deno.writeTextFile(`${home}/user.md`, "rain ".repeat(275).trim());
  const full = await house.chat("hello");
  strictEqual(full.kind, "reply", full.text);
});

houseTest(
  "memory 5: what a session said after reading an outsider's text is recalled as untrusted",
  async () => {
    const brokerd = `[memory]\nidentity_writes = "ask"\n`;
    await using house = await e2eHouse({ grants: readsOutsiders, extra: { brokerd } });
    const first = await house.chat(`read ${house.papers}/plan.txt`);
    // What can only become a note is not asked about.
    const noted = await house.chat("remember that the tanks are full", first.session);
    match(noted.text, /Noted in notes\.md as untrusted instead/);
    strictEqual(await fileOf(house, "memory.md"), "");
    const asked = await house.chat("recall plan tanks");
    match(asked.text, /memory-tainted .* untrusted/);
    strictEqual(asked.label.untrusted, true);
    const { hits } = await house.json("recall", "fill the tanks");
    isTrue(Array.isArray(hits) && hits.length > 0 && hits.some((hit) => hit.untrusted === true));
  },
);
