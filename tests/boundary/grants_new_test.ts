// Guards: what `bxctl grants new` writes is a grant that brokerd reads, no wider than it was told, and
// it counts only after the owner has had it before them.
import { deepStrictEqual, ok, strictEqual } from "node:assert";
import { parse } from "smol-toml";
import { GrantFile } from "../../roles/brokerd/grant_schema.ts";
import { fakeTerminal, ownerRig } from "../doubles/house/owner_rig.ts";
import { NO_PTY, onTerminal } from "../doubles/pty.ts";

const SOURCE = decodeURIComponent(new URL("../../", import.meta.url).pathname);

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

/** Runs `grants new` in-process on a terminal where `lines` are typed. */
async function guided(words: readonly string[], lines: readonly (string | null)[]) {
  await using rig = await ownerRig();
  const terminal = fakeTerminal(true);
  for (const line of lines) terminal.type(line);
  return await rig.run(["grants", "new", ...words], terminal);
}

Deno.test("grants new asks until an answer will do, and an owner who leaves gets nothing", async () => {
  for (let left = 0; left < 6; left++) {
    const answers = ["read_file", "ask", "/srv/a", "", "", "no"].slice(0, left);
    const ran = await guided([], [...answers, null]);
    strictEqual([ran.status, ran.out].join(), "2,", `left at question ${left}`);
  }
  const odd = [
    "../x",
    "",
    "read_file",
    "always",
    "auto",
    "/a\u202eb",
    "/srv/a",
    "",
    "",
    "maybe",
    "",
  ];
  const ran = await guided([], [...odd, "none", "public"]);
  strictEqual(ran.status, 0, ran.err);
  const grant = GrantFile.parse(parse(ran.out));
  ok(grant.mode === "auto" && !grant.write && grant.max_taint === "public");
  deepStrictEqual([grant.tool, grant.paths, grant.hosts], ["read_file", ["/srv/a"], []]);
  ok(ran.err.includes("/a\\u{202e}b will not do"), ran.err);
});

Deno.test("grants new asks for what the flags left out alone, and an empty answer is the strict one", async () => {
  const strict = await guided(["write_file", "--path", "/srv/a"], ["", "", "", ""]);
  const grant = GrantFile.parse(parse(strict.out));
  ok(grant.mode === "ask" && !grant.write && grant.max_taint === "private" && grant.untrusted);
  const given = ["http_fetch", "--mode", "auto", "--host", "https://a.example:443"];
  const rest = await guided([...given, "--class", "public", "--path", "/srv/a", "--write"], []);
  ok(GrantFile.parse(parse(rest.out)).mode === "auto", rest.err);
});

const why = NO_PTY === null ? "" : ` (skipped: ${NO_PTY})`;
Deno.test({
  name:
    `grants new on a terminal writes a draft that does not count until the owner renames it${why}`,
  ignore: NO_PTY !== null,
  async fn() {
    const home = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "bx" }));
    try {
      for (const folder of ["grants", "config", "run"]) {
        Deno.mkdirSync(`${home}/${folder}`, { mode: 0o700 });
      }
      const line = `/bin/sh ${SOURCE}launch/serve bxctl grants new; echo status $?`;
      const env = { BOXMAKER_HOME: home, BOXMAKER_DENO: Deno.execPath() };
      const first = onTerminal(line, env);
      for (
        const [asked, answer] of [
          [/Which tool/, "read_file"],
          [/\[ask\]: $/, ""],
          [/may open; empty to go on: $/, "/srv/docs"],
          [/may open; empty to go on: [\s\S]*may open; empty to go on: $/, ""],
          [/may reach[^\n]*: $/, ""],
          [/yes or no \[no\]: $/, ""],
          [/\[private\]: $/, ""],
        ] as const
      ) {
        await first.see(asked);
        await first.type(`${answer}\n`);
      }
      await first.see(/status 0/);
      const screen = await first.end();
      ok(screen.includes('paths = ["/srv/docs"]'), "the file is not shown");
      ok(screen.includes("does not count yet") && screen.includes(`${home}/grants/new.draft`));
      deepStrictEqual([...Deno.readDirSync(`${home}/grants`)].map((one) => one.name), [
        "new.draft",
      ]);
      const draft = Deno.readTextFileSync(`${home}/grants/new.draft`);
      strictEqual(GrantFile.parse(parse(draft)).tool, "read_file");
      strictEqual((Deno.statSync(`${home}/grants/new.draft`).mode ?? 0) & 0o777, 0o600);
      // One that nobody has read yet is not written over.
      const again = onTerminal(line, env);
      await again.see(/is there already[\s\S]*status 2/);
      await again.end();
      strictEqual(Deno.readTextFileSync(`${home}/grants/new.draft`), draft);
    } finally {
      Deno.removeSync(home, { recursive: true });
    }
  },
});
