// Guards "a secret is nowhere": set through bxctl, used in a header and on standard input, it reaches
// the origin and is in no file, log, audit line, container description, database or process list.
import { ok as isTrue, strictEqual } from "node:assert";
import { podman, testFolders } from "../doubles/container_house.ts";
import { e2eHouse, houseTest } from "../doubles/e2e_house.ts";
import { startOrigin } from "../doubles/egress/egress_rig.ts";

const CANARY = "canary-7f3a9c1e5b";
const NEEDLES = [CANARY, btoa(CANARY), btoa(`xx${CANARY}`).slice(4, 16)];

/** Every file below the folders that holds a needle, but for the one that must. */
function holders(folders: readonly string[], kept: string): string[] {
  return folders.flatMap((folder) => below(folder)).filter((path) => {
    if (path === kept) return false;
    try {
      const text = new TextDecoder("latin1").decode(Deno.readFileSync(path));
      return NEEDLES.some((needle) => text.includes(needle));
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

/** What every process of the machine shows of itself to this user. */
function processes(): string {
  return [...Deno.readDirSync("/proc")].filter((entry) => /^[0-9]+$/.test(entry.name))
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
