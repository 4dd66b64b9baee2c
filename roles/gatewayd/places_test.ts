// Guards: what belongs to no message has its place all the same: a session without a thread gets one, a
// question that nobody speaks of any more is ended in words, one for bxctl alone says so.
import { deepStrictEqual, strictEqual } from "node:assert";
import { systemRandom } from "../../shared/clock/random.ts";
import { ApprovalId, SessionId, ulid } from "../../shared/ids/ids.ts";
import { gatewayHouse } from "../../tests/doubles/gatewayd.ts";

const newSession = () => SessionId.parse(`chat-${ulid(1, systemRandom)}`);
const LINES = ["What?", "Answer: !approve abc123 or !deny abc123"];

Deno.test("items of a session without a thread stand in one that the first of them begins", async () => {
  await using house = await gatewayHouse();
  await house.ready();
  const [one, two] = [newSession(), newSession()];
  house.loop.notice(one, "first");
  house.loop.notice(two, "other");
  house.loop.notice(one, "second");
  await house.until("acknowledged", () => house.loop.pending() === 0);
  const rootOf = (text: string) => {
    const post = house.answers().find((answer) => answer.message === text);
    return post?.root_id === "" ? post.id : post?.root_id;
  };
  strictEqual(rootOf("second"), rootOf("first"));
  strictEqual(rootOf("other") === rootOf("first"), false);
});

Deno.test("a question past its time that nobody spoke of again is ended in its thread, once", async () => {
  await using house = await gatewayHouse();
  await house.ready();
  const approval = ApprovalId.parse(`a-${ulid(1, systemRandom)}`);
  const expiresUnixMs = Date.now() - 120_000;
  house.gateway().questions()?.ask({
    approval,
    session: newSession(),
    expiresUnixMs,
    lines: LINES,
  });
  const over = () => house.answers().filter((one) => one.message === "It is over.");
  await house.until("ended", () => over().length === 1);
  house.gateway().questions()?.sweep(Date.now());
  house.gateway().questions()?.closed(approval, "expired");
  await house.until("quiet", () => house.store().unsent() === 0);
  const [question] = house.answers();
  deepStrictEqual(over().map((one) => one.root_id), [question?.id]);
  strictEqual(house.answers().length, 2);
});

Deno.test("a reaction on a question for bxctl alone is told so once, and the question stays open", async () => {
  await using house = await gatewayHouse({ config: { approvals: { reactions: true } } });
  await house.ready();
  house.loop.outcome = "local_only";
  const approval = ApprovalId.parse(`a-${ulid(1, systemRandom)}`);
  const expiresUnixMs = Date.now() + 60_000;
  house.gateway().questions()?.ask({
    approval,
    session: newSession(),
    expiresUnixMs,
    lines: LINES,
  });
  await house.until("asked", () => house.answers().length === 1 && house.store().unsent() === 0);
  const [post] = house.answers();
  for (const emoji of ["white_check_mark", "no_entry"]) {
    house.rig.double.reactAs(house.rig.owner.id, post?.id ?? "", emoji);
  }
  const told = () => house.answers().filter((one) => /with bxctl only\.$/.test(one.message));
  await house.until("told", () => told().length === 1);
  deepStrictEqual(told().map((one) => one.root_id), [post?.id]);
  strictEqual(house.loop.answers.length, 1);
  strictEqual(house.store().openAsked().length, 1);
});
