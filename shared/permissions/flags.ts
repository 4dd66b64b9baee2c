// Turns a row of what a role may reach into its exact permission flags. Pure.
// Invariants: 1. every path is absolute and in its shortest spelling; 2. no entry holds a comma or a
// control character; 3. an empty list leaves its flag out, so no flag ever stands bare; 4. a socket
// is named by its file, never by its folder. A row that breaks one of these is a bug and throws.
import { calledBy, type Role, servedBy, type SocketName, socketPath } from "../wire/sockets.ts";
import { configFile, lockFile } from "./places.ts";

/** Where a role runs: absolute, resolved folders, and the local modules of its one Worker. */
export type Place = {
  readonly home: string;
  readonly source: string;
  readonly workerFiles: readonly string[];
};

/** What a role may reach. Paths are absolute; a write path may be read as well. */
export type Row = {
  readonly sockets: readonly SocketName[];
  readonly hosts: readonly string[];
  readonly reads: readonly string[];
  readonly writes: readonly string[];
  readonly run: readonly string[];
  readonly env: readonly string[];
  /** Facts about the system, by name. */
  readonly sys: readonly "uid"[];
};

/** The flags of `row` for a role whose home is `home`. */
export function flags(row: Row, home: string): string[] {
  const sockets = row.sockets.map((name) => socketPath(home, name));
  const written = [...sockets, ...row.writes].map(checkedPath);
  const read = [...written, ...row.reads.map(checkedPath)];
  return [
    ...allow("net", [...row.hosts.map(checkedHost), ...sockets.map((path) => `unix:${path}`)]),
    ...allow("read", read),
    ...allow("write", written),
    ...allow("run", row.run.map(checkedPath)),
    ...allow("env", ["BOXMAKER_HOME", ...row.env.map(checkedVariable)]),
    ...allow("sys", [...row.sys]),
  ];
}

/** The row every role has: its sockets, its lock, its configuration; `more` is added to it. */
export function roleRow(role: Role, home: string, more: Partial<Row>): Row {
  const daemon = role !== "bxctl";
  return {
    sockets: [...servedBy(role), ...calledBy(role)],
    hosts: more.hosts ?? [],
    reads: [configFile(home, role), ...(more.reads ?? [])],
    writes: [...(daemon ? [lockFile(home, role)] : []), ...(more.writes ?? [])],
    run: more.run ?? [],
    env: more.env ?? [],
    sys: more.sys ?? [],
  };
}

function allow(kind: string, items: string[]): string[] {
  return items.length === 0 ? [] : [`--allow-${kind}=${[...new Set(items)].join(",")}`];
}

function checkedPath(path: string): string {
  if (!/^(?:\/[^/,\p{Cc}]+)+$/u.test(path) || /\/\.\.?(?:\/|$)/.test(path)) {
    throw new TypeError(`Not an exact absolute path: ${JSON.stringify(path)}`);
  }
  return path;
}

function checkedHost(host: string): string {
  if (!/^(?:[a-z0-9][a-z0-9.-]*|\[[0-9a-f:.]+\]):[1-9][0-9]{0,4}$/.test(host)) {
    throw new TypeError(`Not an exact host and port: ${JSON.stringify(host)}`);
  }
  return host;
}

function checkedVariable(name: string): string {
  if (!/^BOXMAKER_SECRET_[A-Z0-9_]+$/.test(name)) {
    throw new TypeError(`Not a secret's variable: ${JSON.stringify(name)}`);
  }
  return name;
}
