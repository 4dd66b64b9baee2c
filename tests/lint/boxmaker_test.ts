// Guards the promise that what flags and types cannot refuse is refused by lint: each row is a piece
// of source that one rule must report, at a path where the rule holds.
import { deepStrictEqual, ok } from "node:assert";
import { ALLOWED } from "./allowed.ts";
import { plugin } from "./boxmaker.ts";
import { SOURCE } from "./rooms.ts";

const HEADER = "// One job.\n";
const ROLE = "roles/loopd/turn.ts";
const bare = plugin({});

function reported(path: string, source: string): string[] {
  const found = Deno.lint.runPlugin(bare, `${SOURCE}${path}`, source);
  return [...new Set(found.map((one) => one.id.replace("boxmaker/", "")))];
}

const REFUSED: readonly (readonly [rule: string, path: string, source: string])[] = [
  ["role-boundary", ROLE, `import { x } from "../brokerd/decision.ts";`],
  ["role-boundary", ROLE, `import type { X } from "../brokerd/decision.ts";`],
  ["role-boundary", ROLE, `export { x } from "../brokerd/decision.ts";`],
  ["role-boundary", ROLE, `type X = import("../brokerd/decision.ts").X;`],
  ["role-boundary", ROLE, `await import("../brokerd/decision.ts");`],
  ["role-boundary", ROLE, `await import(name);`],
  ["role-boundary", ROLE, "await import(`./a.ts`);"],
  ["role-boundary", ROLE, `await import("data:text/javascript,1");`],
  ["role-boundary", ROLE, `import { x } from "https://example.org/x.ts";`],
  ["role-boundary", ROLE, `import { x } from "npm:zod";`],
  ["role-boundary", ROLE, `import { x } from "fast-check";`],
  ["role-boundary", ROLE, `import { x } from "../../../outside.ts";`],
  ["role-boundary", ROLE, `import { x } from "../../tests/doubles/x.ts";`],
  ["role-boundary", "shared/wire/x.ts", `import { x } from "../../roles/loopd/x.ts";`],
  ["role-boundary", "toolkit/a/x.ts", `import { x } from "../b/x.ts";`],
  ["role-boundary", "launch/x.ts", `import { x } from "../roles/loopd/main.ts";`],
  ["banned-module", ROLE, `import { run } from "node:vm";`],
  ["banned-module", ROLE, `import { connect } from "node:net";`],
  ["banned-module", "tests/x_test.ts", `import { run } from "node:vm";`],
  ["side-effect-import", ROLE, `import "./register.ts";`],
  ["new-worker", ROLE, `new Worker(new URL("./x.ts", import.meta.url), { type: "module" });`],
  ["literal-worker", ROLE, `new Worker(new URL(name, import.meta.url), { type: "module" });`],
  ["literal-worker", ROLE, `new Worker(code);`],
  ["meta-resolve", ROLE, `import.meta.resolve("./x.ts");`],
  ["made-code", ROLE, `eval("1");`],
  ["made-code", ROLE, `new Function("1");`],
  ["made-code", ROLE, `globalThis.eval("1");`],
  ["made-code", ROLE, `WebAssembly.compile(bytes);`],
  ["made-code", ROLE, `const url = "data:text/javascript,1";`],
  ["made-code", ROLE, "const url = `data:text/javascript,${code}`;"],
  ["made-code", ROLE, `URL.createObjectURL(blob);`],
  ["file-length", ROLE, "\n".repeat(501)],
  ["function-length", ROLE, `function f() {${"\n".repeat(81)}}`],
  ["function-length", ROLE, `const f = () => {${"\n".repeat(81)}};`],
  ["file-name", "roles/loopd/util.ts", ""],
  ["file-name", "roles/loopd/turn_helpers.ts", ""],
  ["file-name", "roles/loopd/mod.ts", ""],
  ["file-name", "roles/loopd/handler2.ts", ""],
  ["file-name", "roles/loopd/turnLog.ts", ""],
  ["no-any", ROLE, `const x: any = 1;`],
  ["no-as", ROLE, `const x = y as string;`],
  ["no-as", ROLE, `const x = y as unknown as string;`],
  ["no-as", ROLE, `const x = <string> y;`],
  ["no-non-null", ROLE, `const x = y!;`],
  ["export-star", ROLE, `export * from "./x.ts";`],
  ["default-export", ROLE, `export default 1;`],
  ["class-shape", ROLE, `class A { x = 1; }`],
  ["class-shape", ROLE, `class A extends B { #x = 1; }`],
  ["boolean-parameter", ROLE, `export function f(x: boolean) { return x; }`],
  ["boolean-parameter", ROLE, `export function f(x = true) { return x; }`],
  ["switch-default", ROLE, `switch (x) { case 1: break; }`],
  ["codec-only", ROLE, `JSON.parse(text);`],
  ["codec-only", ROLE, `globalThis.JSON.parse(text);`],
  ["codec-only", ROLE, `JSON["parse"](text);`],
  ["codec-only", ROLE, `new TextDecoder().decode(bytes);`],
  ["deno-port", ROLE, `Deno.readTextFileSync("/x");`],
  ["deno-port", ROLE, `globalThis.Deno.readTextFileSync("/x");`],
  ["deno-port", ROLE, `const runtime = Deno;`],
  ["main-only", ROLE, `Deno.exit(1);`],
  ["no-console", ROLE, `console.log("x");`],
  ["no-console", "roles/loopd/main.ts", `console.log("x");`],
  ["no-storage", ROLE, `localStorage.getItem("x");`],
  ["no-storage", ROLE, `await caches.open("x");`],
  ["no-storage", ROLE, `globalThis.localStorage.getItem("x");`],
  ["abstract-socket", ROLE, `connect({ transport: "unix", path: "\\0name" });`],
  ["abstract-socket", ROLE, `connect({ transport: "unix", path: "\\x00name" });`],
  ["time-and-chance", ROLE, `Date.now();`],
  ["time-and-chance", ROLE, `new Date();`],
  ["time-and-chance", ROLE, `Math.random();`],
  ["module-state", ROLE, `let count = 0;`],
  ["module-state", ROLE, `export let count = 0;`],
];

for (const [rule, path, source] of REFUSED) {
  const shown = source.replace(/\n+/g, " ").slice(0, 60);
  Deno.test(`boxmaker/${rule} refuses ${path}: ${shown}`, () => {
    const found = reported(path, HEADER + source);
    ok(found.includes(rule), `reported only ${JSON.stringify(found)}`);
  });
}

Deno.test("boxmaker/module-header refuses a file that opens with code", () => {
  deepStrictEqual(reported(ROLE, "export const X = 1;\n"), ["module-header"]);
});

Deno.test("plugin() every rule has a piece of source that it refuses", () => {
  const covered = new Set([...REFUSED.map(([rule]) => rule), "module-header"]);
  deepStrictEqual(Object.keys(bare.rules).filter((rule) => !covered.has(rule)), []);
});

Deno.test("plugin() leaves good source alone", () => {
  const source = `${HEADER}import { z } from "zod";
import { ok, type Result } from "../../shared/results/result.ts";
import { turn } from "./other.ts";
const KINDS = ["a", "b"] as const;
class SpentError extends Error {}
class Held {
  #x = 1;
  get() { return this.#x; }
}
export function f(text: string): Result<string> {
  switch (text) {
    case "a": return ok(String(KINDS.length));
    default: throw new SpentError(String([z, turn, Held]));
  }
}
`;
  deepStrictEqual(reported(ROLE, source), []);
});

for (const [path, rules] of Object.entries(ALLOWED)) {
  for (const rule of Object.keys(rules)) {
    Deno.test(`allowed.ts still needs ${rule} for ${path}`, () => {
      const source = Deno.readTextFileSync(`${SOURCE}${path}`);
      ok(reported(path, source).includes(rule));
    });
  }
}
