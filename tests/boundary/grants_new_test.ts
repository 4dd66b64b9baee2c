// Guards: what `bxctl grants new` prints is a grant that brokerd reads, no wider than it was told.
import { deepStrictEqual, ok, strictEqual } from "node:assert";
import { parse } from "smol-toml";
import { GrantFile } from "../../roles/brokerd/grant_schema.ts";
import { ownerRig } from "../doubles/house/owner_rig.ts";

Deno.test("grants new prints nothing for words that are no grant", async () => {
  await using rig = await ownerRig();
  for (
    const words of [
      [],
      ["../x"],
      ["read_file", "extra"],
      ["read_file", "--mode", "always"],
      ["read_file", "--class", "none"],
      ["read_file", "--path", "/a\u202eb"],
      ["read_file", "--path", "/a\nmode = 'auto'"],
    ]
  ) {
    const ran = await rig.run(["grants", "new", ...words]);
    strictEqual(ran.status, 2, words.join(" "));
    strictEqual(ran.out, "");
  }
});

Deno.test("grants new prints a file that brokerd reads, and asks unless told otherwise", async () => {
  await using rig = await ownerRig();
  const drafted = async (...words: string[]) => {
    const ran = await rig.run(["grants", "new", ...words]);
    strictEqual(ran.status, 0, ran.err);
    return GrantFile.parse(parse(ran.out));
  };
  const plain = await drafted("read_file", "--path", '/srv/my "docs"');
  ok(plain.mode === "ask" && !plain.write && plain.untrusted && plain.when_untrusted === "ask");
  deepStrictEqual(plain.paths, ['/srv/my "docs"']);
  const wide = await drafted(
    ...["http_fetch", "--mode", "auto", "--host", "https://a.example:443", "--class", "public"],
  );
  ok(wide.mode === "auto" && wide.max_taint === "public" && wide.hosts.length === 1);
  ok((await drafted("write_file", "--path", "/srv/a", "--write")).mode === "ask");
  strictEqual((await drafted("write_file", "--mode", "deny", "--path", "/srv/a")).mode, "deny");
});
