// Guards: no post of anybody stops the channel or the role: not one that is nested deep, has many keys
// or is huge, not one whose fields are of another kind, not a file that is larger than it says; and what
// others write never takes the place of what the owner wrote.
import { deepStrictEqual, ok as isTrue, strictEqual } from "node:assert";
import { systemRandom } from "../../shared/clock/random.ts";
import { ApprovalId, SessionId, ulid } from "../../shared/ids/ids.ts";
import { gatewayHouse } from "../../tests/doubles/gatewayd.ts";
import { points, postsOf, safeBlocks } from "./outgoing_text.ts";

type House = Awaited<ReturnType<typeof gatewayHouse>>;

function nested(depth: number): unknown {
  let value: unknown = 1;
  for (let i = 0; i < depth; i++) value = { a: value };
  return value;
}

/** What somebody wrote while the bot was away, and whether the owner is heard after it. */
async function heardAfter(
  write: (house: House) => void,
  rewrite = (_path: string, text: string) => text,
): Promise<void> {
  await using house = await gatewayHouse({ rewrite });
  await house.ready();
  await house.stopGateway();
  write(house);
  house.write("and now");
  house.startGateway();
  await house.until("heard", () => house.answers().some((one) => /: and now$/.test(one.message)));
}

const KINDS: readonly (readonly [string, Record<string, unknown>])[] = [
  ["nested deep", { props: { deep: nested(3_000) } }],
  ["of many keys", {
    props: Object.fromEntries(Array.from({ length: 9_000 }, (_, i) => [`k${i}`, i])),
  }],
  ["of a root that is no id", { root_id: "../x" }],
  ["of a root in upper case", { root_id: "A".repeat(26) }],
  ["of a time that is no whole number", { create_at: Date.now() + 0.5 }],
  ["of a time beyond all whole numbers", { create_at: 1e300 }],
];

for (const [kind, fields] of KINDS) {
  Deno.test(`a post ${kind} ends neither the catch-up nor the role`, async () => {
    await heardAfter(
      ({ rig }) => void rig.double.postAs(rig.owner.id, { channel_id: rig.dm, message: "odd" }),
      (_path, text) => {
        if (!text.includes('"message":"odd"')) return text;
        const list = JSON.parse(text);
        const posts = Object.values<Record<string, unknown>>(list.posts ?? {});
        Object.assign(posts.find((post) => post.message === "odd") ?? {}, fields);
        return JSON.stringify(list);
      },
    );
  });
}

const TEXTS: readonly (readonly [string, string])[] = [
  ["nested deeper than a stack holds", `"odd","props":{"a":${"[".repeat(2e5)}${"]".repeat(2e5)}}`],
  ["with half a surrogate pair", '"odd\\ud800","hashtags":"\\udfff"'],
  ["with a number that is too large to hold", '"odd","props":{"a":1e999}'],
  ["with a key of the language's own", '"odd","__proto__":{"user_id":"x"}'],
];

for (const [kind, text] of TEXTS) {
  Deno.test(`a post ${kind} costs the other posts of its page nothing`, async () => {
    await heardAfter(
      ({ rig }) => void rig.double.postAs(rig.owner.id, { channel_id: rig.dm, message: "odd" }),
      (_path, answer) =>
        answer.replaceAll(/"props":\{\},/g, "").replaceAll('"message":"odd"', `"message":${text}`),
    );
  });
}

Deno.test("a post that is no post is passed over and named once, not at every look", async () => {
  await using house = await gatewayHouse({
    isSilent: true,
    rewrite: (_path, text) => text.replace(/"create_at":\d+(?=[^{}]*"message":"odd")/g, '"z":1'),
  });
  await house.ready();
  const { double, owner, dm } = house.rig;
  const { id } = double.postAs(owner.id, { channel_id: dm, message: "odd" });
  const reads = () =>
    double.traffic().filter((one) =>
      one.kind === "request" && one.method === "GET" && one.path.endsWith("/posts")
    ).length;
  for (let i = 0; i < 2; i++) {
    const before = reads();
    double.drop("fin");
    await house.until("read again", () => reads() > before);
    await house.ready();
    await house.until("named", () => house.log.some((line) => line.includes(id)));
  }
  strictEqual(house.log.filter((line) => line.includes(id)).length, 1);
});

Deno.test("a message of the connection with a field of another kind costs itself alone", async () => {
  await using house = await gatewayHouse();
  await house.ready();
  const { double } = house.rig;
  const opened = () =>
    double.traffic().filter((one) => one.kind === "socket" && one.what === "upgraded").length;
  const before = opened();
  for (
    const odd of [
      '{"event":7,"data":{},"seq":"one"}',
      '{"event":"x","data":[1],"seq":1.5}',
      '{"event":"x","data":"text","seq":-9007199254740991}',
      '{"event":null,"seq":null,"seq_reply":null,"status":null,"data":null}',
      '{"seq_reply":"1","status":7}',
      '{"event":"posted","data":{"post":{"id":1}},"seq":9007199254740991}',
      `{"event":"x","data":{"deep":${"[".repeat(2e5)}${"]".repeat(2e5)}}}`,
    ]
  ) double.sendRaw(odd);
  house.write("and now");
  await house.until("heard", () => house.answers().some((one) => /: and now$/.test(one.message)));
  strictEqual(opened(), before);
});

Deno.test("a server's time that is no time ends neither the channel nor the role", async () => {
  for (
    const time of [
      "-1e300",
      "1e300",
      "0.5",
      "-9007199254740991",
      "9007199254740991",
      '"now"',
      "null",
    ]
  ) {
    await using house = await gatewayHouse({
      told: (text) => text.replace(/"server_time":\d+/, `"server_time":${time}`),
    });
    await house.ready();
    house.rig.double.drop("fin");
    house.write("and now");
    await house.until("heard", () => house.answers().some((one) => /: and now$/.test(one.message)));
  }
});

Deno.test("a text with a zero byte is kept whole, on its way in and out, as a file too", async () => {
  await using house = await gatewayHouse({
    knobs: { maxPostSize: 600 },
    rewrite: (_path, text) => text.replaceAll("ZERO", "\\u0000"),
    told: (text) => text.replaceAll("ZERO", "\\\\u0000"),
  });
  await house.ready();
  house.loop.reply = () => `\0${"All work and no play. ".repeat(600)}\0end`;
  house.write("one ZERO two");
  await house.until("taken", () => house.loop.taken.length === 1);
  strictEqual(house.loop.taken[0]?.text, "one \ufffd two");
  const whole = () => house.answers().find((one) => one.message === "The whole answer:");
  await house.until("attached", () => whole() !== undefined);
  isTrue(house.rig.double.fileText(whole()?.file_ids?.[0] ?? "")?.endsWith("\ufffdend"));
});

Deno.test("a reaction that is none keeps neither the catch-up nor the owner's own from counting", async () => {
  for (const odd of ["null", '{"user_id":7}', '{"user_id":"x","post_id":"y","emoji_name":1}']) {
    await using house = await gatewayHouse({
      config: { approvals: { reactions: true } },
      rewrite: (path, text) => path.endsWith("/reactions") ? text.replace(/^\[/, `[${odd},`) : text,
    });
    await house.ready();
    house.gateway().questions()?.ask({
      approval: ApprovalId.parse(`a-${ulid(1, systemRandom)}`),
      session: SessionId.parse(`chat-${ulid(1, systemRandom)}`),
      expiresUnixMs: Date.now() + 60_000,
      lines: ["What?", "Answer: !approve abc123 or !deny abc123"],
    });
    await house.until("asked", () => house.answers().length === 1);
    await house.until("posted", () => house.store().unsent() === 0);
    await house.stopGateway();
    house.rig.double.reactAs(house.rig.owner.id, house.answers()[0]?.id ?? "", "no_entry");
    house.startGateway();
    await house.until("answered", () => house.loop.answers.length === 1);
    house.write("and now");
    await house.until("heard", () => house.answers().some((one) => /: and now$/.test(one.message)));
    deepStrictEqual(house.gateway().health.problems(), []);
  }
});

Deno.test("one post that is larger than an answer may be is passed over, and the others are read", async () => {
  await heardAfter(
    ({ rig: { double, owner, dm } }) => {
      for (const message of ["a", "odd", "b"]) double.postAs(owner.id, { channel_id: dm, message });
    },
    (_path, text) => text.includes('"message":"odd"') ? " ".repeat(16_777_217) : text,
  );
});

Deno.test("a page of posts that is too large is read in smaller ones", async () => {
  await heardAfter(({ rig: { double, owner, dm } }) => {
    const props = { from_webhook: "true", filler: "x".repeat(790_000) };
    for (let i = 0; i < 25; i++) double.postAs(owner.id, { channel_id: dm, message: "big", props });
  });
});

Deno.test("a file that is larger than it says is declined, and its message goes on", async () => {
  await using house = await gatewayHouse({
    rewrite: (path, text) => path.endsWith("/info") ? text.replace(/"size":\d+/, '"size":3') : text,
  });
  await house.ready();
  const { double, owner, dm } = house.rig;
  const text = "x".repeat(300_000);
  const id = double.uploadAs(owner.id, { channelId: dm, name: "a.txt", type: "text/plain", text });
  double.postAs(owner.id, { channel_id: dm, message: "look", file_ids: [id] });
  await house.until("taken", () => house.loop.taken.some((one) => one.text === "look"));
});

Deno.test("a flood in the owner's name that is not the owner's skips nothing the owner wrote", async () => {
  await using house = await gatewayHouse();
  await house.ready();
  await house.stopGateway();
  const { double, owner, dm } = house.rig;
  house.write("before the flood");
  const flood = { channel_id: dm, message: "flood", props: { from_webhook: "true" } };
  for (let i = 0; i < 510; i++) double.postAs(owner.id, flood);
  house.startGateway();
  await house.until("heard", () => house.answers().some((one) => /before/.test(one.message)));
});

Deno.test("what is older than the first start is not told as missed", async () => {
  const longAgo = Date.now() - 30 * 86_400_000;
  await using house = await gatewayHouse({
    before: ({ double, owner, dm }) =>
      void double.postAs(owner.id, { channel_id: dm, message: "old" }),
    rewrite: (_path, text) =>
      text.replace(
        /"create_at":\d+(?=[^{}]*"message":"old")/g,
        `"create_at":${longAgo}`,
      ),
  });
  await house.ready();
  house.write("new");
  await house.until("answered", () => house.answers().some((one) => /new/.test(one.message)));
  deepStrictEqual(house.answers().filter((one) => /older/.test(one.message)), []);
});

Deno.test("postsOf() code with a run of backticks longer than a post is shown in posts that fit", () => {
  for (const run of [60, 300, 9_000, 40_000]) {
    const posts = postsOf(safeBlocks(`\`\`\`\n${"`".repeat(run)}${"y".repeat(300)}\n\`\`\``), 500);
    isTrue(posts.length < 5 + run / 100, `${posts.length} posts`);
    strictEqual(posts.every((post) => points(post) <= 500), true);
  }
});

Deno.test("postsOf() comes to an end over a million empty lines", () => {
  const text = `a${"\n".repeat(1_000_000)}b`;
  deepStrictEqual(postsOf([{ code: null, lines: text.split("\n") }], 2_000_000), [text]);
});
