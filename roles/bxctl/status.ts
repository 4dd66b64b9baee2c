// `status` and `version`: every role asked at once, each given little time. inferproxy is told of
// by loopd and egressd by brokerd, because bxctl may reach neither.
import { isoTime } from "../../shared/clock/clock.ts";
import type { Result } from "../../shared/results/result.ts";
import { VERSION } from "../../shared/version/version.ts";
import { BROKER_STATUS } from "../../shared/wire/broker_owner.ts";
import type { BodyOf } from "../../shared/wire/exchange.ts";
import { GATEWAY_STATUS } from "../../shared/wire/gateway_owner.ts";
import { LOOP_STATUS } from "../../shared/wire/loop.ts";
import { MEMORY_STATUS } from "../../shared/wire/memory.ts";
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
import { shown, table, tint } from "./terminal.ts";

const PATIENCE_MS = 800;

interface Row {
  readonly role: string;
  readonly is_up: boolean;
  readonly version: string | null;
  readonly summary: string;
  readonly problems: readonly { code: string; detail: string }[];
}

type Told = BodyOf<typeof GATEWAY_STATUS["replies"][number]>;

function row(
  role: string,
  reply: Result<{ body: Pick<Told, "version" | "summary" | "problems"> }>,
): Row {
  if (!reply.ok) {
    const problems = [{ code: reply.code, detail: reply.detail }];
    return { role, is_up: false, version: null, summary: reply.detail, problems };
  }
  const { version, summary, problems } = reply.value.body;
  return { role, is_up: true, version, summary, problems };
}

export async function askAll(context: Context) {
  const over = new AbortController();
  const done = new AbortController();
  // A role that only says it is busy is given no more time than one that says nothing.
  const limit = context.clock.sleep(PATIENCE_MS + 100, done.signal).then(() => over.abort());
  const options = { silenceMs: PATIENCE_MS, signal: over.signal };
  const answers = await Promise.all([
    ask(context, "owner-loop/admin", LOOP_STATUS, {}, options),
    ask(context, "owner-broker/admin", BROKER_STATUS, {}, options),
    ask(context, "owner-memory/admin", MEMORY_STATUS, {}, options),
    ask(context, "owner-gateway/admin", GATEWAY_STATUS, {}, options),
  ]);
  done.abort();
  await limit;
  const [loop, broker, memory, gateway] = answers;
  return { loop, broker, memory, gateway };
}

type Answers = Awaited<ReturnType<typeof askAll>>;

function told(role: string, by: string, part: { is_up: boolean; detail: string } | null): Row {
  const { is_up, detail } = part ?? { is_up: false, detail: `Unknown, as ${by} does not answer` };
  return { role, is_up, version: null, summary: detail, problems: [] };
}

export function rowsOf(answers: Answers): Row[] {
  const { loop, broker, memory, gateway } = answers;
  const model = loop.ok ? loop.value.body.model : null;
  const egress = broker.ok ? broker.value.body.egress : null;
  return [
    row("gatewayd", gateway),
    row("loopd", loop),
    told("inferproxy", "loopd", model && { is_up: model.is_reachable, detail: modelLine(model) }),
    row("brokerd", broker),
    told("egressd", "brokerd", egress && { is_up: egress.is_reachable, detail: egress.detail }),
    row("memoryd", memory),
  ];
}

function modelLine(
  model: BodyOf<typeof LOOP_STATUS["replies"][number]>["model"],
): string {
  if (!model.is_reachable) return "The model server does not answer through it";
  const parts = [model.model, model.build, model.slots && `${model.slots} slots`];
  const context = model.n_ctx && `${model.n_ctx} tokens of context`;
  return `Model server: ${[...parts, context].filter((part) => part).join(", ")}`;
}

/** A loss is no fault: the server is shared and may unload the model. */
function cacheLine(
  { measured, losses, last }: BodyOf<typeof LOOP_STATUS["replies"][number]>["cache"],
) {
  if (last === null) return "";
  return `${losses} of ${measured} requests found another cache than expected, the last at ` +
    `${isoTime(last.time_unix_ms)}: ${last.reused} of ${last.expected} tokens reused ` +
    `(${shown(last.guess)}): bxctl cache\n`;
}

function render(context: Context, answers: Answers, rows: readonly Row[]): string {
  const { terminal } = context;
  const lines = table(rows.map((one) => [one.role, one.is_up ? "up" : "DOWN", one.summary]));
  const problems = rows.filter((one) => one.is_up).flatMap(({ role, problems }) =>
    problems.map((p) => `${tint(terminal, "yellow", p.code)} (${role}): ${shown(p.detail)}\n`)
  );
  const stopped = answers.broker.ok && answers.broker.value.body.is_stopped
    ? `${
      tint(terminal, "red", "Stopped by the owner: every effect is refused until bxctl resume")
    }\n`
    : "";
  const waiting = answers.broker.ok ? answers.broker.value.body.approvals_pending : 0;
  const questions = waiting === 0 ? "" : `${waiting} waiting for your answer: bxctl approvals\n`;
  const cache = answers.loop.ok ? cacheLine(answers.loop.value.body.cache) : "";
  return lines + problems.join("") + stopped + questions + cache;
}

const status: Run = async (context) => {
  const answers = await askAll(context);
  const rows = rowsOf(answers);
  const isHealthy = rows.every((one) => one.is_up && one.problems.length === 0) &&
    answers.broker.ok && !answers.broker.value.body.is_stopped;
  const body = (reply: Result<{ body: unknown }>) => reply.ok ? reply.value.body : null;
  const value = {
    is_healthy: isHealthy,
    roles: rows,
    loopd: body(answers.loop),
    brokerd: body(answers.broker),
    memoryd: body(answers.memory),
    gatewayd: body(answers.gateway),
  };
  print(context, value, render(context, answers, rows));
  return isHealthy ? EXIT_OK : EXIT_FAILED;
};

export const STATUS: Command = {
  summary: "every role, the model and what is wrong",
  forms: { "": form("status", [0, 0], {}, status) },
};

const version: Run = async (context) => {
  const rows = rowsOf(await askAll(context)).filter((one) => one.version !== null);
  const versions = Object.fromEntries(rows.map((one) => [one.role, one.version]));
  const value = { bxctl: VERSION, ...versions };
  return print(context, value, table(Object.entries(value).map((row) => row.map(String))));
};

export const VERSION_COMMAND: Command = {
  summary: "the version of bxctl and of each role that answers",
  forms: { "": form("version", [0, 0], {}, version) },
};
