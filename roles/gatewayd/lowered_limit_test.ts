// Guards: a server whose limit of a post was lowered, or that says another than it holds to, costs no
// word of what waits for it: what is refused for its length is cut anew in its place, whole and once.
import { deepStrictEqual, match, ok as isTrue, strictEqual } from "node:assert";
import { systemRandom } from "../../shared/clock/random.ts";
import { ApprovalId, SessionId, ulid } from "../../shared/ids/ids.ts";
import { type GatewayHouse, gatewayHouse } from "../../tests/doubles/gatewayd.ts";
import { cutAgain, points, postsOf, safeBlocks } from "./outgoing_text.ts";

const CODE = Array.from({ length: 60 }, (_, i) => `let code_${i} = "\`\`\`"; // @all`);
const PROSE = Array.from({ length: 200 }, (_, i) => `word${i}`);
const LONG = [PROSE.join(" "), "````js", ...CODE, "````", "the end"].join("\n");

/** Every word of the texts, with fences and their languages left out. */
function wordsOf(texts: readonly string[]): string[] {
  return texts.join("\n").split("\n").filter((line) => !/^`{3,}(?:js)?$/.test(line)).join(" ")
    .replaceAll("\u200b", "").split(/\s+/).filter((word) => word !== "");
}

function fencesOf(text: string): number {
  return text.split("\n").filter((line) => /^`{4,}(?:js)?$/.test(line)).length;
}

async function houseOf(said?: string): Promise<GatewayHouse> {
  const house = await gatewayHouse(
    said === undefined ? {} : {
      rewrite: (_path, text) => text.replace(/"MaxPostSize":"\d+"/, `"MaxPostSize":"${said}"`),
    },
  );
  await house.ready();
  house.loop.reply = () => null;
  return house;
}

/** The texts that the bot posted under a root, in their order; none is longer than `most`. */
function shown(house: GatewayHouse, root: string, most: number): string[] {
  const texts = house.thread(root).filter((one) => one.user_id === house.rig.bot.id)
    .map((one) => one.message);
  for (const text of texts) {
    isTrue(points(text) <= most);
    strictEqual(fencesOf(text) % 2, 0, text);
    isTrue(!/could not be posted/.test(text), text);
  }
  return texts;
}

for (const said of ["16383", undefined]) {
  const what = said === undefined ? "is lowered" : "is lower than what it says";
  Deno.test(`an answer and what waits behind it are delivered once, in order, when the limit ${what}`, async () => {
    await using house = await houseOf(said);
    const post = house.write("go");
    await house.until("taken", () => house.loop.taken.length === 1);
    await house.until("drafted", () => house.store().unsent() === 0);
    house.rig.double.set({ maxPostSize: 700 });
    house.loop.finish(post.id, LONG);
    house.loop.notice(SessionId.parse(`mm-${post.id}`), `${PROSE.join(" ")} notice`);
    house.loop.notice(SessionId.parse(`mm-${post.id}`), "last");
    await house.until("delivered", () => house.loop.pending() === 0);
    const texts = shown(house, post.id, 700);
    isTrue(texts.length > 6, `${texts.length} posts`);
    deepStrictEqual(wordsOf(texts), wordsOf([LONG, ...PROSE, "notice", "last"]));
    strictEqual(house.store().unsent(), 0);
  });
}

Deno.test("a limit that is lowered again and again, over restarts, loses and repeats nothing", async () => {
  await using house = await houseOf();
  const post = house.write("go");
  await house.until("taken", () => house.loop.taken.length === 1);
  await house.until("drafted", () => house.store().unsent() === 0);
  for (const [i, maxPostSize] of [4_000, 2_000, 900, 600].entries()) {
    house.rig.double.set({ maxPostSize });
    if (i === 0) house.loop.finish(post.id, LONG);
    else {
      await house.stopGateway();
      house.startGateway();
    }
    await new Promise((resolve) => setTimeout(resolve, 40));
  }
  await house.until("delivered", () => house.loop.pending() === 0);
  const own = house.thread(post.id).slice(1).map((one) => one.message);
  deepStrictEqual(wordsOf(own), wordsOf([LONG]));
});

Deno.test("a question that is cut anew is answered by a reaction on its new last post alone", async () => {
  await using house = await gatewayHouse({ config: { approvals: { reactions: true } } });
  await house.ready();
  const { double, owner } = house.rig;
  const lines = [
    ...Array.from({ length: 40 }, (_, i) => `| line ${i} ${"x".repeat(60)}`),
    "Answer: !approve abc123 or !deny abc123",
  ];
  double.set({ maxPostSize: 900 });
  const approval = ApprovalId.parse(`a-${ulid(1, systemRandom)}`);
  house.gateway().questions()?.ask({
    approval,
    session: SessionId.parse(`chat-${ulid(1, systemRandom)}`),
    expiresUnixMs: Date.now() + 60_000,
    lines,
  });
  await house.until("asked", () => house.answers().length > 3 && house.store().unsent() === 0);
  const posts = house.answers();
  const text = posts.map((one) => one.message).join("\n");
  deepStrictEqual(text.split("\n").filter((line) => /^\||^Answer/.test(line)), lines);
  for (const { id } of posts.slice(0, -1)) double.reactAs(owner.id, id, "white_check_mark");
  double.reactAs(owner.id, posts.at(-1)?.id ?? "", "no_entry");
  await house.until("answered", () => house.loop.answers.length > 0);
  deepStrictEqual(house.loop.answers.map((one) => one.answer), ["deny"]);
});

Deno.test("a question that is too long to be shown is not answered by a reaction", async () => {
  await using house = await gatewayHouse({
    config: { approvals: { reactions: true } },
    knobs: { maxPostSize: 600 },
  });
  await house.ready();
  const lines = ["x".repeat(2_000), "Answer: !approve abc123 or !deny abc123"];
  house.gateway().questions()?.ask({
    approval: ApprovalId.parse(`a-${ulid(1, systemRandom)}`),
    session: SessionId.parse(`chat-${ulid(1, systemRandom)}`),
    expiresUnixMs: Date.now() + 60_000,
    lines,
  });
  await house.until("asked", () => house.answers().length === 1 && house.store().unsent() === 0);
  match(house.answers()[0]?.message ?? "", /too long for a post/);
  house.rig.double.reactAs(house.rig.owner.id, house.answers()[0]?.id ?? "", "white_check_mark");
  house.write("and now");
  await house.until("heard", () => house.answers().some((one) => /: and now$/.test(one.message)));
  deepStrictEqual(house.loop.answers, []);
});

Deno.test("cutAgain() of a safe post adds and removes no word and opens nothing", () => {
  const [post = ""] = postsOf(safeBlocks(LONG), 16_000);
  for (const limit of [100, 150, 436, 3_000, 16_000]) {
    const texts = cutAgain(post, limit);
    isTrue(texts.every((text) => points(text) <= limit && fencesOf(text) % 2 === 0));
    deepStrictEqual(wordsOf(texts).join(""), wordsOf([post]).join(""));
  }
  deepStrictEqual(cutAgain(post, 16_000), [post]);
});
