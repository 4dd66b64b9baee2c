// Runs one group of tests and reads the result from both the closing line and the exit status.
import { textLines } from "./text_lines.ts";

/** Files that may run beside one another, then those that start processes and want the machine. */
export const GROUPS: readonly Group[] = [
  {
    name: "unit",
    paths: ["shared", "roles", "toolkit", "launch", "deploy", "tests/lint", "tests/property"],
    flags: ["--parallel"],
  },
  {
    name: "house",
    paths: [
      "tests/boundary",
      "tests/doubles",
      "tests/attack",
      "tests/chaos",
      "tests/e2e",
      "tests/gate",
    ],
    flags: [],
  },
];

export type Group = {
  readonly name: string;
  readonly paths: readonly string[];
  readonly flags: readonly string[];
};

export type TestRun = {
  readonly passed: number;
  readonly failed: number;
  /** Names of the tests that were not run, each with its reason in its name. */
  readonly skipped: readonly string[];
  /** What is wrong with the run beside failed tests. */
  readonly problems: readonly string[];
};

const LIMIT_MS = 40 * 60_000;
const CLOSING =
  /^(ok|FAILED) \| (\d+) passed(?: \(\d+ steps?\))? \| (\d+) failed(?: \(\d+ steps?\))?(?: \| (\d+) ignored)?/;

/** Runs `group` below `source`, printing each file as it begins and every failure in full. */
export async function runTests(group: Group, source: string): Promise<TestRun> {
  const paths = group.paths.filter((path) => hasTests(`${source}${path}`));
  if (paths.length === 0) return { passed: 0, failed: 0, skipped: [], problems: [] };
  const child = new Deno.Command(Deno.execPath(), {
    args: ["test", "-A", "--no-prompt", ...group.flags, ...paths],
    cwd: source,
    env: { NO_COLOR: "1", DENO_JOBS: "2" },
    stdin: "null",
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  const limit = setTimeout(() => child.kill("SIGKILL"), LIMIT_MS);
  const lines: string[] = [];
  for await (const line of textLines(child.stdout)) {
    lines.push(line);
    if (line.startsWith("running ")) console.log(`       ${group.name}: ${line}`);
  }
  const status = await child.status;
  clearTimeout(limit);
  keepOutput(`${source}build/gate`, `${group.name}.log`, lines);
  const run = readRun(group.name, lines, status.code);
  if (run.failed > 0 || run.problems.length > 0) console.log(failureText(lines));
  console.log(
    `${run.failed + run.problems.length === 0 ? "ok    " : "FAILED"} tests ${group.name}: ` +
      `${run.passed} passed, ${run.failed} failed, ${run.skipped.length} skipped`,
  );
  for (const slow of slowest(lines, 5)) console.log(`       slow: ${slow}`);
  return run;
}

/** Reads what a test run said. Anything that is not a clean closing line is a problem. */
export function readRun(name: string, lines: readonly string[], code: number): TestRun {
  const closing = lines.map((line) => line.match(CLOSING)).filter((match) => match !== null).at(-1);
  const skipped = lines.flatMap((line) =>
    line.match(/^(.*) \.\.\. ignored(?: \(.*\))?$/)?.[1] ?? []
  );
  if (closing === undefined) {
    return {
      passed: 0,
      failed: 0,
      skipped,
      problems: [`${name}: no closing line (status ${code})`],
    };
  }
  const passed = Number(closing[2]);
  const failed = Number(closing[3]);
  const ignored = Number(closing[4] ?? 0);
  const problems: string[] = [];
  if (passed + failed + ignored === 0) problems.push(`${name}: no test was run`);
  if (ignored !== skipped.length) {
    problems.push(`${name}: ${ignored} ignored, not all of them named`);
  }
  if (code !== 0 && failed === 0) problems.push(`${name}: ended with status ${code}`);
  if (code === 0 && (failed > 0 || closing[1] === "FAILED")) {
    problems.push(`${name}: status 0 beside failures`);
  }
  return { passed, failed, skipped, problems };
}

/** The whole output, for whoever looks for more than the failures. */
function keepOutput(folder: string, name: string, lines: readonly string[]): void {
  Deno.mkdirSync(folder, { recursive: true });
  Deno.writeTextFileSync(`${folder}/${name}`, lines.join("\n") + "\n");
}

/** The tests that took longest, longest first: those of a minute or more, then seconds. */
export function slowest(lines: readonly string[], most: number): string[] {
  const timed = lines.flatMap((line) => {
    const [, name, minutes, seconds] =
      line.match(/^(.*) \.\.\. (?:ok|FAILED) \((?:(\d+)m)?(?:(\d+)s)?\)$/) ?? [];
    return name === undefined
      ? []
      : [{ name, s: Number(minutes ?? 0) * 60 + Number(seconds ?? 0) }];
  });
  return timed.toSorted((a, b) => b.s - a.s).slice(0, most).map(({ name, s }) => `${s} s ${name}`);
}

function failureText(lines: readonly string[]): string {
  const start = lines.findIndex((line) => line.trim() === "ERRORS");
  return lines.slice(start < 0 ? Math.max(0, lines.length - 60) : start).join("\n");
}

function hasTests(folder: string): boolean {
  try {
    for (const entry of Deno.readDirSync(folder)) {
      if (entry.isFile && entry.name.endsWith("_test.ts")) return true;
      if (entry.isDirectory && hasTests(`${folder}/${entry.name}`)) return true;
    }
  } catch (thrown) {
    if (!(thrown instanceof Deno.errors.NotFound)) throw thrown;
  }
  return false;
}
