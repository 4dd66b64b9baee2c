// The modules of packages that tools in the image may import: each by the exact file of the exact version
// that deno.lock names, copied as it is. What is not listed cannot get in.

/** An import's specifier and the file it means, below node_modules/.deno/. */
const KEPT: Readonly<Record<string, string>> = {
  "htmlparser2": "htmlparser2@10.1.0/node_modules/htmlparser2/dist/esm/Parser.js",
  "entities/decode": "entities@7.0.1/node_modules/entities/dist/esm/decode.js",
};
const STORE = "node_modules/.deno/";

/** The file below the source folder that a bare specifier means, or null. */
export function packageFile(specifier: string): string | null {
  const file = Object.hasOwn(KEPT, specifier) ? KEPT[specifier] : undefined;
  return file === undefined ? null : STORE + file;
}

export function isPackageFile(path: string): boolean {
  return path.startsWith(STORE);
}

/** Where a package's file lies in the image: tk/npm/NAME-VERSION/... */
export function packagePlace(path: string): string {
  const match = /^([a-z0-9-]+)@([0-9.]+)\/node_modules\/\1\/(.+)$/.exec(path.slice(STORE.length));
  if (match === null) throw new TypeError(`Not a file of a kept package: ${path}`);
  return `tk/npm/${match[1]}-${match[2]}/${match[3]}`;
}

/** Throws when a kept package is not in the lock file as it is listed here. */
export function checkLock(lock: string): void {
  for (const file of Object.values(KEPT)) {
    const id = file.slice(0, file.indexOf("/"));
    if (!lock.includes(`"${id}": {`)) throw new TypeError(`deno.lock does not name ${id}`);
  }
}
