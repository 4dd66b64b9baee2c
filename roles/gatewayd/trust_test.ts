// Guards: a post is the owner's own words only when every mark says so; one mark that is wrong, missing
// or malformed is enough, and no combination of wrong marks makes a right one.
import { strictEqual } from "node:assert";
import fc from "fast-check";
import { Post } from "./mattermost.ts";
import { isOwners, type Place } from "./trust.ts";

const id = (letter: string) => letter.repeat(26);
const PLACE: Place = { owner: id("o"), self: id("s"), channels: [id("d"), id("c")] };
const GOOD = {
  id: id("p"),
  create_at: 1,
  update_at: 1,
  edit_at: 0,
  delete_at: 0,
  user_id: PLACE.owner,
  channel_id: id("d"),
  root_id: "",
  original_id: "",
  message: "!stop",
  type: "",
  props: {},
};

/** Each alone makes the post somebody else's. */
const SPOILS: readonly Record<string, unknown>[] = [
  { user_id: id("x") },
  { user_id: PLACE.self },
  { user_id: "" },
  { user_id: `${PLACE.owner} ` },
  { channel_id: id("x") },
  { type: "system_add_to_channel" },
  { type: "me" },
  { type: "custom_owner" },
  { type: null },
  { type: 0 },
  { delete_at: 1 },
  { delete_at: "1" },
  { delete_at: 1.5 },
  { original_id: id("p") },
  { original_id: null },
  { original_id: undefined },
  { remote_id: id("r") },
  { remote_id: 7 },
  { props: "none" },
  ...[
    "from_webhook",
    "from_bot",
    "from_plugin",
    "from_oauth_app",
    "override_username",
    "override_icon_url",
    "override_icon_emoji",
    "webhook_display_name",
  ].flatMap((key) =>
    ["true", "", null, false, "false", 0].map((value) => ({ props: { [key]: value } }))
  ),
];

/** None of them changes whose words they are. */
const HARMLESS: readonly Record<string, unknown>[] = [
  { channel_id: id("c") },
  { props: null },
  { props: undefined },
  { props: { anything: "else", disable_group_highlight: true } },
  { remote_id: "" },
  { remote_id: null },
  { edit_at: 5 },
  { is_pinned: true },
  { root_id: id("q") },
  { some_new_field: { deep: [1] } },
  { metadata: { files: null } },
  { message: "" },
];

const judge = (marks: readonly Record<string, unknown>[]): boolean => {
  const parsed = Post.safeParse(JSON.parse(JSON.stringify(Object.assign({}, GOOD, ...marks))));
  return parsed.success && isOwners(parsed.data, PLACE);
};

Deno.test("isOwners() each wrong, missing or malformed mark is enough", () => {
  for (const spoil of SPOILS) strictEqual(judge([spoil]), false, JSON.stringify(spoil));
  for (const mark of HARMLESS) strictEqual(judge([mark]), true, JSON.stringify(mark));
  strictEqual(isOwners(Post.parse(GOOD), { ...PLACE, owner: PLACE.self }), false);
});

Deno.test("isOwners() no combination of marks makes a right one of a wrong one", () => {
  const harmless = fc.subarray([...HARMLESS]);
  fc.assert(
    fc.property(fc.constantFrom(...SPOILS), harmless, harmless, (spoil, before, after) => {
      const kept = after.filter((mark) => Object.keys(mark).every((key) => !(key in spoil)));
      strictEqual(judge([...before, spoil, ...kept]), false);
      strictEqual(judge(before), true);
    }),
    { numRuns: 500 },
  );
});
