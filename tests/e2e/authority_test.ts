// Guards brokerd's word over deaths and damage, in a whole house: an effect whose end nobody saw is
// unknown and not repeated, and a damaged log is named, declared and gone on from.
import { deepStrictEqual, match, ok as isTrue, strictEqual } from "node:assert";
import { podman } from "../doubles/container_house.ts";
import { e2eHouse, houseTest } from "../doubles/e2e_house.ts";
import { startOrigin } from "../doubles/egress/egress_rig.ts";

houseTest(
  "brokerd killed in the middle of a call leaves no container and repeats nothing",
  async () => {
    const came = Promise.withResolvers<void>();
    const never = Promise.withResolvers<Response>();
    await using origin = startOrigin(() => {
      came.resolve();
      return never.promise;
    });
    await using house = await e2eHouse({
      extra: { egressd: `[deny]\nopen = ["127.0.0.0/8"]\n` },
      grants: () => ({
        "fetch.toml": `tool = "http_fetch"\nmode = "auto"\nmax_taint = "private"\n` +
          `result_class = "public"\nhosts = ["http://127.0.0.1:${origin.port}"]\n`,
      }),
    });
    const asked = house.chat(`fetch http://127.0.0.1:${origin.port}/`);
    await came.promise;
    const before = await podman(["ps", "-q", "--no-trunc", "--filter", "label=boxmaker.owner"]);
    const [container = ""] = before.stdout.split("\n");
    isTrue(container !== "", "no container runs");
    await house.kill("brokerd");
    const reply = await asked;
    const results = (await house.records(reply.session)).filter((one) =>
      one.kind === "tool_result"
    );
    deepStrictEqual(results.map((one) => one.outcome), ["unknown"]);
    for (let i = 0; (await podman(["container", "exists", container])).code === 0; i++) {
      isTrue(i < 600, "the container outlived brokerd");
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    strictEqual(origin.seen.length, 1, "it was done again");
    never.resolve(new Response("late"));
    const { records } = await house.json("audit", "tail", "-n", "200");
    const kinds = (Array.isArray(records) ? records : []).map((one) => Object(one))
      .filter((one) => one.kind === "start" || one.kind === "result");
    deepStrictEqual(kinds.map((one) => one.outcome ?? one.kind), ["start", "unknown"]);
    strictEqual((await house.bx("audit", "verify")).status, 0);
  },
);

houseTest(
  "a damaged audit log is named while brokerd refuses, declared lost, and gone on from",
  async () => {
    await using house = await e2eHouse();
    const first = await house.chat(`list ${house.papers}`);
    match(first.text, /plan\.txt/);
    const folder = `${house.house.home}/audit`;
    const [name] = [...Deno.readDirSync(folder)].map((one) => one.name).filter((one) =>
      one.endsWith(".jsonl")
    );
    const path = `${folder}/${name}`;
    const damaged = Deno.readTextFileSync(path).replace('"verdict":"auto"', '"verdict":"deny"');
    Deno.writeTextFileSync(path, damaged);
    const pid = house.house.supervisor.pids().get("brokerd");
    isTrue(pid !== undefined);
    Deno.kill(pid, "SIGKILL");
    let verified = await house.bx("audit", "verify");
    for (let i = 0; i < 100 && !/edit/.test(verified.out); i++) {
      await new Promise((resolve) => setTimeout(resolve, 100));
      verified = await house.bx("audit", "verify");
    }
    strictEqual(verified.status, 1);
    match(verified.out, /NOT WHOLE.*record \d+: edit/);
    match((await house.bx("status")).out, /brokerd +DOWN/);
    const silent = await house.bx("audit", "repair");
    strictEqual(silent.status, 2, "it was declared without a word of the owner's");
    strictEqual(Deno.readTextFileSync(path), damaged);

    const repaired = await house.bx("audit", "repair", "--yes");
    strictEqual(repaired.status, 0, repaired.err);
    isTrue(await house.house.supervisor.ready(30_000));
    for (let i = 0; i < 100; i++) {
      verified = await house.bx("audit", "verify");
      if (verified.status === 0) break;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    match(
      verified.out,
      /whole: .*Whole but for records 0 to \d+, put aside as .*\.broken-1, damaged/,
    );
    strictEqual(Deno.readTextFileSync(`${path}.broken-1`), damaged);
    const again = await house.chat(`list ${house.papers}`, first.session);
    match(again.text, /plan\.txt/);
  },
);
