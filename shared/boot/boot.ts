// What every daemon does first, in this order: find its home, read its configuration, take its lock.
// Nothing is served before all three hold, and a stale socket is removed only under the lock.
import type { z } from "zod";
import { type Clock, systemClock } from "../clock/clock.ts";
import { type Random, systemRandom } from "../clock/random.ts";
import { parseConfig } from "../config/load.ts";
import type { Disk } from "../disk/disk.ts";
import { denoDisk } from "../disk/deno_disk.ts";
import { readText } from "../disk/durable.ts";
import { type RoleLock, takeRoleLock } from "../disk/role_lock.ts";
import { type Log, makeLog } from "../log/log.ts";
import { configFile, homeProblem, lockFile } from "../permissions/places.ts";
import { err, ok, type Result } from "../results/result.ts";
import { type Role, type SocketName, socketPath } from "../wire/sockets.ts";

const MAX_CONFIG_BYTES = 1_048_576;

/** A role that may begin: its place, its settings and its ports. */
export interface Booted<C> {
  readonly role: Role;
  readonly home: string;
  readonly config: C;
  readonly disk: Disk;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly lock: RoleLock;
  readonly startedUnixMs: number;
  socket(name: SocketName): string;
}

/**
 * Boots `role` below `home` (the value of BOXMAKER_HOME). An absent configuration file means the
 * documented defaults. Fails with `config-invalid`, `already-running` or a code of the disk.
 */
export function boot<S extends z.ZodType>(
  role: Role,
  schema: S,
  home: string | undefined,
  write: (line: string) => void,
): Result<Booted<z.output<S>>> {
  const place = home ?? "/var/lib/boxmaker";
  const problem = homeProblem(place);
  if (problem !== undefined) return err("config-invalid", problem);
  const config = readConfig(schema, denoDisk, configFile(place, role));
  if (!config.ok) return config;
  const lock = takeRoleLock(denoDisk, lockFile(place, role));
  if (!lock.ok) return lock;
  return ok({
    role,
    home: place,
    config: config.value,
    disk: denoDisk,
    clock: systemClock,
    random: systemRandom,
    log: makeLog(role, systemClock, write),
    lock: lock.value,
    startedUnixMs: systemClock.nowUnixMs(),
    socket: (name) => socketPath(place, name),
  });
}

/** Reads one configuration file by its schema; an absent file is an empty one. */
export function readConfig<S extends z.ZodType>(
  schema: S,
  disk: Disk,
  path: string,
): Result<z.output<S>> {
  const text = readText(disk, path, MAX_CONFIG_BYTES);
  if (text.ok) return parseConfig(schema, text.value, path);
  return text.code === "file-missing" ? parseConfig(schema, "", path) : text;
}
