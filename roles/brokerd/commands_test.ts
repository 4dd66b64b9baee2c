// Guards grants of run_command: an image of its own by digest, argv word by word, one program a call.
import { deepStrictEqual, match, ok as isTrue, strictEqual } from "node:assert";
import { catalogBytes } from "../../shared/tool/catalog.ts";
import { sha256Hex } from "../../shared/tool/digest.ts";
import type { Manifest } from "../../shared/tool/manifest.ts";
import { encodeCanonical } from "../../shared/wire/codec.ts";
import { settled } from "../../tests/doubles/manual_clock.ts";
import {
  IMAGE,
  makeDisk,
  newCall,
  newTurn,
  openChat,
  ROOT,
  RUN_COMMAND as runCommand,
  testHouse,
} from "../../tests/doubles/broker_house.ts";

const OWN = "d".repeat(64);
const SECOND = "9".repeat(64);
const OTHER = "e".repeat(64);

function withImages(grants: Record<string, string>) {
  const disk = makeDisk({ grants });
  const plant = (folder: string, digest: string, tools: readonly Manifest[]) => {
    const catalog = catalogBytes(tools);
    const names = {
      v: 1,
      digest,
      id: "b".repeat(64),
      catalog: sha256Hex(catalog),
      files: "c".repeat(64),
      built_from: { deno: "2.9.6", libraries: {} },
    };
    disk.plant(`${folder}/image.json`, encodeCanonical(names));
    disk.plant(`${folder}/catalog.json`, catalog);
  };
  plant("/srv/image", IMAGE, [runCommand]);
  disk.mkdir("/srv/own");
  plant("/srv/own", OWN, [runCommand]);
  disk.mkdir("/srv/second");
  plant("/srv/second", SECOND, [runCommand]);
  plant("/srv/other", OTHER, [{ ...runCommand, description: "Another tool of the same name" }]);
  const config = { runtime: { images: ["/srv/own", "/srv/second", "/srv/other", "/srv/none"] } };
  return testHouse({ config }, disk);
}

const grant = (image: string, more = "") =>
  `tool = "run_command"\nmode = "auto"\n${image === "" ? "" : `image = "${image}"\n`}` +
  `commands = [["/bin/git", "log", "*"], ["/bin/deno", "*"], ["git"], ["/bin/../bin/git"]]\n` +
  `max_taint = "private"\nresult_class = "private"\nuntrusted = false\n${more}`;

Deno.test("run_command a grant without an image that holds the very tool does not count", async () => {
  for (const image of ["", IMAGE, OTHER, "f".repeat(64)]) {
    const test = withImages({ "run.toml": grant(image) });
    const house = test.open();
    const found = house.grants.current().summaries.find((one) => one.name === "run.toml");
    match(found?.problems.join() ?? "", /image/, image);
    await house.close();
  }
});

Deno.test("run_command argv is matched word by word, and only its program may be started", async () => {
  const test = withImages({
    "run.toml": grant(OWN, `paths = ["${ROOT}"]\nwrite = true\n`),
  });
  const house = test.open();
  const session = openChat(house);
  const ask = async (args: object) => {
    const call = newCall();
    const asked = house.calls.request({
      session,
      turn: newTurn(),
      call,
      tool: "run_command",
      args: JSON.stringify(args),
    });
    isTrue(asked.ok);
    for (let i = 0; i < 500 && !house.calls.isIdle(); i++) {
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    const ended = house.calls.fetch(session, call);
    return ended.ok && ended.value.is === "ended" ? ended.value.result.code : "?";
  };
  const denied = [
    ["/bin/git", "push", "x"],
    ["/bin/git", "log"],
    ["/bin/git", "log", "a", "b"],
    ["/bin/git log x"],
    ["git", "log", "x"],
  ];
  for (const argv of denied) strictEqual(await ask({ argv }), "pattern_mismatch", argv.join());
  for (const argv of [["/bin/deno", "x"], ["git"], ["/bin/../bin/git"]]) {
    strictEqual(await ask({ argv }), "arguments_invalid", argv.join());
  }
  strictEqual(test.fake.runs.length, 0);
  strictEqual(await ask({ argv: ["/bin/git", "log", "$(x) ; y"], workspace: ROOT }), null);
  const [run] = test.fake.runs;
  strictEqual(run?.image, OWN);
  deepStrictEqual(run?.mounts, [{ hostPath: ROOT, write: true }]);
  deepStrictEqual(run?.flags, [
    "--allow-run=/bin/git",
    "--allow-read=/grant/0,/tmp",
    "--allow-write=/grant/0,/tmp",
  ]);
  match(run?.argsJson ?? "", /"workspace":"\/grant\/0"/);
  await house.close();
});

Deno.test("run_command grants of different images for one command have it run in none, least of all the toolkit's", async () => {
  const test = withImages({ "a.toml": grant(OWN), "b.toml": grant(SECOND) });
  const house = test.open();
  const one = { session: openChat(house), turn: newTurn(), call: newCall() };
  const args = JSON.stringify({ argv: ["/bin/git", "log", "x"] });
  const asked = house.calls.request({ ...one, tool: "run_command", args });
  await settled();
  deepStrictEqual(test.fake.runs, []);
  isTrue(asked.ok);
  const ended = house.calls.fetch(one.session, one.call);
  strictEqual(ended.ok && ended.value.is === "ended" && ended.value.result.code, "grants_invalid");
  await house.close();
});
