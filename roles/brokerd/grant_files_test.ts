// Guards the owner's grant files on a real disk: what has a problem grants nothing and blocks its
// tool, and no link, root or nesting opens more than was written.
import { deepStrictEqual, match, ok, strictEqual } from "node:assert";
import { ok as good } from "../../shared/results/result.ts";
import { denoDisk } from "../../shared/disk/deno_disk.ts";
import { makeDisk } from "../../tests/doubles/broker_house.ts";
import { builtInGrants } from "./builtin_grants.ts";
import { loadTools } from "./catalog.ts";
import { grantsIn, type GrantsPlace, type LoadedGrants, loadGrants } from "./grant_files.ts";
import { forbiddenBy, realAsFarAsThere, resolvePaths } from "./real_paths.ts";

type Place = { readonly base: string; readonly root: string; readonly place: GrantsPlace };

async function withPlace(body: (place: Place) => void | Promise<void>): Promise<void> {
  const base = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "bx" }));
  for (const name of ["grants", "root", "root/notes", "root/sub", "home", "outside"]) {
    Deno.mkdirSync(`${base}/${name}`);
  }
  const place: GrantsPlace = {
    disk: denoDisk,
    folder: `${base}/grants`,
    roots: [`${base}/root`],
    forbidden: [`${base}/home`, `${base}/root/sub/kept`],
    secrets: new Set(["key"]),
    tools: loadTools(makeDisk({}), "/srv/image"),
    builtIn: builtInGrants("auto"),
    defaultLimits: { calls_per_turn: 5, calls_per_day: 50 },
  };
  try {
    await body({ base, root: `${base}/root`, place });
  } finally {
    Deno.removeSync(base, { recursive: true });
  }
}

const grant = (paths: string, more = "", tool = "read_file") =>
  `tool = "${tool}"\nmode = "auto"\npaths = ${paths}\nmax_taint = "private"\nresult_class = "private"\n${more}`;

function write(place: GrantsPlace, files: Record<string, string>): LoadedGrants {
  for (const [name, text] of Object.entries(files)) {
    Deno.writeTextFileSync(`${place.folder}/${name}`, text);
  }
  return loadGrants(place);
}

const problemsOf = (loaded: LoadedGrants, name: string) =>
  loaded.summaries.find((one) => one.name === name)?.problems ?? ["no such file"];

Deno.test("loadGrants() every mistake is named with its file and line, and blocks its tool", () =>
  withPlace(({ base, root, place }) => {
    const cases: [string, RegExp][] = [
      [grant(`["${root}"]`, "wirte = true\n"), /:6: unknown key "wirte".*"write"/],
      [grant(`["${root}"]`).replace('"auto"', '"yes"'), /mode/],
      [grant(`["${root}"]`).replace('max_taint = "private"\n', ""), /max_taint/],
      [grant("[]"), /paths/],
      [grant('[""]'), /paths/],
      [grant('["*"]'), /paths/],
      [grant('["docs"]'), /paths/],
      [grant(`["${root}/"]`), /paths/],
      [grant(`["${root}/../outside"]`), /paths/],
      [grant(`["${base}/outside"]`), /:3: path_not_rooted/],
      [grant('["/"]'), /paths/],
      [grant(`["${base}"]`), /path_forbidden/],
      [grant(`["${base}/home"]`), /path_forbidden/],
      [grant(`["${root}/sub"]`), /:3: path_forbidden/],
      [grant(`["${root}/sub/kept/deep"]`), /path_forbidden/],
      [grant(`["${root}/notes"]`, "expires = 2027-01-01\n"), /expires/],
      [grant(`["${root}/notes"]`, "expires = 2027-01-01T00:00:00\n"), /expires/],
      [grant(`["${root}/notes"]`, 'expires = "2027-01-01T00:00:00Z"\n'), /expires/],
      [grant(`["${root}/notes"]`, 'hosts = ["https://a.example:443"]\n'), /has no network/],
      [grant(`["${root}/notes"]`, 'hosts = ["*"]\n'), /hosts/],
      [grant(`["${root}/notes"]`, 'hosts = ["https://a.example"]\n'), /hosts/],
      [grant(`["${root}/notes"]`, 'hosts = ["https://127.1:443"]\n'), /hosts/],
      [grant(`["${root}/notes"]`, 'patterns = { nothing = ["a"] }\n'), /no argument nothing/],
      [grant(`["${root}/notes"]`, "patterns = {}\n"), /patterns/],
      [grant(`["${root}/notes"]`, "jobs = []\n"), /jobs/],
      [grant(`["${root}/notes"]`, 'commands = [["ls"]]\n'), /runs no commands/],
      [grant(`["${root}/notes"]`, 'secret = { name = "key", as = "env" }\n'), /secret/],
      [
        grant(`["${root}/notes"]`, 'secret = { name = "other", as = "stdin" }\n'),
        /no secret other/,
      ],
      [
        grant(`["${root}/notes"]`, 'secret = { name = "key", as = "header:X-Key" }\n'),
        /has no network/,
      ],
      [grant(`["${root}/notes"]`, `image = "${"f".repeat(64)}"\n`), /No image f{64}/],
      [grant(`["${root}/notes"]`, 'write = true\nwhen_untrusted = "same"\n'), /"same"/],
      [grant(`["${root}/notes"]`, "[limits]\npids = 100000\n"), /pids/],
      [grant(`["${root}/notes"]`, "", "no_such_tool"), /no tool no_such_tool/],
      [grant(`["${root}/notes"]`, "", "clock"), /policy of clock is built in/],
      [grant(`["${root}/notes"]`, "", "read_result"), /built in/],
      ['tool = "read_file"\nmode = "deny"\nmax_taint = "secret"\n', /max_taint/],
      [`tool = "http_fetch"\nmode = "deny"\npaths = ["${root}"]\n`, /path_forbidden/],
      [`tool = "http_fetch"\nmode = "deny"\npaths = ["${root}/notes"]\n`, /takes no paths/],
      ['tool = "read_file"\nmode = "deny"\nexpires = 2027-01-01T00:00:00Z\n', /expires/],
    ];
    for (const [text, problem] of cases) {
      const loaded = write(place, { "a.toml": text, "good.toml": grant(`["${root}/notes"]`) });
      const said = problemsOf(loaded, "a.toml");
      ok(said.length > 0, text);
      match(said[0] ?? "", problem, text);
      match(said[0] ?? "", /^a\.toml:\d+/, text);
      const tool = /tool = "([a-z_]+)"/.exec(text)?.[1] ?? "";
      ok(loaded.set.blockedTools.has(tool) && !loaded.set.isAllBlocked, text);
      ok(!loaded.set.grants.some((one) => one.name === "a.toml"));
      ok(loaded.problems > 0);
    }
  }));

Deno.test("loadGrants() a file whose tool cannot be read blocks every file-granted tool", () =>
  withPlace(({ root, place }) => {
    for (
      const text of [
        "",
        "tool = ",
        'mode = "auto"',
        "tool = 5",
        'tool = "Bad Name"',
        "tool = 'a'\ntool = 'b'",
      ]
    ) {
      const loaded = write(place, { "a.toml": text, "good.toml": grant(`["${root}/notes"]`) });
      ok(loaded.set.isAllBlocked, text);
    }
    Deno.writeFileSync(`${place.folder}/a.toml`, new Uint8Array([0xff, 0xfe]));
    ok(loadGrants(place).set.isAllBlocked, "not UTF-8");
    Deno.writeTextFileSync(`${place.folder}/a.toml`, "#".repeat(70_000));
    ok(loadGrants(place).set.isAllBlocked, "too long");
    Deno.removeSync(`${place.folder}/a.toml`);
    Deno.mkdirSync(`${place.folder}/a.toml`);
    ok(loadGrants(place).set.isAllBlocked, "a folder");
    Deno.removeSync(`${place.folder}/a.toml`);
    ok(!loadGrants(place).set.isAllBlocked);
    ok(loadGrants({ ...place, folder: `${place.folder}/none` }).set.isAllBlocked, "no folder");
  }));

Deno.test("loadGrants() a path inside or around one that another grant may write is refused for both", () =>
  withPlace(({ root, place }) => {
    const loaded = write(place, {
      "w.toml": grant(`["${root}/notes"]`, "write = true\n", "write_file"),
      "r.toml": grant(`["${root}/notes/deep"]`),
    });
    match(problemsOf(loaded, "w.toml")[0] ?? "", /grant r\.toml/);
    match(problemsOf(loaded, "r.toml")[0] ?? "", /grant w\.toml/);
    // One place on a disk that keeps names without their case.
    const odd = write(place, { "r.toml": grant(`["${root}/NOTES/deep"]`) });
    match(problemsOf(odd, "r.toml")[0] ?? "", /grant w\.toml/);
    const same = write(place, { "r.toml": grant(`["${root}/notes"]`) });
    deepStrictEqual([problemsOf(same, "w.toml"), problemsOf(same, "r.toml")], [[], []]);
    const apart = write(place, {
      "r.toml": 'tool = "read_file"\nmode = "deny"\npaths = ["' + root + '/notes/deep"]\n',
    });
    deepStrictEqual(problemsOf(apart, "r.toml"), [], "a deny opens nothing");
  }));

Deno.test("loadGrants() a granted link is what it leads to, and that must lie in a root", () =>
  withPlace(({ base, root, place }) => {
    Deno.symlinkSync(`${base}/outside`, `${root}/out`);
    Deno.symlinkSync(`${base}/home`, `${root}/kept`);
    Deno.symlinkSync(`${root}/notes`, `${root}/in`);
    match(
      problemsOf(write(place, { "a.toml": grant(`["${root}/out"]`) }), "a.toml")[0] ?? "",
      /not_rooted/,
    );
    match(
      problemsOf(write(place, { "a.toml": grant(`["${root}/kept"]`) }), "a.toml")[0] ?? "",
      /forbidden/,
    );
    const inside = write(place, { "a.toml": grant(`["${root}/in"]`) });
    deepStrictEqual(inside.set.grants.at(-1)?.real_paths, [`${root}/notes`]);
  }));

Deno.test("grantsIn() a changed, new or removed file counts at once, and only news are told", () =>
  withPlace(({ root, place }) => {
    const told: LoadedGrants[] = [];
    const grants = grantsIn(place, (loaded) => good(told.push(loaded)));
    const own = () => grants.current().set.grants.length - place.builtIn.length;
    strictEqual(own(), 0);
    Deno.writeTextFileSync(`${place.folder}/a.toml`, grant(`["${root}/notes"]`));
    strictEqual(own(), 1);
    strictEqual(own(), 1);
    Deno.writeTextFileSync(`${place.folder}/a.toml`, "tool =");
    ok(grants.current().set.isAllBlocked);
    Deno.removeSync(`${place.folder}/a.toml`);
    strictEqual(own(), 0);
    strictEqual(told.length, 4);
    Deno.writeTextFileSync(`${place.folder}/b.toml~`, "tool =");
    ok(!grants.current().set.isAllBlocked, "only .toml files count");
  }));

Deno.test("grantsIn() a link that a grant or a deny names is followed anew before each decision", () =>
  withPlace(({ root, place }) => {
    Deno.symlinkSync(`${root}/notes`, `${root}/current`);
    const deny =
      `tool = "read_file"\nmode = "deny"\npaths = ["${root}/current", "${root}/later"]\n`;
    write(place, { "a.toml": grant(`["${root}/current"]`), "b.toml": deny });
    const grants = grantsIn(place, () => good(null));
    const paths = () => grants.current().set.grants.slice(-2).map((one) => one.real_paths);
    deepStrictEqual(paths(), [[`${root}/notes`], [`${root}/notes`, `${root}/later`]]);
    Deno.removeSync(`${root}/current`);
    Deno.symlinkSync(`${root}/sub`, `${root}/current`);
    Deno.symlinkSync(`${root}/notes`, `${root}/later`);
    ok(grants.current().summaries.some((one) => /path_forbidden/.test(one.problems.join())));
    Deno.removeSync(`${root}/current`);
    deepStrictEqual(paths(), [[`${root}/current`], [`${root}/current`, `${root}/notes`]]);
  }));

Deno.test("resolvePaths() links, loops, odd names and new files: the real place or a refusal", () =>
  withPlace(({ base, root, place }) => {
    Deno.writeTextFileSync(`${root}/notes/a.txt`, "x");
    Deno.symlinkSync(`${root}/notes/a.txt`, `${root}/a`);
    Deno.symlinkSync(`${base}/outside`, `${root}/out`);
    Deno.symlinkSync(`${root}/loop`, `${root}/loop`);
    Deno.symlinkSync("/nowhere", `${root}/dangling`);
    Deno.symlinkSync("/proc/self/root", `${root}/proc`);
    const read = place.tools.find("read_file")?.manifest;
    const put = place.tools.find("write_file")?.manifest;
    ok(read !== undefined && put !== undefined);
    const target = (path: string) => {
      const found = resolvePaths(denoDisk, read, { path });
      return found.ok ? found.value[0]?.target : found.code;
    };
    strictEqual(target(`${root}/a`), `${root}/notes/a.txt`);
    strictEqual(target(`${root}/out/x`), `${base}/outside/x`);
    strictEqual(target(`${root}/none/deep`), `${root}/none/deep`);
    for (
      const odd of [
        "a",
        "",
        `${root}/../x`,
        `${root}/./a`,
        `${root}//a`,
        `${root}/a/`,
        "/a\0b",
        "/a\nb",
        "/a\ufffd",
      ]
    ) {
      strictEqual(target(odd), "request-invalid", JSON.stringify(odd));
    }
    Deno.writeTextFileSync(`${base}/outside/secret`, "x");
    Deno.linkSync(`${base}/outside/secret`, `${root}/hard`);
    for (const name of ["loop", "dangling", "hard"]) {
      const found = resolvePaths(denoDisk, read, { path: `${root}/${name}` });
      ok(found.ok && found.value[0]?.problem !== null, name);
    }
    ok(!target(`${root}/proc/etc/passwd`)?.startsWith(root), "a link through /proc stays outside");
    const fresh = resolvePaths(denoDisk, put, { path: `${root}/out/new.txt`, content: "" });
    ok(fresh.ok);
    strictEqual(fresh.value[0]?.opened, `${base}/outside`);
    strictEqual(realAsFarAsThere(denoDisk, `${root}/out/x/y`), `${base}/outside/x/y`);
  }));

Deno.test("forbiddenBy() what contains, equals or lies in a kept place is refused", () => {
  const kept = ["/home/bx", "/usr/bin/deno"];
  for (const path of ["/", "/home", "/home/bx", "/home/bx/audit", "/usr/bin", "/usr/bin/deno"]) {
    ok(forbiddenBy(path, kept) !== null, path);
    // One place on a disk that keeps names without their case.
    ok(forbiddenBy(path.toUpperCase(), kept) !== null, path);
  }
  for (const path of ["/home/bxx", "/home/b", "/srv", "/usr/bin/denox"]) {
    strictEqual(forbiddenBy(path, kept), null, path);
  }
});
