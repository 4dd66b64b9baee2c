// The image builder's command line:
//
//   deno task image [--replace]                       builds, and loads into the store of BOXMAKER_HOME
//   deno run -A deploy/image/main.ts build [--out DIR]
//   deno run -A deploy/image/main.ts load --store DIR [--run DIR] [--out DIR] [--podman FILE] [--replace]
//
// Progress goes to stderr; the last line on stdout is the digest. `--replace` drops a stored image of the
// same digest first, with every copy of it.
import { parseArgs } from "node:util";
import { readConfig } from "../../shared/boot/boot.ts";
import { BrokerdConfig } from "../../shared/config/brokerd.ts";
import { denoDisk } from "../../shared/disk/deno_disk.ts";
import { configFile } from "../../shared/permissions/places.ts";
import { podmanFolders, runFolderOf } from "../../shared/podman/podman_env.ts";
import { ImageNames } from "../../shared/tool/image_files.ts";
import { parseJson } from "../../shared/wire/codec.ts";
import { buildImage, hostSources, NO_EXTRA, writeImage } from "./build.ts";
import { loadImage, type LoadPlan } from "./load.ts";

const ROOT = new URL("../..", import.meta.url).pathname.replace(/\/$/, "");
const DEFAULT_OUT = `${ROOT}/build/image`;
const DEFAULT_PODMAN = "/usr/bin/podman";
const USAGE = "Usage: deno task image [--replace], or main.ts build [--out DIR], or main.ts load " +
  "--store DIR [--run DIR] [--out DIR] [--podman FILE] [--replace]";

function say(text: string): void {
  console.error(`image: ${text}`);
}

async function build(out: string): Promise<string> {
  say(`reading Deno ${Deno.version.deno}, libraries and tools`);
  const image = buildImage(hostSources(ROOT), NO_EXTRA, Deno.version.deno);
  const done = await writeImage(image, out);
  say(`${done === "written" ? "written to" : "already in"} ${out}`);
  return image.names.digest;
}

async function load(plan: Omit<LoadPlan, "digest">): Promise<string> {
  const names = parseJson(await Deno.readTextFile(`${plan.image}/image.json`));
  if (!names.ok) throw new Error(names.detail);
  const { digest } = ImageNames.parse(names.value);
  say("loading into Podman's store (a second or two the first time)");
  const done = await loadImage({ ...plan, digest });
  say(done === "loaded" ? `loaded into ${plan.store}` : `already in ${plan.store}`);
  return digest;
}

/** Builds and loads for a home, where its brokerd will look. */
async function install(replace: LoadPlan["present"]): Promise<string> {
  const home = Deno.env.get("BOXMAKER_HOME") ?? "/var/lib/boxmaker";
  await Deno.stat(home).catch(() => {
    throw new Error(`There is no home folder at ${home}; make it or set BOXMAKER_HOME`);
  });
  const config = readConfig(BrokerdConfig, denoDisk, configFile(home, "brokerd"));
  if (!config.ok) throw new Error(config.detail);
  const { runtime } = config.value;
  const image = runtime.image ?? DEFAULT_OUT;
  await build(image);
  const folders = podmanFolders(home, runtime);
  return await load({ image, podman: runtime.podman, ...folders, present: replace });
}

async function main(): Promise<number> {
  const { positionals, values } = parseArgs({
    args: Deno.args,
    allowPositionals: true,
    options: {
      out: { type: "string", default: DEFAULT_OUT },
      store: { type: "string" },
      run: { type: "string" },
      podman: { type: "string", default: DEFAULT_PODMAN },
      replace: { type: "boolean", default: false },
    },
  });
  const { out, store, run, podman, replace } = values;
  const present = replace ? "replace" : "keep";
  const [command = "install", ...more] = positionals;
  if (more.length === 0 && command === "install") console.log(await install(present));
  else if (more.length === 0 && command === "build") console.log(await build(out));
  else if (more.length === 0 && command === "load" && store !== undefined) {
    const folders = { store, run: run ?? runFolderOf(store) };
    console.log(await load({ image: out, podman, ...folders, present }));
  } else {
    console.error(USAGE);
    return 2;
  }
  return 0;
}

try {
  Deno.exit(await main());
} catch (thrown) {
  say(thrown instanceof Error ? thrown.message : String(thrown));
  Deno.exit(1);
}
