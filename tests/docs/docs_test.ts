// Guards: "documents are part of the product and stay true". Each test reads the pages and compares
// them with the code, both ways.
import { deepStrictEqual, ok as isTrue, strictEqual } from "node:assert";
import { COMMANDS } from "../../roles/bxctl/commands.ts";
import { ERRORS } from "../../shared/results/codes.ts";
import { calledBy, ROLES, servedBy, SOCKETS } from "../../shared/wire/sockets.ts";

const ROOT = decodeURIComponent(new URL("../..", import.meta.url).pathname);
const read = (path: string) => Deno.readTextFileSync(`${ROOT}${path}`);

function pages(folder: string): string[] {
  return [...Deno.readDirSync(`${ROOT}${folder}`)].flatMap((entry) => {
    const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
    if (entry.isDirectory) {
      return ["node_modules", ".git", "build", ".cache"].includes(entry.name) ? [] : pages(path);
    }
    return entry.name.endsWith(".md") ? [path] : [];
  });
}

Deno.test("the runbook has one entry for each code, and no other", () => {
  const headings = [...read("docs/runbook.md").matchAll(/^## (.+)$/gm)].map((match) => match[1]);
  deepStrictEqual(headings.toSorted(), Object.keys(ERRORS).toSorted());
  for (const entry of read("docs/runbook.md").split(/^## /m).slice(1)) {
    const lines = entry.trim().split("\n");
    isTrue(lines.length >= 4, `too short: ${lines[0]}`);
  }
});

Deno.test("the socket table of the architecture page is the table of the code", () => {
  const rows = [
    ...read("docs/architecture.md").matchAll(/^\| `([^`]+\/[^`]+)` *\| (\w+) *\| (\w+) *\|$/gm),
  ];
  const told = rows.map(([, name, server, caller]) => [name, server, caller].join(" "));
  const real = Object.entries(SOCKETS).map(([name, row]) => `${name} ${row.server} ${row.caller}`);
  deepStrictEqual(told.toSorted(), real.toSorted());
});

Deno.test("each role's page names every socket that the role serves", () => {
  for (const role of ROLES) {
    const page = read(`roles/${role}/README.md`);
    for (const name of servedBy(role)) isTrue(page.includes(name), `${role}: ${name}`);
    const known = new Set<string>([...servedBy(role), ...calledBy(role)]);
    for (const [, name] of page.matchAll(/`([a-z]+-[a-z]+\/[a-z]+)`/g)) {
      isTrue(name !== undefined && known.has(name), `${role}: ${name} is none of its sockets`);
    }
    isTrue(page.split("\n").length <= 90, `${role}: longer than a page`);
  }
});

Deno.test("bxctl's page and the README name commands that exist, and bxctl's page all of them", () => {
  const page = read("roles/bxctl/README.md");
  for (const name of Object.keys(COMMANDS)) isTrue(page.includes(`\`${name}\``), name);
  for (const path of pages("")) {
    for (const [, name] of read(path).matchAll(/`bxctl ([a-z]+)/g)) {
      isTrue(name !== undefined && Object.hasOwn(COMMANDS, name), `${path}: bxctl ${name}`);
    }
  }
});

Deno.test("every link between pages leads to a file", () => {
  for (const path of pages("")) {
    const folder = path.includes("/") ? path.slice(0, path.lastIndexOf("/") + 1) : "";
    for (const [, target] of read(path).matchAll(/\]\(([^)#]+)(?:#[^)]*)?\)/g)) {
      if (target === undefined || /^[a-z]+:/.test(target)) continue;
      const file = new URL(target, `file://${ROOT}${folder}`);
      isTrue(Deno.statSync(file).isFile || Deno.statSync(file).isDirectory, `${path}: ${target}`);
    }
  }
});

Deno.test("no page names a package registry's host, and every task in a page exists", () => {
  const { tasks } = JSON.parse(read("deno.json"));
  for (const path of pages("")) {
    const text = read(path);
    strictEqual(/registry\.|pypi\.org|npmjs|deb\.debian|crates\.io/.test(text), false, path);
    for (const [, name] of text.matchAll(/deno task ([a-z:-]+)/g)) {
      isTrue(name !== undefined && Object.hasOwn(tasks, name), `${path}: deno task ${name}`);
    }
  }
});

Deno.test("every journey's page has the end-to-end test of the same name", () => {
  const names = [...Deno.readDirSync(`${ROOT}docs/journeys`)].map((entry) => entry.name);
  isTrue(names.length >= 5);
  for (const name of names) {
    const test = `tests/e2e/${name.replace(/\.md$/, "").replaceAll("-", "_")}_test.ts`;
    isTrue(Deno.statSync(`${ROOT}${test}`).isFile, test);
  }
});
