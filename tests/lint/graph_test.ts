// Guards the promise that no process loads another's code: the real import graph of every entry, as
// Deno sees it, holds no edge outside the table of rooms, and every product file belongs to an entry.
import { deepStrictEqual, ok } from "node:assert";
import { isProduct, mayImport, mayUsePackage, roomScopes, SOURCE } from "./rooms.ts";

type Edge = { readonly from: string; readonly to: string };

/** Local source files below `folder`, relative to the source folder. */
function filesBelow(folder: string): string[] {
  const found: string[] = [];
  for (const entry of Deno.readDirSync(`${SOURCE}${folder}`)) {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory) found.push(...filesBelow(path));
    else if (entry.name.endsWith(".ts")) found.push(path);
  }
  return found.sort();
}

const FILES = ["roles", "toolkit", "shared", "launch", "deploy"].flatMap(filesBelow);

/** What is started by itself: each main.ts, the launcher's programs, and the one Worker. */
const ENTRIES = FILES.filter((path) =>
  path.endsWith("/main.ts") || path.endsWith("/permissions.ts") || path.endsWith("_worker.ts") ||
  (/^(?:launch|deploy)\//.test(path) && !path.endsWith("_test.ts"))
);

/** Type and code edges of `entry`, literal dynamic ones included, between files of the house. */
async function edgesOf(entry: string): Promise<Edge[]> {
  const asked = await new Deno.Command(Deno.execPath(), {
    args: ["info", "--json", `${SOURCE}${entry}`],
    stdout: "piped",
    stderr: "piped",
  }).output();
  ok(asked.success, new TextDecoder().decode(asked.stderr));
  const info = JSON.parse(new TextDecoder().decode(asked.stdout));
  const edges: Edge[] = [];
  for (const module of info.modules) {
    for (const dependency of module.dependencies ?? []) {
      for (const target of [dependency.code?.specifier, dependency.type?.specifier]) {
        if (target?.startsWith("file:")) {
          edges.push({ from: local(module.specifier), to: local(target) });
        }
      }
    }
  }
  return edges;
}

function local(specifier: string): string {
  const path = decodeURIComponent(new URL(specifier).pathname);
  return path.startsWith(SOURCE) ? path.slice(SOURCE.length) : path;
}

/** Edges inside packages are theirs; an edge into a package is judged by the package's name. */
function isAllowed(edge: Edge): boolean {
  if (edge.from.startsWith("node_modules/")) return edge.to.startsWith("node_modules/");
  const name = edge.to.match(/^node_modules\/.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//)?.[1];
  return name === undefined ? mayImport(edge.from, edge.to) : mayUsePackage(edge.from, name);
}

Deno.test("deno info no entry has an edge outside the table, and every product file is reached", async () => {
  ok(ENTRIES.length > 10, `only ${ENTRIES.length} entries`);
  const reached = new Set(ENTRIES);
  const forbidden: string[] = [];
  for (const entry of ENTRIES) {
    for (const edge of await edgesOf(entry)) {
      reached.add(edge.to);
      if (!isAllowed(edge)) forbidden.push(`${edge.from} -> ${edge.to}`);
    }
  }
  deepStrictEqual([...new Set(forbidden)], []);
  deepStrictEqual(FILES.filter((path) => isProduct(path) && !reached.has(path)), []);
});

Deno.test("new URL() no file takes the path of a URL for a path: a folder may have a blank in its name", () => {
  const encoded = /(?<!decodeURIComponent\(\s*)new URL\([^()]*import\.meta\.url\)\.pathname/;
  const wrong = [...FILES, ...filesBelow("tests")]
    .filter((path) => encoded.test(Deno.readTextFileSync(SOURCE + path)));
  deepStrictEqual(wrong, []);
});

Deno.test("deno.json its scopes are those of the table of rooms", () => {
  const config = JSON.parse(Deno.readTextFileSync(`${SOURCE}deno.json`));
  deepStrictEqual(config.scopes, roomScopes());
});
