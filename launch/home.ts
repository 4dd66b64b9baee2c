// Makes the folders of a home and refuses one that somebody else could have prepared.
// Every folder below the home is the owner's alone (0700) and is no link; below run/ there is nothing
// but the pair folders, and in them nothing but the sockets of the house.
import { err, messageOf, ok, type Result } from "../shared/results/result.ts";
import { SOCKETS } from "../shared/wire/sockets.ts";
import { HOME_FOLDERS } from "../shared/permissions/places.ts";

/** Folders below run/ that are not a pair's: the sockets of single calls. */
const CALL_FOLDER = "eg";

/** Makes what is missing and checks what is there; fails with one sentence and changes no mode. */
export function prepareHome(home: string): Result<null> {
  try {
    const problem = homeItself(home) ?? folders(home) ?? runEntries(home);
    return problem === undefined ? ok(null) : err("home-unsafe", problem);
  } catch (thrown) {
    return err("home-unsafe", `Cannot prepare ${home}: ${messageOf(thrown)}`);
  }
}

function homeItself(home: string): string | undefined {
  if (Deno.realPathSync(home) !== home) return `${home} is reached through a link`;
  const info = Deno.lstatSync(home);
  if (info.uid !== Deno.uid()) return `${home} belongs to another user; make a home of your own`;
  if (((info.mode ?? 0o777) & 0o022) !== 0) {
    return `${home} can be written by others; run chmod go-w on it`;
  }
  return undefined;
}

function folders(home: string): string | undefined {
  const names = [...HOME_FOLDERS, ...pairFolders().map((pair) => `run/${pair}`)];
  for (const name of names) {
    const problem = ownFolder(`${home}/${name}`);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function pairFolders(): string[] {
  return [...new Set(Object.keys(SOCKETS).map((name) => name.replace(/\/.*$/, "")))];
}

function ownFolder(path: string): string | undefined {
  try {
    Deno.mkdirSync(path, { mode: 0o700 });
  } catch (thrown) {
    if (!(thrown instanceof Deno.errors.AlreadyExists)) throw thrown;
  }
  const info = Deno.lstatSync(path);
  if (!info.isDirectory) return `${path} is not a folder but a link or file; remove it`;
  if (info.uid !== Deno.uid()) return `${path} belongs to another user`;
  if (((info.mode ?? 0o777) & 0o077) !== 0) return `${path} is open to others; run chmod 700 on it`;
  return undefined;
}

function runEntries(home: string): string | undefined {
  const run = `${home}/run`;
  const pairs = pairFolders();
  const sockets = new Set(Object.keys(SOCKETS).map((name) => `${home}/run/${name}.sock`));
  for (const entry of Deno.readDirSync(run)) {
    const path = `${run}/${entry.name}`;
    if (entry.name === CALL_FOLDER && entry.isDirectory) continue;
    if (!pairs.includes(entry.name)) return `${path} does not belong among the sockets; remove it`;
    for (const inner of Deno.readDirSync(path)) {
      const inside = `${path}/${inner.name}`;
      if (!sockets.has(inside) || !isSocketOrGone(inside)) {
        return `${inside} does not belong among the sockets; remove it`;
      }
    }
  }
  return undefined;
}

/** Another role may take its socket away while we look. */
function isSocketOrGone(path: string): boolean {
  try {
    return Deno.lstatSync(path).isSocket === true;
  } catch (thrown) {
    if (thrown instanceof Deno.errors.NotFound) return true;
    throw thrown;
  }
}
