// Guards "a secret is nowhere": set through bxctl, used in a header and on standard input, it reaches
// the origin and is in no file, log, audit line, container description, database or process list.
import { ok as isTrue, strictEqual } from "node:assert";
import { dirname } from "node:path";
import { rehearsalMattermost } from "../../launch/served_mattermost.ts";
import { podman, testFolders } from "../doubles/container_house.ts";
import { e2eHouse, houseTest } from "../doubles/e2e_house.ts";
import { startOrigin } from "../doubles/egress/egress_rig.ts";

const SOURCE = dirname(dirname(dirname(decodeURIComponent(new URL(import.meta.url).pathname))));
const CANARY = "canary-7f3a9c1e5b";
const needlesOf = (canary: string) => [canary, btoa(canary), btoa(`xx${canary}`).slice(4, 16)];
const NEEDLES = needlesOf(CANARY);

/** Every file below the folders that holds a needle, but for the one that must. */
function holders(folders: readonly string[], kept: string, needles = NEEDLES): string[] {
  return folders.flatMap((folder) => below(folder)).filter((path) => {
    if (path === kept) return false;
    try {
      const text = new TextDecoder("latin1").decode(Deno.readFileSync(path));
      return needles.some((needle) => text.includes(needle));
    } catch {
      return false; // a socket, or gone already
    }
  });
}

function below(folder: string): string[] {
  try {
    return [...Deno.readDirSync(folder)].flatMap((entry) => {
      const path = `${folder}/${entry.name}`;
      // The image's own layers are built before any secret exists and are large.
      if (entry.isDirectory) return entry.name === "overlay" ? [] : below(path);
      return entry.isFile ? [path] : [];
    });
  } catch {
    return []; // a folder of another user of the container's map
  }
}

/** What every process of the machine but these shows of itself to this user. */
function processes(but: readonly (number | undefined)[] = []): string {
  return [...Deno.readDirSync("/proc")].filter((entry) => /^[0-9]+$/.test(entry.name))
    .filter((entry) => !but.includes(Number(entry.name)))
    .flatMap(({ name }) =>
      ["cmdline", "environ"].map((file) => {
        try {
          return Deno.readTextFileSync(`/proc/${name}/${file}`);
        } catch {
          return ""; // another user's process, or gone
        }
      })
    ).join("\n");
}

houseTest("canary: a secret reaches the origin and nothing else keeps or shows it", async () => {
  const held = Promise.withResolvers<void>();
  const came = Promise.withResolvers<void>();
  await using origin = startOrigin(async () => {
    came.resolve();
    await held.promise;
    return new Response("thanks", { headers: { "content-type": "text/plain" } });
  });
  const grant = (tool: string, as: string, more: string) =>
    `tool = "${tool}"\nmode = "auto"\nmax_taint = "private"\nresult_class = "private"\n` +
    `secret = { name = "key", as = "${as}" }\n${more}`;
  await using house = await e2eHouse({
    extra: { egressd: `[deny]\nopen = ["127.0.0.0/8"]\n` },
    grants: (papers) => ({
      "fetch.toml": grant(
        "http_fetch",
        "header:X-Key",
        `hosts = ["http://127.0.0.1:${origin.port}"]\n`,
      ),
      "list.toml": grant("list_dir", "stdin", `paths = ["${papers}"]\n`),
    }),
  });
  const { home } = house.house;
  const kept = `${home}/broker/secrets/key`;
  const early = await house.house.bx(["secrets", "set", "key"], `${CANARY}\n`);
  strictEqual(early.status, 1, "a secret that brokerd.toml does not name was kept");
  const config = `${home}/config/brokerd.toml`;
  Deno.writeTextFileSync(
    config,
    `${Deno.readTextFileSync(config)}\n[secrets]\nkey = { file = "${kept}" }\n`,
  );
  await house.kill("brokerd");
  const set = await house.house.bx(["secrets", "set", "key"], `${CANARY}\n`);
  strictEqual(set.status, 0, set.err);

  const reply = house.chat(`fetch http://127.0.0.1:${origin.port}/`);
  await came.promise;
  const running = await podman(["ps", "-q", "--filter", "label=boxmaker.owner"]);
  const ids = running.stdout.split("\n").filter((id) => id !== "");
  isTrue(ids.length > 0, "no container runs");
  const inspected = await podman(["inspect", ...ids]);
  for (const text of [inspected.stdout, processes()]) {
    for (const needle of NEEDLES) isTrue(!text.includes(needle), "it is shown");
  }
  const folders = [home, testFolders().store, testFolders().run];
  strictEqual(holders(folders, kept).join(), "", "while the call runs");
  held.resolve();
  const fetched = await reply;
  isTrue(fetched.text.includes("thanks"), fetched.text);
  strictEqual(origin.seen[0]?.headers.get("x-key"), CANARY);

  const listed = await house.chat(`list ${house.papers}`);
  isTrue(listed.text.includes("plan.txt"), listed.text);
  const { records } = await house.json("audit", "tail", "-n", "200");
  const audit = JSON.stringify(records);
  isTrue(audit.includes('"kind":"secret"') && !audit.includes(CANARY));
  strictEqual(holders(folders, kept).join(), "", "after the calls");
  strictEqual(Deno.readTextFileSync(kept), CANARY);
  strictEqual((Deno.statSync(kept).mode ?? 0) & 0o777, 0o600);
});

/** Waits until the record of what went over the wire holds this. */
async function posted(path: string, text: string): Promise<void> {
  for (let i = 0; !(await Deno.readTextFile(path)).includes(text); i++) {
    isTrue(i < 1_200, "the question was not posted");
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

houseTest(
  "canary: a secret from the environment or from a credential is with brokerd and nowhere else",
  async () => {
    const inEnv = "canary-env-2b8d40e6";
    const inFile = "canary-cred-91c7f5a3";
    const needles = [...needlesOf(inEnv), ...needlesOf(inFile)];
    const held = Promise.withResolvers<void>();
    const came = Promise.withResolvers<void>();
    await using origin = startOrigin(async () => {
      came.resolve();
      await held.promise;
      return new Response("thanks", { headers: { "content-type": "text/plain" } });
    });
    const folder = await Deno.makeTempDir({ prefix: "bx-cred-" });
    const credential = `${folder}/cred`;
    Deno.writeTextFileSync(credential, `${inFile}\n`, { mode: 0o400 });
    const name = "BOXMAKER_SECRET_CANARY";
    // Everything that is posted, and every byte between gatewayd and the server, is kept in the folder.
    const mattermost = await rehearsalMattermost(SOURCE, folder);
    Deno.env.set(name, inEnv);
    try {
      const grant = (tool: string, mode: string, secret: string, more: string) =>
        `tool = "${tool}"\nmode = "${mode}"\nmax_taint = "private"\nresult_class = "private"\n` +
        `secret = ${secret}\n${more}`;
      await using house = await e2eHouse({
        extra: {
          egressd: `[deny]\nopen = ["127.0.0.0/8"]\n`,
          gatewayd: mattermost.config,
          brokerd:
            `[secrets]\nkey = { env = "${name}" }\ncred = { credential = "${credential}" }\n`,
        },
        grants: (papers) => ({
          "fetch.toml": grant(
            "http_fetch",
            "auto",
            '{ name = "key", as = "header:X-Key" }',
            `hosts = ["http://127.0.0.1:${origin.port}"]\n`,
          ),
          "list.toml": grant(
            "list_dir",
            "ask",
            '{ name = "cred", as = "stdin" }',
            `paths = ["${papers}"]\n`,
          ),
        }),
      });
      const { home } = house.house;
      const reply = house.chat(`fetch http://127.0.0.1:${origin.port}/`);
      await came.promise;
      const running = await podman(["ps", "-q", "--filter", "label=boxmaker.owner"]);
      const ids = running.stdout.split("\n").filter((id) => id !== "");
      isTrue(ids.length > 0, "no container runs");
      const inspected = (await podman(["inspect", ...ids])).stdout;
      const brokerd = house.house.supervisor.pids().get("brokerd");
      isTrue(brokerd !== undefined);
      isTrue(
        Deno.readTextFileSync(`/proc/${brokerd}/environ`).includes(inEnv),
        "it is not where it must be",
      );
      for (const text of [inspected, processes([brokerd, Deno.pid])]) {
        for (const needle of needles) isTrue(!text.includes(needle), "it is shown");
      }
      held.resolve();
      isTrue((await reply).text.includes("thanks"));
      strictEqual(origin.seen[0]?.headers.get("x-key"), inEnv);
      const listing = house.chat(`list ${house.papers}`);
      const question = await house.question();
      isTrue(question.text.includes("cred as stdin"), question.text);
      await posted(`${folder}/mattermost/record.jsonl`, "cred as stdin");
      strictEqual((await house.bx("approve", question.code)).status, 0);
      isTrue((await listing).text.includes("plan.txt"));
      const folders = [home, folder, testFolders().store, testFolders().run];
      strictEqual(holders(folders, credential, needles).join(), "", "after the calls");
    } finally {
      held.resolve();
      Deno.env.delete(name);
      await mattermost.stop();
      await Deno.remove(folder, { recursive: true });
    }
  },
);
