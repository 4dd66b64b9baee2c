// The tools' TypeScript as JavaScript for the image: types are removed, nothing else is changed, and
// every module of the graph becomes one file. A tool's main.ts becomes tk/<tool>.js, the rest goes
// below tk/lib/ under its path in the source folder.
//
// Types are removed by the runtime itself, so the build needs no bundler, no download and no cache,
// and the result depends on the sources and the runtime only. Of packages exactly the modules listed in
// packages.ts are copied, unchanged; any other is an error, so nothing third-party gets in unseen.
import { stripTypeScriptTypes } from "node:module";
import { posix } from "node:path";
import { encodeUtf8 } from "../../shared/wire/codec.ts";
import { checkLock, isPackageFile, packageFile, packagePlace } from "./packages.ts";
import { file, type TreeEntry } from "./tree.ts";

export interface Program {
  /** Name in the image: tk/<name>.js. */
  readonly name: string;
  /** Path of the program below the source folder. */
  readonly main: string;
}

const IMPORT = /^(\s*(?:import|export)\b[^;"'`]*?\bfrom\s*)"([^"]+)"/gm;

/** Every module the programs reach. `read` gives a source file's text by its path. */
export function moduleFiles(
  programs: readonly Program[],
  read: (path: string) => string,
): readonly TreeEntry[] {
  const named = new Map(programs.map(({ name, main }) => [main, `tk/${name}.js`]));
  const done = new Map<string, TreeEntry>();
  const waiting = programs.map((program) => program.main);
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (done.has(path)) continue;
    const here = placeOf(path, named);
    if (isPackageFile(path)) checkLock(read("deno.lock"));
    const script = (isPackageFile(path) ? read(path) : stripTypeScriptTypes(read(path))).replaceAll(
      IMPORT,
      (_whole, head: string, specifier: string) => {
        if (specifier.startsWith("node:")) return `${head}"${specifier}"`;
        const target = resolve(path, specifier);
        waiting.push(target);
        return `${head}"${relative(here, placeOf(target, named))}"`;
      },
    );
    if (/^\s*import\s*["'(]/m.test(script)) throw new TypeError(`${path} imports for effect`);
    done.set(path, file(here, encodeUtf8(script)));
  }
  return [...done.values()];
}

function placeOf(path: string, named: ReadonlyMap<string, string>): string {
  if (isPackageFile(path)) return packagePlace(path);
  return named.get(path) ?? `tk/lib/${path.replace(/\.ts$/, ".js")}`;
}

function resolve(from: string, specifier: string): string {
  const kept = packageFile(specifier);
  if (kept !== null) return kept;
  const path = posix.join(posix.dirname(from), specifier);
  const form = isPackageFile(from) ? /^\.{1,2}\/.*\.js$/ : /^\.{1,2}\/.*\.ts$/;
  if (!form.test(specifier) || path.startsWith("../")) {
    throw new TypeError(
      `${from} imports ${specifier}: only modules of the source folder can be in the image`,
    );
  }
  return path;
}

function relative(from: string, to: string): string {
  const path = posix.relative(posix.dirname(from), to);
  return path.startsWith("../") ? path : `./${path}`;
}
