// What the owner sees before saying yes: every field of the plan that would be executed, in full.
//
// 1. Nothing the model wrote stands outside an indented, escaped block. `|` starts a line of a text,
//    `>` continues it; so no text can look like a field, and different texts never look the same.
// 2. Nothing is shortened. The code stands in the last line alone: who can answer has seen the end.
import { isoTime } from "../../shared/clock/clock.ts";
import { fullLabelText } from "../../shared/labels/label.ts";
import { escapeForDisplay, oddities } from "../../shared/text/escape.ts";
import { canonicalText, encodeUtf8 } from "../../shared/wire/codec.ts";
import type { Approval } from "./approvals.ts";
import { type Plan, planHash } from "./plan.ts";
import type { SessionState } from "./taint.ts";

const COLUMNS = 100;
const TOKEN = /\\u\{[0-9a-f]+\}|\\\\|./gu;

/** The lines to show, in order, escaped and complete. `raises`: what raised the session's label. */
export function renderApproval(
  { plan, code, created_unix_ms, expires_unix_ms }: Pick<
    Approval,
    "plan" | "code" | "created_unix_ms" | "expires_unix_ms"
  >,
  raises: SessionState["raises"],
): readonly string[] {
  const argumentLines = leaves("", plan.args).flatMap(([name, value]) => argument(name, value));
  return [
    `May this call run? Tool: ${plan.tool}`,
    ...(argumentLines.length === 0 ? ["Arguments: none"] : argumentLines),
    ...mounts(plan),
    `Network: ${plan.hosts.length === 0 ? "none" : plan.hosts.map(inline).join(" ")}`,
    `Secret: ${
      plan.secret === null ? "none" : `${inline(plan.secret.name)} as ${inline(plan.secret.as)}`
    }`,
    `Runs in: ${where(plan)}`,
    `Limits: ${plan.limits.timeout_s} s, ${plan.limits.output_bytes} bytes of output, ` +
    `${plan.limits.memory_mb} MB, ${plan.limits.pids} processes`,
    `Session: ${plan.session}, ${fullLabelText(plan.label)}`,
    ...raises.map((raise) =>
      `  raised to ${fullLabelText(raise.label)} at ${inline(raise.time)}: ${inline(raise.why)}`
    ),
    `Result will be: ${fullLabelText(plan.result_label)}`,
    `Asked by grant: ${inline(plan.grant.name)}, SHA-256 ${plan.grant.sha256}`,
    `Call: ${plan.call} in turn ${plan.turn}`,
    `Tool's description: SHA-256 ${plan.tool_sha256}, catalogue ${plan.catalog}`,
    `Plan: SHA-256 ${planHash(plan)}`,
    `May be answered: ${
      plan.approver === "any" ? "in Mattermost or with bxctl" : "with bxctl only"
    }`,
    `Asked at ${isoTime(created_unix_ms)}, expires at ${isoTime(expires_unix_ms)}`,
    `Answer: !approve ${code} or !deny ${code}`,
  ];
}

function inline(text: string): string {
  return escapeForDisplay(text, "line");
}

function where({ where: place, image }: Plan): string {
  if (place === "container") return `a fresh container of image ${image ?? "none"}`;
  return place === "caller" ? "loopd" : place;
}

function mounts(plan: Plan): string[] {
  if (plan.mounts.length === 0) return ["Opens: no file or folder"];
  return plan.mounts.flatMap((mount) => [
    `Opens, after links, for ${mount.write ? "reading AND WRITING" : "reading"}:`,
    ...block(mount.path),
  ]);
}

/** Every value of the arguments with its place, lists and records taken apart. */
function leaves(name: string, value: unknown): (readonly [string, unknown])[] {
  if (Array.isArray(value) && value.length > 0) {
    return value.flatMap((item, i) => leaves(`${name}[${i}]`, item));
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) {
    const entries = Object.entries(value);
    if (entries.length > 0 || name === "") {
      return entries.flatMap(([key, item]) =>
        leaves(name === "" ? inline(key) : `${name}.${inline(key)}`, item)
      );
    }
  }
  return [[name, value]];
}

function argument(name: string, value: unknown): string[] {
  if (typeof value !== "string") return [`Argument ${name}: ${canonicalText(value)}`];
  const count = value.split("\n").length;
  const size = `${encodeUtf8(value).length} bytes, ${count} ${count === 1 ? "line" : "lines"}`;
  return [
    `Argument ${name} (text, ${size}):`,
    ...block(value),
    ...oddities(value).map((what) => `  ! it has ${what}`),
  ];
}

function block(text: string): string[] {
  return text.split("\n").flatMap((line) => {
    const rows = wrapped(escapeForDisplay(line, "line"));
    return rows.map((row, i) => `  ${i === 0 ? "|" : ">"} ${row}`);
  });
}

/** Rows of at most COLUMNS characters; an escape is never torn. */
function wrapped(line: string): string[] {
  const rows: string[] = [];
  let row = "";
  let width = 0;
  for (const [token] of line.matchAll(TOKEN)) {
    const size = [...token].length;
    if (width + size > COLUMNS) {
      rows.push(row);
      row = "";
      width = 0;
    }
    row += token;
    width += size;
  }
  return [...rows, row];
}
