// Guards: the double has everything that a client relies on or has to survive, and nothing of it is there
// for show: each route, knob, fault, drop, operation and event is used by a test, and each rule of the
// client has a test of its number.
import { deepStrictEqual, ok as assert } from "node:assert";
import { createPendingPosts } from "./pending_posts.ts";
import { createOperations } from "./operations.ts";
import { AT_REST } from "./knobs.ts";
import { allRoutes } from "./routes.ts";
import { openStore } from "./store.ts";
import { createClock, type World } from "./world.ts";

const ROOT = new URL("../../../", import.meta.url);

const ROUTES = [
  "GET /users/:user",
  "GET /users/username/:name",
  "GET /config/client",
  "GET /system/ping",
  "POST /users/ids",
  "POST /channels/direct",
  "POST /channels/members/:user/view",
  "GET /channels/:channel",
  "GET /channels/:channel/members/:user",
  "GET /users/:user/channels",
  "GET /users/:user/teams",
  "POST /posts",
  "POST /posts/ids",
  "POST /users/:user/typing",
  "GET /posts/:post",
  "GET /posts/:post/thread",
  "GET /channels/:channel/posts",
  "PUT /posts/:post",
  "PUT /posts/:post/patch",
  "DELETE /posts/:post",
  "POST /reactions",
  "GET /posts/:post/reactions",
  "DELETE /users/:user/posts/:post/reactions/:name",
  "POST /files",
  "GET /files/:file",
  "GET /files/:file/info",
];
const EVENTS = [
  "hello",
  "posted",
  "post_edited",
  "post_deleted",
  "reaction_added",
  "reaction_removed",
  "typing",
  "direct_added",
  "ephemeral_message",
  "user_added",
  "user_removed",
  "user_updated",
  "channel_deleted",
  "channel_restored",
  "channel_converted",
  "config_changed",
];
const FAULTS = [
  "refuse",
  "limited",
  "proxy",
  "empty",
  "redirect",
  "slow",
  "truncated",
  "wrong-type",
  "lost",
];
const DROPS = ["fin", "rst", "empty-close", "half-open", "deaf", "oversize-close"];
const FOLDERS = ["tests/doubles/mattermost", "roles/gatewayd", "tests/verify_device"];
const RULES = 29;

/** A world that nobody asks anything of: only its tables are looked at. */
function emptyWorld(): World {
  const store = openStore(null);
  const clock = createClock(store, () => AT_REST);
  return { store, knobs: () => AT_REST, ...clock, emit: () => {}, scaled: (ms) => ms };
}

async function testsOf(folders: readonly string[]): Promise<string> {
  const texts: string[] = [];
  for (const folder of folders) {
    for await (const entry of Deno.readDir(new URL(`${folder}/`, ROOT))) {
      const isOwn = entry.name === "complete_test.ts";
      if (!entry.name.endsWith("_test.ts") || isOwn) continue;
      texts.push(await Deno.readTextFile(new URL(`${folder}/${entry.name}`, ROOT)));
    }
  }
  return texts.join("\n");
}

const unused = (names: readonly string[], text: string, shape: (name: string) => RegExp) =>
  names.filter((name) => !shape(name).test(text));

Deno.test("allRoutes() is every route that a client of the channel may ask", () => {
  const world = emptyWorld();
  const routes = allRoutes(world, createPendingPosts(world));
  const found = routes.map(({ method, path }) => `${method} ${path}`);
  deepStrictEqual(found.toSorted(), ROUTES.toSorted());
});

Deno.test("every knob, fault, drop, operation and event of the double is used by a test", async () => {
  const text = await testsOf(FOLDERS);
  deepStrictEqual(unused(Object.keys(AT_REST), text, (name) => new RegExp(`\\b${name}:`)), []);
  deepStrictEqual(unused([...FAULTS, ...DROPS], text, (name) => new RegExp(`"${name}"`)), []);
  deepStrictEqual(unused(EVENTS, text, (name) => new RegExp(`"${name}"`)), []);
  const world = emptyWorld();
  const parts = { world, setKnobs: () => {}, cutRequests: () => {}, forgetPending: () => {} };
  const operations = Object.keys(
    createOperations(Object({ ...parts, hub: {}, record: {}, faults: {} })),
  );
  assert(operations.length > 30);
  deepStrictEqual(unused(operations, text, (name) => new RegExp(`\\b${name}\\(`)), []);
});

Deno.test("each rule of a client of the server has a test that is named after it", async () => {
  const text = await testsOf(["roles/gatewayd"]);
  const rules = Array.from({ length: RULES }, (_, i) => `${i + 1}`);
  const named = (rule: string) =>
    new RegExp(`Deno\\.test\\(\\s*"(?:rule \\d+ and )?rule ${rule}\\b`);
  const both = (rule: string) => new RegExp(`Deno\\.test\\(\\s*"rule ${rule} and rule \\d+`);
  deepStrictEqual(rules.filter((rule) => !named(rule).test(text) && !both(rule).test(text)), []);
});

Deno.test("whatever runs gatewayd against the double judges every post that was sent", async () => {
  const careless: string[] = [];
  for await (const path of sourcesBelow("tests")) {
    const text = await Deno.readTextFile(new URL(path, ROOT));
    const isRunning = /mattermost\/rig\.ts"/.test(text) && /gatewayd/.test(text);
    if (isRunning && !/(?:assertSafePosts|unsafePosts)\(/.test(text)) careless.push(path);
  }
  // Its posts are judged by the campaign that it is made for.
  deepStrictEqual(careless, ["tests/chaos/channel_house.ts"]);
  const campaign = await Deno.readTextFile(new URL("tests/chaos/channel_campaign.ts", ROOT));
  assert(/unsafePosts\(house\.sent\(\)/.test(campaign));
});

async function* sourcesBelow(folder: string): AsyncGenerator<string> {
  for await (const entry of Deno.readDir(new URL(`${folder}/`, ROOT))) {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory) yield* sourcesBelow(path);
    else if (entry.name.endsWith(".ts") && entry.name !== "complete_test.ts") yield path;
  }
}
