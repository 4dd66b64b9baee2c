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

/** Everything that must hold before grants are even looked at. */
export function examine(ports: ExaminePorts, request: CallRequest): Examined | Refused {
  const session = ports.sessions.find(request.session);
  if (session === null) return refusal("unknown_session");
  const tool = ports.tools.find(request.tool);
  if (tool === null) {
    const { problem } = ports.tools;
    if (problem === null) return refusal("unknown_tool");
    return {
      ...refusal("unknown_tool"),
      code: problem.code,
      message: "The tool image is missing or damaged; the owner must build it.",
    };
  }
  const args = parseArguments(tool, request.args);
  if (!args.ok) return invalid(args);
  const paths = resolvePaths(ports.disk, tool.manifest, args.value);
  if (!paths.ok) return invalid(paths);
  const isForbidden = paths.value.some((path) =>
    forbiddenBy(path.opened, ports.forbidden) !== null
  );
  if (isForbidden) return refusal("path_outside");
  return { session, tool, args: args.value, paths: paths.value };
}
