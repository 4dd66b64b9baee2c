// `doctor`: everything that is wrong, with what it means and what to do. It asks each role, as bxctl
// itself opens no file; a role that does not answer is a finding like any other.
import { ERRORS, isErrorCode } from "../../shared/results/codes.ts";
import { MEMORY_CHECK } from "../../shared/wire/memory.ts";
import {
  ask,
  type Command,
  type Context,
  EXIT_FAILED,
  EXIT_OK,
  form,
  print,
  type Run,
} from "./context.ts";
import { askAll, rowsOf } from "./status.ts";
import { progressLine, shown, tint } from "./terminal.ts";

interface Finding {
  readonly role: string;
  readonly code: string;
  readonly what: string;
  readonly detail: string;
  readonly todo: string;
}

const STOPPED: Finding = {
  role: "brokerd",
  code: "stopped",
  what: "You have stopped it: every effect is refused.",
  detail: "The stop holds until it is lifted, also over a restart.",
  todo: "Lift it with bxctl resume.",
};

function finding(role: string, { code, detail }: { code: string; detail: string }): Finding {
  const known = isErrorCode(code)
    ? ERRORS[code]
    : { what: "", todo: `Look for ${code} in docs/runbook.md.` };
  return { role, code, what: known.what, detail, todo: known.todo };
}

async function examined(context: Context): Promise<Finding[]> {
  const progress = progressLine(context.terminal);
  progress.show("asking every role");
  const answers = await askAll(context);
  const rows = rowsOf(answers);
  const told = rows.flatMap((row) => row.problems.map((one) => finding(row.role, one)));
  const down = rows.filter((row) => !row.is_up && row.problems.length === 0)
    .map((row) => finding(row.role, { code: "peer-down", detail: row.summary }));
  const stopped = answers.broker.ok && answers.broker.value.body.is_stopped ? [STOPPED] : [];
  progress.show("looking at memory: files, journal and index");
  const memory = answers.memory.ok
    ? await ask(context, "owner-memory/admin", MEMORY_CHECK, {})
    : null;
  progress.clear();
  const inMemory = memory === null ? [] : memory.ok ? memory.value.body.findings : [memory];
  const all = [...down, ...told, ...stopped, ...inMemory.map((one) => finding("memoryd", one))];
  return [...new Map(all.map((one) => [JSON.stringify(one), one])).values()];
}

function render(context: Context, findings: readonly Finding[]): string {
  if (findings.length === 0) return "Every role answers, and nothing is wrong.\n";
  return findings.map(({ role, code, what, detail, todo }) =>
    `${tint(context.terminal, "red", code)} (${role}): ${what}\n  ${shown(detail)}\n  ${
      shown(todo)
    }\n`
  ).join("");
}

const examine: Run = async (context) => {
  const findings = await examined(context);
  print(context, { is_healthy: findings.length === 0, findings }, render(context, findings));
  return findings.length === 0 ? EXIT_OK : EXIT_FAILED;
};

export const DOCTOR: Command = {
  summary: "look at every role, the memory files and the index for what is wrong",
  forms: { "": form("doctor", [0, 0], {}, examine) },
};
