// The image builder's command line:
//
//   deno task image [--replace]                       builds, and loads into the store of BOXMAKER_HOME
//   deno task image --extra FILE --out DIR            the same with programs for run_command (extra.ts)
//   deno run -A deploy/image/main.ts build [--extra FILE] [--out DIR]
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
import { extraOf } from "./extra.ts";
import { loadImage, type LoadPlan } from "./load.ts";

const ROOT = decodeURIComponent(new URL("../..", import.meta.url).pathname).replace(/\/$/, "");
const DEFAULT_OUT = `${ROOT}/build/image`;
const DEFAULT_PODMAN = "/usr/bin/podman";
const USAGE = "Usage: deno task image [--replace] [--extra FILE --out DIR], or main.ts build " +
  "[--extra FILE] [--out DIR], or main.ts load --store DIR [--run DIR] [--out DIR] [--podman FILE] [--replace]";

function say(text: string): void {
  console.error(`image: ${text}`);
}

async function build(out: string, list: string | undefined): Promise<string> {
  say(`reading Deno ${Deno.version.deno}, libraries and tools`);
  const sources = hostSources(ROOT);
  const extra = list === undefined
    ? NO_EXTRA
    : extraOf(await Deno.readTextFile(list), list, sources.host);
  const image = buildImage(sources, extra, Deno.version.deno);
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
async function install(
  replace: LoadPlan["present"],
  own: { readonly list: string; readonly out: string } | null,
): Promise<string> {
  const home = Deno.env.get("BOXMAKER_HOME") ?? "/var/lib/boxmaker";
  await Deno.stat(home).catch(() => {
    throw new Error(`There is no home folder at ${home}; make it or set BOXMAKER_HOME`);
  });
  const config = readConfig(BrokerdConfig, denoDisk, configFile(home, "brokerd"));
  if (!config.ok) throw new Error(config.detail);
  const { runtime } = config.value;
  const image = own?.out ?? runtime.image ?? DEFAULT_OUT;
  await build(image, own?.list);
  const place = { podman: runtime.podman, ...podmanFolders(home, runtime), present: replace };
  const digest = await load({ image, ...place });
  // The loader keeps the newest images alone; the owner's own ones are put back when they were dropped.
  for (const further of runtime.images.filter((one) => one !== image)) {
    await load({ image: further, ...place, present: "keep" });
  }
  return digest;
}

async function main(): Promise<number> {
  const { positionals, values } = parseArgs({
    args: Deno.args,
    allowPositionals: true,
    options: {
      out: { type: "string" },
      extra: { type: "string" },
      store: { type: "string" },
      run: { type: "string" },
      podman: { type: "string", default: DEFAULT_PODMAN },
      replace: { type: "boolean", default: false },
    },
  });
  const { store, run, podman, replace, extra } = values;
  const out = values.out ?? DEFAULT_OUT;
  const present = replace ? "replace" : "keep";
  const [command = "install", ...more] = positionals;
  // Programs of the owner's own never get into the image of every other tool by accident.
  const isOwn = extra !== undefined && out !== DEFAULT_OUT;
  if (more.length > 0 || (extra !== undefined && !isOwn)) {
    console.error(USAGE);
    return 2;
  }
  if (command === "install") {
    console.log(await install(present, extra === undefined ? null : { list: extra, out }));
  } else if (command === "build") console.log(await build(out, extra));
  else if (command === "load" && store !== undefined) {
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
