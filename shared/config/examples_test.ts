// Keeps deploy/config/*.toml complete and true: each example parses under its role's strict schema,
// states every key with its description's subject, and shows the real defaults.
import { deepStrictEqual, ok } from "node:assert";
import { parse } from "smol-toml";
import { z } from "zod";
import { type Role, ROLES } from "../wire/sockets.ts";
import { BrokerdConfig } from "./brokerd.ts";
import { BxctlConfig } from "./bxctl.ts";
import { EgressdConfig } from "./egressd.ts";
import { GatewaydConfig } from "./gatewayd.ts";
import { InferproxyConfig } from "./inferproxy.ts";
import { LoopdConfig } from "./loopd.ts";
import { MemorydConfig } from "./memoryd.ts";

const SCHEMAS: Record<Role, z.ZodType> = {
  brokerd: BrokerdConfig,
  bxctl: BxctlConfig,
  egressd: EgressdConfig,
  gatewayd: GatewaydConfig,
  inferproxy: InferproxyConfig,
  loopd: LoopdConfig,
  memoryd: MemorydConfig,
};

function example(role: Role): string {
  return Deno.readTextFileSync(new URL(`../../deploy/config/${role}.toml`, import.meta.url));
}

/** Every leaf key of a JSON schema as `table.key`. */
function keysOf(schema: unknown, prefix = ""): string[] {
  const properties: unknown = Object(schema).properties;
  if (properties === undefined) return [prefix];
  return Object.entries(Object(properties)).flatMap(([key, inner]) =>
    keysOf(inner, prefix === "" ? key : `${prefix}.${key}`)
  );
}

/** Every key the text states, commented out or not, as `table.key`. */
function statedIn(text: string): Set<string> {
  const stated = new Set<string>();
  let table = "";
  for (const line of text.split("\n")) {
    const head = line.match(/^\[([a-z_.]+)\]$/);
    if (head !== null) stated.add(table = head[1] ?? "");
    const key = line.match(/^(?:# )?([a-z0-9_]+) = /);
    if (key !== null) stated.add(`${table}.${key[1]}`);
  }
  return stated;
}

for (const role of ROLES) {
  Deno.test(`deploy/config/${role}.toml an unknown key in it is refused`, () => {
    const text = `${example(role)}\n[no_such_table]\nx = 1\n`;
    ok(!SCHEMAS[role].safeParse(parse(text)).success);
  });

  Deno.test(`deploy/config/${role}.toml shows exactly the defaults`, () => {
    deepStrictEqual(SCHEMAS[role].parse(parse(example(role))), SCHEMAS[role].parse({}));
  });

  Deno.test(`deploy/config/${role}.toml states every key, and the commented ones are accepted`, () => {
    const stated = statedIn(example(role));
    const keys = keysOf(z.toJSONSchema(SCHEMAS[role], { io: "input", unrepresentable: "any" }));
    deepStrictEqual(keys.filter((key) => key !== "" && !stated.has(key)), []);
    const uncommented = example(role).replace(/^# ([a-z0-9_]+ = .*)$/gm, "$1");
    ok(SCHEMAS[role].safeParse(parse(uncommented)).success);
  });
}
