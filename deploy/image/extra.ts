// Programs for `run_command`: a list in TOML of what an image of the owner's own holds beside the
// toolkit. `[files]` copies files of this host, `[links]` adds symbolic links, by their path in the image:
//
//   [files]
//   "usr/bin/git" = "/usr/bin/git"
//   "lib/x86_64-linux-gnu/libz.so.1" = "/lib/x86_64-linux-gnu/libz.so.1"
//   [links]
//   "bin/git" = "../usr/bin/git"
//
// A program needs its libraries too (`ldd` names them); those of Deno are there already.
import { z } from "zod";
import { AbsolutePath } from "../../shared/config/fields.ts";
import { parseConfig } from "../../shared/config/load.ts";
import type { Extra } from "./contents.ts";
import { file } from "./tree.ts";

const ExtraFile = z.strictObject({
  files: z.record(z.string().max(99), AbsolutePath).default({}),
  links: z.record(z.string().max(99), z.string().min(1).max(99)).default({}),
});

/** Reads the list in `text`; `host` gives a host file's bytes. Throws on a list of another form. */
export function extraOf(
  text: string,
  name: string,
  host: (path: string) => Uint8Array<ArrayBuffer>,
): Extra {
  const parsed = parseConfig(ExtraFile, text, name);
  if (!parsed.ok) throw new Error(parsed.detail);
  const { files, links } = parsed.value;
  return {
    programs: [],
    manifests: [],
    files: [
      ...Object.entries(files).map(([path, from]) => file(path, host(from), 0o755)),
      ...Object.entries(links).map(([path, target]) => ({ path, type: "link" as const, target })),
    ],
  };
}
