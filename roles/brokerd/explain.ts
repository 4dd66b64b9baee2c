// The whole evaluation of one call, for the owner. It changes nothing and starts nothing.
import type { SessionId } from "../../shared/ids/ids.ts";
import { fullLabelText, type Label } from "../../shared/labels/label.ts";
import { escapeForDisplay } from "../../shared/text/escape.ts";
import { canonicalText } from "../../shared/wire/codec.ts";
import { nameAll } from "./examine.ts";
import { evaluate } from "./grant_match.ts";
import type { House } from "./house.ts";
import { placeOf } from "./plan.ts";
import { REASONS } from "./reasons.ts";

type Explained = {
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
  const named = nameAll({ disk, tools, forbidden }, asked.tool, argsText);
  if ("outcome" in named) {
    const { problem } = tools;
    say(named.code === problem?.code ? problem.detail : named.message);
    return end("deny", named.code);
  }
  const { tool, args, paths } = named;
  say(`${asked.tool}: runs in ${placeOf(asked.tool)}, effect ${tool.manifest.effect}`);
  say(`arguments ${canonicalText(args)}`);
  for (const { argument, asked, target, opened, write, problem } of paths) {
    say(`${argument} ${asked} is ${target}; opens ${opened}${write ? " for writing" : ""}`);
    if (problem !== null) say(`  ${problem}`);
  }
  if (named.forbidden !== null) {
    say(`path_forbidden: a path and ${named.forbidden} overlap`);
    return end("deny", "path_outside");
  }
  const session = asked.session === null ? null : sessions.find(asked.session);
  if (asked.session !== null && session === null) say(`${asked.session} was never opened`);
  const label = session?.label ?? asked.label;
  say(`session ${fullLabelText(label)}`);
  const verdict = evaluate(loaded.set, {
    tool: asked.tool,
    args,
    paths,
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
