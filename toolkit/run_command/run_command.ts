// One program of the image, with exactly the words of argv: no shell takes them apart. What it prints on
// either output comes in the order in which it was read; its exit status is told beside it.
import { err, messageOf, ok } from "../../shared/results/result.ts";
import { optionalText, type ToolBody, type ToolCall } from "../../shared/tool/sdk.ts";
import { encodeUtf8 } from "../../shared/wire/codec.ts";

export interface Spawned {
  readonly stdin: WritableStream<Uint8Array>;
  readonly stdout: ReadableStream<Uint8Array>;
  readonly stderr: ReadableStream<Uint8Array>;
  readonly status: Promise<{ readonly code: number; readonly signal: string | null }>;
}

/** Starts a program; throws when there is none or it may not be run. */
export type Spawn = (
  command: { readonly argv: readonly string[]; readonly cwd: string },
) => Spawned;

/** The tool's body over `spawn`. A status other than 0 is no failure of the tool. */
export function runCommand(spawn: Spawn): ToolBody {
  return async (call) => {
    const argv = argvOf(call);
    const workspace = optionalText(call, "workspace");
    const cwd = optionalText(call, "cwd");
    if (cwd !== null && workspace !== null) {
      return err("two-folders", "Give cwd or workspace, not both");
    }
    let child: Spawned;
    try {
      child = spawn({ argv, cwd: workspace ?? cwd ?? "/tmp" });
    } catch (thrown) {
      return err("not-started", `The program cannot be started: ${messageOf(thrown)}`);
    }
    const [, , , status] = await Promise.all([
      feed(child.stdin, optionalText(call, "stdin") ?? ""),
      pass(child.stdout, call),
      pass(child.stderr, call),
      child.status,
    ]);
    return ok(
      status.signal === null ? `exit status ${status.code}` : `ended by signal ${status.signal}`,
    );
  };
}

function argvOf(call: ToolCall): readonly string[] {
  const argv = call.args.argv;
  if (!Array.isArray(argv)) throw new TypeError("Argument argv is not a list");
  return argv.map(String);
}

async function feed(input: WritableStream<Uint8Array>, text: string): Promise<void> {
  const writer = input.getWriter();
  try {
    if (text !== "") await writer.write(encodeUtf8(text));
    await writer.close();
  } catch {
    // A program may end, or close its input, without having read all of it.
  }
}

async function pass(from: ReadableStream<Uint8Array>, call: ToolCall): Promise<void> {
  for await (const piece of from) await call.write(piece);
}
