// Journey 3: a call asks the owner, who approves, denies, or lets it expire.
// docs/journeys/journey-3-call-asked.md
import { match, strictEqual } from "node:assert";
import { type ChatReply, type E2eHouse, e2eHouse, houseTest } from "../doubles/e2e_house.ts";

async function resultOf(house: E2eHouse, reply: ChatReply) {
  const records = await house.records(reply.session);
  return records.find((record) => record.kind === "tool_result");
}

houseTest("journey 3: a denied call runs nothing, and a code answers once", async () => {
  await using house = await e2eHouse();
  const asked = house.chat(`read ${house.papers}/plan.txt`);
  const question = await house.question();
  match(question.text, /read_file/);
  match(question.text, /plan\.txt/);
  strictEqual((await house.bx("deny", "zzzzzz")).status, 1);
  strictEqual((await house.bx("deny", question.code)).status, 0);
  const reply = await asked;
  const result = await resultOf(house, reply);
  strictEqual(result?.outcome, "denied");
  strictEqual(result?.container, null);
  const late = await house.bx("approve", question.code);
  strictEqual(late.status, 1);
  match(late.out, /answered before/);
});

houseTest("journey 3: an approved call runs what was shown", async () => {
  await using house = await e2eHouse();
  const asked = house.chat(`read ${house.papers}/plan.txt`);
  const question = await house.question();
  strictEqual((await house.bx("approve", question.code)).status, 0);
  const reply = await asked;
  match(reply.text, /fill the tanks/);
  const result = await resultOf(house, reply);
  strictEqual(result?.outcome, "done");
  match(String(result?.container), /^bx-/);
});

houseTest("journey 3: a grant revoked between question and approval denies", async () => {
  await using house = await e2eHouse();
  const asked = house.chat(`read ${house.papers}/plan.txt`);
  const question = await house.question();
  await Deno.remove(`${house.house.home}/grants/read.toml`);
  await house.bx("approve", question.code);
  const reply = await asked;
  const result = await resultOf(house, reply);
  strictEqual(result?.outcome, "denied");
  strictEqual(result?.container, null);
});

houseTest("journey 3: a question nobody answers expires and is a denial", async () => {
  await using house = await e2eHouse({ extra: { brokerd: "[approvals]\nexpires_s = 10\n" } });
  const asked = house.chat(`read ${house.papers}/plan.txt`);
  const question = await house.question();
  const reply = await asked;
  const result = await resultOf(house, reply);
  strictEqual(result?.outcome, "denied");
  match((await house.bx("approve", question.code)).out, /expired/);
});

houseTest("journey 3: another conversation goes on while a question waits", async () => {
  await using house = await e2eHouse();
  const asked = house.chat(`read ${house.papers}/plan.txt`);
  const question = await house.question();
  strictEqual((await house.chat("hello")).kind, "reply");
  strictEqual((await house.bx("deny", question.code)).status, 0);
  strictEqual((await asked).kind, "reply");
});
