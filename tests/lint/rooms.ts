// Which room of the house may import which: the one table behind the lint rule, the import graph test
// and the scopes of deno.json. Paths are relative to the source folder.
import { ROLES } from "../../shared/wire/sockets.ts";

export const SOURCE = decodeURIComponent(new URL("../../", import.meta.url).pathname);

/** Packages that a room may import at run time; `node:` modules have their own list. */
const PACKAGES = ["zod", "smol-toml"];
const TEST_PACKAGES = [...PACKAGES, "fast-check", "@mattermost/client"];

/** Modules of the runtime that no role, tool or shared file may import without a listed reason. */
export const BANNED_NODE = [
  "node:vm",
  "node:worker_threads",
  "node:child_process",
  "node:cluster",
  "node:inspector",
  "node:module",
  "node:net",
  "node:http",
  "node:https",
  "node:http2",
  "node:tls",
  "node:dgram",
  "node:dns",
  "node:dns/promises",
  "node:fs",
  "node:fs/promises",
];

/** Every folder that is a room of its own. */
export function roomOf(path: string): string {
  const parts = path.split("/");
  const top = parts[0] ?? "";
  return (top === "roles" || top === "toolkit") && parts.length > 2 ? `${top}/${parts[1]}` : top;
}

export function isTest(path: string): boolean {
  return path.startsWith("tests/") || path.endsWith("_test.ts");
}

/** Whether the file is product code: a role, a tool or what they share. */
export function isProduct(path: string): boolean {
  return /^(?:roles|toolkit|shared)\//.test(path) && !isTest(path);
}

/** Whether `from` may import the local file `to`. Denial is the default. */
export function mayImport(from: string, to: string): boolean {
  const room = roomOf(from);
  const target = roomOf(to);
  if (room === target || target === "shared") return true;
  if (room === "tests") return true;
  if (isTest(from) && target === "tests") return true;
  if (room === "launch") return /^roles\/[a-z]+\/permissions\.ts$/.test(to);
  if (room === "deploy") return target.startsWith("toolkit");
  return false;
}

/** Whether `from` may import the package `name` (a bare specifier). */
export function mayUsePackage(from: string, name: string): boolean {
  if (name === "htmlparser2") return roomOf(from) === "toolkit/http_fetch";
  return (isTest(from) ? TEST_PACKAGES : PACKAGES).includes(name);
}

/** The import map scopes that forbid each room the others, as `deno.json` holds them. */
export function roomScopes(): Record<string, Record<string, string>> {
  const walled = (folders: string[]) =>
    Object.fromEntries(folders.map((folder) => [folder, "./cross-role-import-forbidden/"]));
  const roles = ROLES.map((role) => `./roles/${role}/`);
  const outer = ["./toolkit/", "./launch/", "./deploy/"];
  return Object.fromEntries([
    ...roles.map((role) => [role, walled([...roles.filter((other) => other !== role), ...outer])]),
    ["./toolkit/", walled(["./roles/", "./launch/", "./deploy/"])],
    ["./shared/", walled(["./roles/", ...outer])],
  ]);
}
