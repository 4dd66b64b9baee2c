// What must hold of a request before grants are even looked at: a known session, a known tool, exact
// arguments, paths that can be named.
import type { Disk } from "../../shared/disk/disk.ts";
import { type CallRequest, type Examined, invalid, refusal, type Refused } from "./call_state.ts";
import { parseArguments, type Tools } from "./catalog.ts";
import { forbiddenBy, resolvePaths } from "./real_paths.ts";
import type { Sessions } from "./taint.ts";

export type ExaminePorts = {
  readonly disk: Disk;
  readonly tools: Tools;
  readonly sessions: Sessions;
  readonly forbidden: readonly string[];
};

export type Named = Pick<Examined, "tool" | "args" | "paths"> & {
  /** The kept place that a path overlaps, or null. */
  readonly forbidden: string | null;
};

/** What a call names, whoever asks for it. */
export function nameAll(
  { disk, tools, forbidden }: Omit<ExaminePorts, "sessions">,
  name: string,
  argsText: string,
): Named | Refused {
  const tool = tools.find(name);
  if (tool === null) {
    if (tools.problem === null) return refusal("unknown_tool");
    const message = "The tool image is missing or damaged; the owner must build it.";
    return { outcome: "denied", code: tools.problem.code, message };
  }
  const args = parseArguments(tool, argsText);
  if (!args.ok) return invalid(args);
  const paths = resolvePaths(disk, tool.manifest, args.value);
  if (!paths.ok) return invalid(paths);
  const overlaps = paths.value.map(({ opened }) => forbiddenBy(opened, forbidden));
  const first = overlaps.find((place) => place !== null) ?? null;
  return { tool, args: args.value, paths: paths.value, forbidden: first };
}

/** Everything that must hold before grants are even looked at. */
export function examine(ports: ExaminePorts, request: CallRequest): Examined | Refused {
  const session = ports.sessions.find(request.session);
  if (session === null) return refusal("unknown_session");
  const named = nameAll(ports, request.tool, request.args);
  if ("outcome" in named) return named;
  return named.forbidden === null ? { session, ...named } : refusal("path_outside");
}
