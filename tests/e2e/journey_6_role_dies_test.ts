// Journey 6: a role dies in the middle of each of these. docs/journeys/journey-6-role-dies.md
import { match, ok as isTrue, strictEqual } from "node:assert";
import { e2eHouse, houseTest } from "../doubles/e2e_house.ts";

houseTest(
  "journey 6: a question survives the death of loopd and of brokerd, and runs once",
  async () => {
    await using house = await e2eHouse();
    const asked = house.chat(`read ${house.papers}/plan.txt`);
    const question = await house.question();
    await house.kill("loopd");
    await house.kill("brokerd");
    const again = await house.question();
    strictEqual(again.approval, question.approval);
    strictEqual((await house.bx("approve", question.code)).status, 0);
    const reply = await asked;
    match(reply.text, /fill the tanks/);
    const records = await house.records(reply.session);
    strictEqual(records.filter((record) => record.kind === "tool_result").length, 1);
    const audit = await house.json("audit", "tail", "-n", "200");
    const starts = (Array.isArray(audit.records) ? audit.records : [])
      .filter((record) => Object(record).kind === "start");
    strictEqual(starts.length, 1);
    strictEqual((await house.bx("audit", "verify")).status, 0);
    strictEqual((await house.bx("sessions", "verify", reply.session)).status, 0);
  },
);

houseTest(
  "journey 6: a turn survives the death of the model server and of inferproxy",
  async () => {
    await using house = await e2eHouse();
    const first = await house.chat("hello");
    const slow = house.chat("think 400", first.session);
    await new Promise((resolve) => setTimeout(resolve, 300));
    await house.kill("inferproxy");
    const reply = await slow;
    isTrue(reply.kind === "reply" || reply.kind === "notice", reply.text);
    await house.kill("model");
    for (let i = 0; i < 20; i++) {
      const back = await house.chat("hello", first.session);
      if (back.kind === "reply") return;
    }
    throw new Error("The conversation did not go on after the model server came back");
  },
);

houseTest("journey 6: recall works again after the death of memoryd", async () => {
  await using house = await e2eHouse();
  await house.chat("note that the kettle is blue");
  await house.kill("memoryd");
  match((await house.chat("what do you know about the kettle")).text, /blue/);
});

houseTest("journey 6: with memoryd away no session begins, and the owner is told why", async () => {
  await using house = await e2eHouse();
  const first = await house.chat("hello");
  const soul = `${house.house.home}/memory/soul.md`;
  await Deno.writeTextFile(soul, "x".repeat(4_001));
  const refused = await house.chat("hello");
  strictEqual(refused.code, "memory-unavailable", refused.text);
  strictEqual(refused.status, 1);
  strictEqual((await house.chat("hello again", first.session)).kind, "reply");
  await Deno.writeTextFile(soul, "Be kind.\n");
  strictEqual((await house.chat("hello")).kind, "reply");
});
