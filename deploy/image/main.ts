// The image builder's command line:
//
//   deno run -A deploy/image/main.ts build [--out DIR]
//   deno run -A deploy/image/main.ts load --store DIR [--run DIR] [--out DIR] [--podman FILE]
//
// Progress goes to stderr; the last line on stdout is the digest.
import { parseArgs } from "node:util";
import { parseJson } from "../../shared/wire/codec.ts";
import { ImageNames } from "../../shared/tool/image_files.ts";
import { runFolderOf } from "../../shared/podman/podman_env.ts";
import { buildImage, hostSources, NO_EXTRA, writeImage } from "./build.ts";
import { loadImage } from "./load.ts";

const ROOT = new URL("../..", import.meta.url).pathname.replace(/\/$/, "");

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

async function load(out: string, store: string, run: string, podman: string): Promise<string> {
  const names = parseJson(await Deno.readTextFile(`${out}/image.json`));
  if (!names.ok) throw new Error(names.detail);
  const { digest } = ImageNames.parse(names.value);
  say("loading into Podman's store (a second or two the first time)");
  const done = await loadImage({ image: out, digest, podman, store, run });
  say(done === "loaded" ? "loaded" : "already there");
  return digest;
}

async function main(): Promise<number> {
  const { positionals, values } = parseArgs({
    args: Deno.args,
    allowPositionals: true,
    options: {
      out: { type: "string", default: `${ROOT}/build/image` },
      store: { type: "string" },
      run: { type: "string" },
      podman: { type: "string", default: "/usr/bin/podman" },
    },
  });
  const { out, store, run, podman } = values;
  if (positionals[0] === "build" && positionals.length === 1) {
    console.log(await build(out));
    return 0;
  }
  if (positionals[0] === "load" && store !== undefined) {
    console.log(await load(out, store, run ?? runFolderOf(store), podman));
    return 0;
  }
  console.error("Usage: main.ts build [--out DIR] | load --store DIR [--run DIR] [--out DIR]");
  return 2;
}

try {
  Deno.exit(await main());
} catch (thrown) {
  say(thrown instanceof Error ? thrown.message : String(thrown));
  Deno.exit(1);
}
