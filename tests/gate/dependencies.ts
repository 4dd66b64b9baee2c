// The dependency audit: every direct package has a line in docs/dependencies.md with the version and
// licence that are really installed, and every package of the lock file has a permissive licence.

const PERMISSIVE = [
  "MIT",
  "ISC",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "Apache-2.0",
  "0BSD",
  "Unlicense",
];

type Package = { readonly name: string; readonly version: string; readonly licence: string };

/** What is wrong, one sentence each. */
export function dependencyProblems(source: string): string[] {
  const lock = JSON.parse(Deno.readTextFileSync(`${source}deno.lock`));
  const config = JSON.parse(Deno.readTextFileSync(`${source}deno.json`));
  const page = Deno.readTextFileSync(`${source}docs/dependencies.md`).replace(/ +/g, " ");
  const installed = Object.keys(lock.npm ?? {}).map((id) => installedPackage(source, id));
  const problems = installed.flatMap((one) =>
    PERMISSIVE.includes(one.licence) ? [] : [`${one.name} has licence ${one.licence}`]
  );
  for (const target of Object.values(config.imports ?? {})) {
    const id = String(target).replace(/^npm:/, "");
    const one = installed.find((item) => `${item.name}@${item.version}` === id);
    if (one === undefined) problems.push(`${id} is not the version of the lock file`);
    else if (!page.includes(`| ${one.name} | ${one.version} | ${one.licence} |`)) {
      problems.push(`docs/dependencies.md has no line for ${id} (${one.licence})`);
    }
  }
  for (const key of Object.keys(lock)) {
    if (!["version", "specifiers", "npm", "workspace"].includes(key)) {
      problems.push(`deno.lock holds ${key}: packages come from one registry`);
    }
  }
  return problems;
}

function installedPackage(source: string, id: string): Package {
  // A peer that was chosen for the package follows its version after an underscore.
  const [, name = "", version = ""] = /^(@?[^@]+)@([^_]+)/.exec(id) ?? [];
  const folder = `${name.replace("/", "+")}@${version}`;
  const path = `${source}node_modules/.deno/${folder}/node_modules/${name}/package.json`;
  const found = JSON.parse(Deno.readTextFileSync(path));
  return { name, version, licence: String(found.license) };
}
