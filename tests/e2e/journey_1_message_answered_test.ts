// Journey 1: a message arrives and is answered. docs/journeys/journey-1-message-answered.md
import { deepStrictEqual, match, notStrictEqual, ok as isTrue, strictEqual } from "node:assert";
import { e2eHouse, houseTest } from "../doubles/e2e_house.ts";

houseTest(
  "journey 1: a message is answered, logged, and the next one reuses its prompt",
  async () => {
    await using house = await e2eHouse();
    const first = await house.chat("hello");
    strictEqual(first.status, 0, first.text);
    strictEqual(first.kind, "reply");
    match(first.text, /rehearsal model/);
    deepStrictEqual(first.label, { class: "private", untrusted: false });

    const second = await house.chat("hello again", first.session);
    strictEqual(second.session, first.session);
    const records = await house.records(first.session);
    const kinds = records.map((record) => record.kind);
    deepStrictEqual(kinds.filter((kind) => kind === "user" || kind === "assistant"), [
      "user",
      "assistant",
      "user",
      "assistant",
    ]);
    const [one, two] = records.filter((record) => record.kind === "assistant")
      .map((record) => Object(record.timings));
    strictEqual(two.cache_n, one.cache_n + one.prompt_n + one.predicted_n - 1);

    const verified = await house.bx("sessions", "verify", first.session);
    strictEqual(verified.status, 0, verified.out);
    const listed = await house.json("sessions", "list");
    strictEqual(JSON.stringify(listed).includes(first.session), true);
    const other = await house.chat("hello");
    notStrictEqual(other.session, first.session);
  },
);

houseTest(
  "journey 1: every role is up, of one version, and the prompt fits its budget",
  async () => {
    await using house = await e2eHouse();
    await house.chat("hello");
    const status = await house.bx("status", "--json");
    const { is_healthy, roles } = JSON.parse(status.out);
    strictEqual(is_healthy, true, status.out);
    strictEqual(status.status, 0);
    strictEqual(roles.length, 6);
    const versions = await house.json("version");
    strictEqual(new Set(Object.values(versions)).size, 1);
    const bill = await house.json("prompt");
    strictEqual(bill.counted_by, "server");
    isTrue(Number(bill.total) > 0 && Number(bill.total) <= 1_500, JSON.stringify(bill));
  },
);
