// Runs in a watched network: the whole house under its real flags with a model server, a Mattermost
// server, a name server and a page, is talked to, and prints what `bxctl egress` says beside where
// those lie. With `containers` every call runs in one; else egressd is asked as brokerd would ask it.
import { dirname } from "node:path";
import { startHouse } from "../../../launch/house.ts";
import { rehearsalMattermost } from "../../../launch/served_mattermost.ts";
import { rehearsalModel } from "../../../launch/served_model.ts";
import { openWay } from "../../doubles/egress/egress_rig.ts";
import { e2eConfigs, loadProductImage } from "../../doubles/e2e_house.ts";
import { startNameServer } from "../../doubles/namespace/name_server.ts";
import { PUBLIC } from "../../doubles/namespace/private_network.ts";
import { socketPath } from "../../../shared/wire/sockets.ts";

const SOURCE = dirname(
  dirname(dirname(dirname(decodeURIComponent(new URL(import.meta.url).pathname)))),
);
const PAGE = "http://page.example:8080";
const hasContainers = Deno.args[0] === "containers";

const base = Deno.makeTempDirSync({ prefix: "bxw" });
const papers = `${base}/papers`;
Deno.mkdirSync(papers);
Deno.writeTextFileSync(`${papers}/plan.txt`, "Launch plan: fill the tanks, wait, go.\n");
if (hasContainers) await loadProductImage();

const names = await startNameServer({ "page.example": [{ a: [PUBLIC] }] });
const page = Deno.serve(
  { hostname: PUBLIC, port: 8_080, onListen: () => {} },
  () => new Response("Tea costs 4", { headers: { "content-type": "text/plain" } }),
);
const mattermost = await rehearsalMattermost(SOURCE, base);
const model = rehearsalModel(SOURCE);
const common = `paths = ["${papers}"]\nmax_taint = "private"\nresult_class = "private"\n`;
const house = await startHouse({
  home: `${base}/home`,
  source: SOURCE,
  configs: e2eConfigs([papers], model, { gatewayd: mattermost.config }),
  grants: {
    "fetch.toml": `tool = "http_fetch"\nmode = "auto"\nhosts = ["${PAGE}"]\n` +
      `max_taint = "private"\nresult_class = "public"\n`,
    "list.toml": `tool = "list_dir"\nmode = "auto"\n${common}untrusted = false\n`,
    "read.toml": `tool = "read_file"\nmode = "ask"\n${common}untrusted = false\n`,
  },
  model: model.program,
  say: () => {},
});
const said: Record<string, string> = {};
const chat = async (name: string, text: string) => {
  const ran = await house.bx(["chat", "-m", text, "--json"]);
  said[name] = String(JSON.parse(ran.out.trim().split("\n").at(-1) ?? "{}").text ?? ran.err);
};
await chat("hello", "hello");
await chat("note", "remember that the tanks are blue");
await chat("recall", "recall tanks blue");
await chat("list", `list ${papers}`);
if (hasContainers) {
  await chat("fetch", `fetch ${PAGE}/`);
  said.phone = String(await mattermost.phone?.(`${papers}/plan.txt`, "play"));
} else {
  const egress = socketPath(house.home, "broker-egress/egress");
  await using way = await openWay(egress, { origins: [PAGE] }, () => Promise.resolve());
  said.fetch = (await way.get(`${PAGE}/`)).text;
  said.phone = "0";
}
const egress = JSON.parse((await house.bx(["egress", "--json"])).out);
const statusNow = async () => JSON.parse((await house.bx(["status", "--json"])).out);
let status = await statusNow();
for (let i = 0; i < 600 && status.gatewayd?.channel !== "connected"; i++) {
  await new Promise((resolve) => setTimeout(resolve, 100));
  status = await statusNow();
}
const up = status.roles.filter((one: { is_up: boolean }) => one.is_up).length;
await house.stop();
await mattermost.stop();
await page.shutdown();
await names[Symbol.asyncDispose]();
Deno.removeSync(base, { recursive: true });
console.log(JSON.stringify({ said, egress, up, asked: names.asked }));
Deno.exit(0);
