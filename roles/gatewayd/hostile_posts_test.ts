// Guards: no post of anybody stops the channel or the role: not one that is nested deep, has many keys
// or is huge, not one whose fields are of another kind, not a file that is larger than it says; and what
// others write never takes the place of what the owner wrote.
import { deepStrictEqual, ok as isTrue, strictEqual } from "node:assert";
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
