// Guards the frame around every tool: one call, exact bytes, one result, and an end that is certain.
import { deepStrictEqual, ok as isTrue, strictEqual } from "node:assert";
import { seededRandom } from "../clock/random.ts";
import { err, ok } from "../results/result.ts";
import { denoFiles } from "./deno_tool.ts";
import { frameReader } from "./frames.ts";
import { EXIT_ABANDONED, type Host, MAX_CALL_BYTES, serveTool, type ToolBody } from "./sdk.ts";

interface Played {
  readonly exits: readonly number[];
  readonly output: string;
  readonly result: unknown;
  readonly problem: string | null;
}

/** Plays `input` to a tool; standard input then stays open until the tool has exited. */
async function play(
  input: readonly string[],
  body: ToolBody,
  isInputEnded = false,
): Promise<Played> {
  const waiting = input.map((text) => new TextEncoder().encode(text));
  const exits: number[] = [];
  const exited = Promise.withResolvers<null>();
  const output: number[] = [];
  let problem: string | null = null;
  const reader = frameReader((bytes) => output.push(...bytes));
  const host: Host = {
    read: () => {
      const next = waiting.shift();
      if (next !== undefined) return Promise.resolve(next);
      return isInputEnded ? Promise.resolve(null) : exited.promise;
    },
    write: (bytes) => {
      problem ??= reader.push(bytes);
      return Promise.resolve();
    },
    exit: (status) => {
      exits.push(status);
      exited.resolve(null);
    },
    files: denoFiles,
    random: seededRandom(1),
  };
  await serveTool(body, host);
  const bytes = reader.result();
  return {
    exits,
    problem,
    output: new TextDecoder().decode(Uint8Array.from(output)),
    result: bytes === null ? null : JSON.parse(new TextDecoder().decode(bytes)),
  };
}

const CALL = '{"args":{"a":"b"},"secrets":{"key":"s"}}\n';

Deno.test("serveTool() does nothing for a call that is not one", async () => {
  let ran = 0;
  const body: ToolBody = () => {
    ran++;
    return Promise.resolve(ok(""));
  };
  for (
    const line of ["", "x\n", "[]\n", '{"args":1,"secrets":{}}\n', '{"args":{}}\n', CALL.trim()]
  ) {
    const played = await play([line], body, true);
    deepStrictEqual([played.exits[0], played.result, ran], [EXIT_ABANDONED, null, 0], line);
  }
  const long = await play(
    [`{"args":{"a":"${"x".repeat(MAX_CALL_BYTES)}"},"secrets":{}}\n`],
    body,
    true,
  );
  deepStrictEqual([long.exits[0], ran], [EXIT_ABANDONED, 0]);
});

Deno.test("serveTool() ends at once when whoever asked is gone", async () => {
  const never: ToolBody = async (call) => {
    await call.write("x");
    await new Promise<void>((resolve) => setTimeout(resolve, 1));
    return ok("");
  };
  const played = await play([CALL], never, true);
  strictEqual(played.exits[0], EXIT_ABANDONED);
});

Deno.test("serveTool() sends exact bytes and says how many", async () => {
  const played = await play([CALL.slice(0, 9), CALL.slice(9)], async (call) => {
    deepStrictEqual([call.args["a"], call.secrets["key"]], ["b", "s"]);
    await call.write("ä".repeat(100_000));
    return ok("all of it");
  });
  strictEqual(played.output, "ä".repeat(100_000));
  deepStrictEqual(played.result, { ok: true, bytes: 200_000, note: "all of it" });
  deepStrictEqual([played.problem, played.exits[0]], [null, 0]);
});

Deno.test("serveTool() turns failures and exceptions into a result", async () => {
  const failed = await play([CALL], () => Promise.resolve(err("not-found", "It is gone")));
  deepStrictEqual(failed.result, { ok: false, code: "not-found", message: "It is gone" });
  const thrown = await play([CALL], () => Promise.reject(new Error("boom")));
  deepStrictEqual(thrown.result, {
    ok: false,
    code: "internal",
    message: "The tool failed: boom",
  });
  isTrue(thrown.exits[0] === 0);
});
