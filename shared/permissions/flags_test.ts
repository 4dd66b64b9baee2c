// Guards the shape of every permission flag: exact absolute entries, never a bare flag, never a folder
// around a socket, for any row that configuration can produce.
import { deepStrictEqual, ok, throws } from "node:assert";
import fc from "fast-check";
import { ROLES, socketPath, SOCKETS } from "../wire/sockets.ts";
import { flags, roleRow, type Row } from "./flags.ts";
import { homeProblem } from "./places.ts";

const HOME = "/srv/bx";
const EMPTY: Row = { sockets: [], hosts: [], reads: [], writes: [], run: [], env: [], sys: [] };

Deno.test("flags() an entry that could become another flag or another path throws", () => {
  for (
    const path of [
      "",
      "/",
      "x",
      "./x",
      "/a,/b",
      "/a\n--allow-all",
      "/a/../b",
      "/a/.",
      "/a//b",
      "/a/",
    ]
  ) {
    throws(() => flags({ ...EMPTY, reads: [path] }, HOME), TypeError, JSON.stringify(path));
    throws(() => flags({ ...EMPTY, writes: [path] }, HOME), TypeError, JSON.stringify(path));
    throws(() => flags({ ...EMPTY, run: [path] }, HOME), TypeError, JSON.stringify(path));
  }
  for (
    const host of ["", "*", "*:443", "host", ":443", "a:1,b:2", "a:0", "unix:/x", "10.0.0.0/8:1"]
  ) {
    throws(() => flags({ ...EMPTY, hosts: [host] }, HOME), TypeError, JSON.stringify(host));
  }
  for (const name of ["PATH", "", "BOXMAKER_SECRET_", "BOXMAKER_SECRET_A,PATH", "DENO_DIR"]) {
    throws(() => flags({ ...EMPTY, env: [name] }, HOME), TypeError, JSON.stringify(name));
  }
});

Deno.test("flags() an empty row grants its home's name and nothing else", () => {
  deepStrictEqual(flags(EMPTY, HOME), ["--allow-env=BOXMAKER_HOME"]);
});

const segment = fc.stringMatching(/^[a-z0-9_. %#:-]{1,8}$/).filter((one) => !/^\.{1,2}$/.test(one));
const path = fc.array(segment, { minLength: 1, maxLength: 4 }).map((parts) =>
  `/${parts.join("/")}`
);
const paths = fc.array(path, { maxLength: 4 });

Deno.test("flags() every flag of every role is a list of exact entries", () => {
  fc.assert(fc.property(fc.constantFrom(...ROLES), paths, paths, (role, reads, writes) => {
    const made = flags(roleRow(role, HOME, { reads, writes }), HOME);
    for (const flag of made) {
      const [, kind, list] = flag.match(/^--allow-(net|read|write|run|env|sys)=(.+)$/s) ?? [];
      ok(kind !== undefined && list !== undefined, `a bare or unknown flag: ${flag}`);
      for (const entry of list.split(",")) {
        ok(!/[\n,]/.test(entry) && entry !== "", flag);
        if (kind === "read" || kind === "write") ok(entry.startsWith("/"), entry);
        if (kind === "net") ok(entry.startsWith("unix:/"), entry);
      }
    }
  }));
});

Deno.test("roleRow() grants no folder around any socket, and no cache folder", () => {
  for (const role of ROLES) {
    const granted = flags(roleRow(role, HOME, {}), HOME)
      .filter((flag) => /^--allow-(?:read|write)=/.test(flag))
      .flatMap((flag) => flag.replace(/^[^=]*=/, "").split(","));
    for (const entry of granted) {
      for (const name of Object.keys(SOCKETS)) {
        ok(!`${HOME}/run/${name}.sock`.startsWith(`${entry}/`), `${role}: ${entry} holds ${name}`);
      }
      ok(!`${HOME}/cache/${role}`.startsWith(entry), `${role}: ${entry} holds its cache`);
    }
  }
});

Deno.test("homeProblem() every home it accepts leaves room for every socket path", () => {
  const longest = `/${"x".repeat(74)}`;
  deepStrictEqual(homeProblem(longest), undefined);
  for (const name of ["broker-gateway/gateway", "owner-gateway/admin"] as const) {
    ok(socketPath(longest, name).length <= 107);
  }
  ok(homeProblem(`${longest}x`) !== undefined);
  ok(homeProblem("/ünïcödé".repeat(9)) !== undefined);
  for (const home of ["relative", "", "/a,b", "/a\nb"]) ok(homeProblem(home) !== undefined, home);
});
