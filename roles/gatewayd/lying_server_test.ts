// Guards: a server that lies about who, where or how much is told of by name, and costs no more than what
// it lies about: no other channel is taken for the owner's, no other account for the bot's.
import { match, strictEqual } from "node:assert";
import { gatewayHouse } from "../../tests/doubles/gatewayd.ts";

const LIES: readonly (readonly [string, RegExp, string, RegExp])[] = [
  ["an open channel for the direct one", /\/channels\/direct$/, '"type":"O"', /another channel/],
  ["a stranger's direct channel", /\/channels\/direct$/, `"name":"${"z".repeat(26)}"`, /another/],
  ["a refusal of the direct channel", /\/channels\/direct$/, "", /direct channel with the owner/],
  ["a person's account for the bot's", /\/users\/me$/, '"is_bot":false', /not a bot/],
  ["a deactivated account", /\/users\/me$/, '"delete_at":5', /deactivated/],
  ["an administrator's account", /\/users\/me$/, '"roles":"x system_admin"', /administrator/],
];

for (const [what, path, lie, told] of LIES) {
  Deno.test(`a server that gives ${what} is told of, and nothing is heard or said`, async () => {
    const [, key = ""] = /^"(\w+)":/.exec(lie) ?? [];
    await using house = await gatewayHouse({
      isSilent: true,
      rewrite: (url, text) => {
        if (!path.test(new URL(url).pathname)) return text;
        return lie === "" ? "{}" : text.replace(new RegExp(`"${key}":(?:"[^"]*"|[^,}]+)`), lie);
      },
    });
    const details = () => house.gateway().health.problems().map((one) => one.detail).join();
    await house.until("told", () => told.test(details()));
    house.write("hello?");
    house.write("!stop");
    strictEqual(house.gateway().notice("n", "text"), false);
    strictEqual(house.loop.taken.length + house.loop.stops.length + house.answers().length, 0);
  });
}

Deno.test("more than is ever read back is told at once, and what is new is answered", async () => {
  await using house = await gatewayHouse({
    // Every page is full, and its posts are as new as the newest: no page is the last one.
    rewrite: (url, text) => {
      if (!/\/posts$/.test(new URL(url).pathname) || !text.includes('"order"')) return text;
      const { order, posts } = JSON.parse(text);
      const size = Number(new URL(url).searchParams.get("per_page"));
      const more = Array.from({ length: size }, () => crypto.randomUUID());
      return JSON.stringify({ order: [...order, ...more].slice(0, size), posts });
    },
  });
  await house.ready();
  await house.until(
    "told",
    () => house.answers().some((one) => /More was written/.test(one.message)),
  );
  house.write("and now");
  await house.until("heard", () => house.answers().some((one) => /: and now$/.test(one.message)));
  match(house.log.join(""), /cannot be read is passed over/);
});
