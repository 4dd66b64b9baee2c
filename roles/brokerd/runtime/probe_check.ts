// What the probe saw from inside a container with the real flags, held against what must be true. One
// wall that is not there and nothing runs.
import { z } from "zod";
import { err, ok, type Result } from "../../../shared/results/result.ts";
import { decodeUtf8, parseJson } from "../../../shared/wire/codec.ts";

const Seen = z.strictObject({
  uid: z.int(),
  gid: z.int(),
  groups: z.string(),
  capabilities: z.array(z.string()),
  no_new_privileges: z.string(),
  seccomp: z.string(),
  interfaces: z.array(z.string()),
  mounts: z.array(z.string()),
  processes: z.array(z.string()),
  environment: z.array(z.string()),
  root_write: z.string(),
  connect: z.string(),
  listen: z.string(),
  command_line: z.string(),
});
export type Seen = z.output<typeof Seen>;

const ENVIRONMENT = "DENO_DIR DENO_NO_UPDATE_CHECK HOME HOSTNAME NO_COLOR";
/** Where a container of ours has mounts when no path was granted. */
const PLAIN_MOUNT =
  /^\/(?:$|dev(?:\/|$)|proc(?:\/|$)|sys(?:\/|$)|tmp$|etc\/hostname$|run\/\.containerenv$)/;

/** Parses the probe's output. Fails with `runtime-unsafe`. */
export function readProbe(output: Uint8Array): Result<Seen> {
  const text = decodeUtf8(output);
  const value = text.ok ? parseJson(text.value) : text;
  const parsed = value.ok ? Seen.safeParse(value.value) : null;
  return parsed?.success
    ? ok(parsed.data)
    : err("runtime-unsafe", "The probe's report has another form");
}

/**
 * Fails with `runtime-unsafe`, naming the first wall that is not as it must be. `granted` are the
 * destinations that this probe was given.
 */
export function checkProbe(seen: Seen, granted: readonly string[]): Result<null> {
  const isExpected = (path: string) => PLAIN_MOUNT.test(path) || granted.includes(path);
  const walls: readonly (readonly [string, boolean])[] = [
    ["the user is 1000:1000", seen.uid === 1000 && seen.gid === 1000],
    ["there is no further group", ["", "1000"].includes(seen.groups)],
    ["there is no capability", seen.capabilities.every((set) => /^0+$/.test(set))],
    ["privileges cannot be gained", seen.no_new_privileges === "1"],
    ["system calls are filtered", seen.seccomp === "2"],
    ["there is no interface but lo", seen.interfaces.join() === "lo"],
    ["nothing else is mounted", seen.mounts.every(isExpected)],
    ["there is one process", seen.processes.join() === "1"],
    ["the environment is ours", seen.environment.join(" ") === ENVIRONMENT],
    ["the root cannot be written", seen.root_write !== "allowed"],
    ["no address can be dialled", seen.connect === "PermissionDenied"],
    ["no port can be opened", seen.listen === "PermissionDenied"],
    ["the kernel's command line is hidden", seen.command_line !== "allowed"],
  ];
  const broken = walls.find(([, holds]) => !holds);
  return broken === undefined
    ? ok(null)
    : err("runtime-unsafe", `Inside a test container it does not hold that ${broken[0]}`);
}
