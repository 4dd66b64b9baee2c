// The whole evaluation of one call, for the owner. It changes nothing and starts nothing.
import type { SessionId } from "../../shared/ids/ids.ts";
import { fullLabelText, type Label } from "../../shared/labels/label.ts";
import { escapeForDisplay } from "../../shared/text/escape.ts";
import { canonicalText } from "../../shared/wire/codec.ts";
import { parseArguments } from "./catalog.ts";
import { evaluate } from "./grant_match.ts";
import type { House } from "./house.ts";
import { placeOf } from "./plan.ts";
import { REASONS } from "./reasons.ts";
import { forbiddenBy, resolvePaths } from "./real_paths.ts";

export type Explained = {
  readonly verdict: "auto" | "ask" | "deny";
  readonly code: string;
  /** Escaped; each at most 1,000 characters. */
  readonly lines: readonly string[];
};

export function explain(
  house: Pick<House, "ports" | "tools" | "grants" | "sessions" | "stop">,
  asked: { readonly tool: string; readonly session: SessionId | null; readonly label: Label },
  argsText: string,
): Explained {
  const { tools, sessions, ports: { disk, clock, forbidden } } = house;
  const lines: string[] = [];
  const say = (line: string) => lines.push(escapeForDisplay(line, "line").slice(0, 1_000));
  const end = (verdict: Explained["verdict"], code: string): Explained => ({
    verdict,
    code,
    lines: lines.slice(0, 500),
  });
  const loaded = house.grants.current();
  for (const { name, problems } of loaded.summaries) {
    for (const problem of problems) say(`${name} does not count: ${problem}`);
  }
  const tool = tools.find(asked.tool);
  if (tool === null) {
    say(tools.problem?.detail ?? `There is no tool ${asked.tool}`);
    return end("deny", "unknown_tool");
  }
  say(`${asked.tool}: runs in ${placeOf(asked.tool)}, effect ${tool.manifest.effect}`);
  const args = parseArguments(tool, argsText);
  const paths = args.ok ? resolvePaths(disk, tool.manifest, args.value) : args;
  if (!args.ok || !paths.ok) {
    if (!paths.ok) say(paths.detail);
    return end("deny", "arguments_invalid");
  }
  say(`arguments ${canonicalText(args.value)}`);
  for (const path of paths.value) {
    say(
      `${path.argument} ${path.asked} is ${path.target}; opens ${path.opened}${
        path.write ? " for writing" : ""
      }`,
    );
    if (path.problem !== null) say(`  ${path.problem}`);
    const place = forbiddenBy(path.opened, forbidden);
    if (place === null) continue;
    say(`  path_forbidden: it and ${place} overlap`);
    return end("deny", "path_outside");
  }
  const session = asked.session === null ? null : sessions.find(asked.session);
  if (asked.session !== null && session === null) say(`${asked.session} was never opened`);
  const label = session?.label ?? asked.label;
  say(`session ${fullLabelText(label)}`);
  const verdict = evaluate(loaded.set, {
    tool: asked.tool,
    args: args.value,
    paths: paths.value,
    network: tool.manifest.network,
    job: session?.job ?? null,
    label,
    nowUnixMs: clock.nowUnixMs(),
    isStopped: house.stop.isStopped(),
    used: { turn: 0, day: 0 },
  });
  for (const { grant, said } of verdict.findings) say(`grant ${grant}: ${said}`);
  const code = verdict.verdict === "deny" ? verdict.code : verdict.verdict;
  // The grant that came nearest, or the one that denies.
  const nearest = verdict.findings.find(({ said }) =>
    said === code || (code === "denied_by_grant" && said === "deny")
  );
  const fitting = verdict.findings.filter(({ said }) => said === code)
    .map(({ grant }) => grant).join(" and by ");
  say(
    verdict.verdict === "deny"
      ? `deny: ${code}: ${REASONS[verdict.code]}${
        nearest === undefined ? "" : ` (${nearest.grant})`
      }`
      : `${code} by grant ${fitting}`,
  );
  if (verdict.verdict !== "deny") {
    const { result_class, untrusted } = verdict.grant;
    say(`its result will be ${fullLabelText({ class: result_class, untrusted })}`);
  }
  return end(verdict.verdict, code);
}
