// Where the files of a role lie below the home folder, and what a home folder may look like.
// The launcher, the permission flags and the roles themselves agree on these names.
import type { Role } from "../wire/sockets.ts";

/** The longest home, in UTF-8 bytes, with which every socket path still fits its kernel limit. */
export const MAX_HOME_BYTES = 75;

/** Folders directly below the home; the launcher makes each with mode 0700. */
export const HOME_FOLDERS = [
  "config",
  "grants",
  "jobs",
  "memory",
  "sessions",
  "runs",
  "audit",
  "broker",
  "index",
  "queue",
  "run",
  "logs",
  "cache",
  "locks",
] as const;

/** The role's configuration file; absent means the documented defaults. */
export function configFile(home: string, role: Role): string {
  return `${home}/config/${role}.toml`;
}

/** The file a role holds locked for life, taken before it removes a stale socket. */
export function lockFile(home: string, role: Role): string {
  return `${home}/locks/${role}.lock`;
}

/** Why `home` cannot be a home folder, as one sentence, or undefined when it can. */
export function homeProblem(home: string): string | undefined {
  if (!home.startsWith("/")) return `The home folder must be an absolute path: ${home}`;
  if (/[,\p{Cc}]/u.test(home)) return `The home folder has a comma or control character: ${home}`;
  const bytes = new TextEncoder().encode(home).length;
  if (bytes > MAX_HOME_BYTES) {
    return `The home folder's path has ${bytes} bytes, more than ${MAX_HOME_BYTES}: ${home}`;
  }
  return undefined;
}

/** The folder of the sockets of single calls, egressd's alone. */
export function callsFolder(home: string): string {
  return `${home}/run/eg`;
}
