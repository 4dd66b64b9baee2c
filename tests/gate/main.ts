// `deno task gate`: format, lint, types, every test that needs no device, dependencies and budgets.
// Its last line is `N passed, N failed, N skipped`, and its status is non-zero when anything failed.
// Reports only what it saw: a test run without a closing line, with no test, or below the stored
// number of tests is a failure, whatever its exit status.
import { budgetChecks, budgetTable } from "./budgets.ts";
import { dependencyProblems } from "./dependencies.ts";
import { runTool } from "./run_tool.ts";
import { GROUPS, runTests, type TestRun } from "./test_run.ts";

const SOURCE = decodeURIComponent(new URL("../../", import.meta.url).pathname);
const FLOOR_FILE = `${SOURCE}tests/floor.json`;

type Check = { readonly name: string; readonly problems: readonly string[] };

async function toolCheck(name: string, args: readonly string[]): Promise<Check> {
  let run = await runTool(Deno.execPath(), args, SOURCE);
  if (run.signal === "SIGSEGV") {
    // A crash of the tool says nothing about the code; a second one is a failure.
    console.log(`       ${name}: the tool itself crashed and runs once more`);
    run = await runTool(Deno.execPath(), args, SOURCE);
  }
  return { name, problems: run.code === 0 ? [] : [run.output] };
}

async function shellCheck(): Promise<Check> {
  const scripts = ["launch/serve", ...shellFiles("deploy")].map((path) => ["/bin/sh", path]);
  const problems: string[] = [];
  for (const [shell = "", script = ""] of [["/bin/bash", ".ci/run"], ...scripts]) {
    const run = await runTool(shell, ["-n", script], SOURCE);
    if (run.code !== 0) problems.push(run.output);
  }
  return { name: "shell syntax", problems };
}

function shellFiles(folder: string): string[] {
  return [...Deno.readDirSync(`${SOURCE}${folder}`)]
    .filter((entry) => entry.isFile && entry.name.endsWith(".sh"))
    .map((entry) => `${folder}/${entry.name}`);
}

/** The checks that come before any test: a type error must have its own message. */
async function firstChecks(): Promise<Check[]> {
  const checks: Check[] = [];
  const say = (check: Check) => {
    report(check);
    checks.push(check);
  };
  say(await toolCheck("format", ["fmt", "--check"]));
  say(await toolCheck("lint", ["lint"]));
  say(await toolCheck("types", ["check", "."]));
  say(await shellCheck());
  say({ name: "dependencies", problems: dependencyProblems(SOURCE) });
  for (const check of budgetChecks(SOURCE)) say(check);
  return checks;
}

function report(check: Check): void {
  console.log(`${check.problems.length === 0 ? "ok    " : "FAILED"} ${check.name}`);
  for (const problem of check.problems) console.log(problem.trimEnd());
}

function floorCheck(runs: readonly TestRun[]): Check {
  const floor: unknown = JSON.parse(Deno.readTextFileSync(FLOOR_FILE));
  const least = Number(Object(floor).tests);
  const known = runs.reduce((sum, run) => sum + run.passed + run.failed + run.skipped.length, 0);
  const problems = known >= least ? [] : [`${known} tests, fewer than the stored ${least}`];
  return { name: `at least ${least} tests`, problems };
}

async function main(): Promise<number> {
  const startedMs = performance.now();
  if (Deno.uid() === 0) console.log("gate: running as root; tests that need an ordinary user skip");
  const checks = await firstChecks();
  const runs: TestRun[] = [];
  for (const group of GROUPS) runs.push(await runTests(group, SOURCE));
  const floor = floorCheck(runs);
  report(floor);
  checks.push(floor);
  console.log(budgetTable(SOURCE));
  const skipped = runs.flatMap((run) => run.skipped);
  for (const name of skipped) console.log(`skipped: ${name}`);
  const broken = [
    ...checks.filter((check) => check.problems.length > 0).map((check) => check.name),
    ...runs.flatMap((run) => run.problems),
  ];
  for (const name of broken) console.log(`failed: ${name}`);
  const failedTests = runs.reduce((sum, run) => sum + run.failed, 0);
  const passed = checks.filter((check) => check.problems.length === 0).length +
    runs.reduce((sum, run) => sum + run.passed, 0);
  const failed = failedTests + broken.length;
  console.log(`gate: ${Math.round((performance.now() - startedMs) / 1000)} s`);
  console.log(`${passed} passed, ${failed} failed, ${skipped.length} skipped`);
  return failed === 0 ? 0 : 1;
}

if (import.meta.main) Deno.exit(await main());
