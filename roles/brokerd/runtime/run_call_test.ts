// Guards the life of one call: whatever Podman or the tool does, the outcome has its right name, output
// is capped and exact, and nothing of the call is left running.
import { deepStrictEqual, ok as isTrue, rejects, strictEqual } from "node:assert";
import type { Clock } from "../../../shared/clock/clock.ts";
import { err, ok } from "../../../shared/results/result.ts";
import { outputFrame, resultFrame } from "../../../shared/tool/frames.ts";
import type { RunPlan } from "./plan.ts";
import { podmanOver } from "./podman.ts";
import type { ProcessPort, Spawned } from "./process.ts";
import { runCall } from "./run_call.ts";

const PLAN: RunPlan = {
  callId: "c-01ARZ3NDEKTSV4RRFFQ69G5FAV",
  tool: "look",
  image: "0".repeat(64),
  argsJson: "{}",
  secretsJson: null,
  mounts: [],
  map: "blind",
  limits: { timeout_s: 5, output_bytes: 10, memory_mb: 64, pids: 32 },
  egressFolder: null,
  flags: [],
};
const CALL = { name: "bx-c", argv: ["run"], line: new Uint8Array([1]) };
const bytes = (text: string) => new TextEncoder().encode(text);
const DONE = (count: number) => resultFrame(`{"ok":true,"bytes":${count},"note":"n"}`);

/** A pipe that a test fills and ends. */
function pipe() {
  const stream = new TransformStream<Uint8Array, Uint8Array>(undefined, undefined, {
    highWaterMark: 64,
  });
  const writer = stream.writable.getWriter();
  const reader = stream.readable.getReader();
  async function* pieces() {
    for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value;
  }
  return {
    pieces: pieces(),
    put: (chunk: Uint8Array) => void writer.write(chunk).catch(() => {}),
    end: () => void writer.close().catch(() => {}),
  };
}

interface Container {
  readonly put: (chunk: Uint8Array) => void;
  readonly log: (text: string) => void;
  /** The tool ends: its pipes close. */
  readonly end: () => void;
  /** Podman's client ends with `status`. */
  readonly started: (status: number) => void;
}

/** A Podman with one container, which does what `act` says; `asked` collects other commands. */
function fakePodman(act: (container: Container) => void, isDeaf = false) {
  const asked: string[] = [];
  const seen = { isInputClosed: false, isAbandoned: false, kills: 0 };
  let container: Container | null = null;
  const simple = (): Spawned => {
    const out = pipe();
    out.end();
    const errors = pipe();
    errors.end();
    return {
      write: () => Promise.resolve(true),
      closeInput: () => Promise.resolve(),
      stdout: out.pieces,
      stderr: errors.pieces,
      abandon: () => {},
      exit: Promise.resolve(0),
      kill: () => {},
    };
  };
  const port: ProcessPort = {
    spawn(args) {
      if (args[0] !== "run") {
        asked.push(args.slice(-5).join(" "));
        if (args.includes("rm") && !isDeaf) container?.end();
        return ok(simple());
      }
      const out = pipe();
      const errors = pipe();
      const exit = Promise.withResolvers<number>();
      container = {
        put: out.put,
        log: (text) => errors.put(bytes(text)),
        end: () => {
          out.end();
          errors.end();
        },
        started: exit.resolve,
      };
      queueMicrotask(() => container && act(container));
      return ok({
        write: () => Promise.resolve(true),
        closeInput: () => {
          seen.isInputClosed = true;
          return Promise.resolve();
        },
        stdout: out.pieces,
        stderr: errors.pieces,
        abandon: () => {
          seen.isAbandoned = true;
          container?.end();
        },
        exit: exit.promise,
        kill: () => {
          seen.kills++;
          exit.resolve(137);
        },
      });
    },
  };
  return { port, asked, seen };
}

/** A clock on which sleeps of these lengths are over at once and all others never. */
function clockWith(...over: readonly number[]): Clock {
  return {
    nowUnixMs: () => 0,
    monotonicMs: () => 0,
    sleep: (ms, signal) =>
      over.includes(ms) ? Promise.resolve() : new Promise((resolve) => {
        if (signal?.aborted) resolve();
        signal?.addEventListener("abort", () => resolve());
      }),
  };
}

const REMOVED = "-f -t 0 --ignore bx-c";

async function run(fake: ReturnType<typeof fakePodman>, clock = clockWith(), signal?: AbortSignal) {
  const output: number[] = [];
  const outcome = await runCall(
    CALL,
    PLAN,
    {
      onOutput: (piece) => output.push(...piece),
      signal: signal ?? new AbortController().signal,
    },
    { podman: podmanOver(fake.port, clock, "runc"), clock },
  );
  return { outcome, output: new TextDecoder().decode(Uint8Array.from(output)) };
}

Deno.test("runCall() a flood is cut at the cap, exactly, and its container removed", async () => {
  const fake = fakePodman((c) => {
    c.started(0);
    c.put(outputFrame(bytes("0123456")));
    c.put(outputFrame(bytes("789abcdef")));
    c.put(outputFrame(bytes("more")));
  });
  const { outcome, output } = await run(fake);
  deepStrictEqual([outcome.status, output], ["output_capped", "0123456789"]);
  deepStrictEqual(fake.asked, [REMOVED]);
});

Deno.test("runCall() a tool that writes past the frames has failed and is removed", async () => {
  const fake = fakePodman((c) => {
    c.started(0);
    c.put(bytes("console.log\n"));
  });
  const { outcome, output } = await run(fake);
  deepStrictEqual([outcome.status, output, fake.asked], ["tool_failed", "", [REMOVED]]);
});

Deno.test("runCall() a client in the middle of a start is never killed", async () => {
  const fake = fakePodman((c) => {
    c.put(bytes("console.log\n"));
    setTimeout(() => c.started(0), 5);
  });
  const { outcome } = await run(fake);
  deepStrictEqual([outcome.status, fake.seen.kills, fake.asked], ["tool_failed", 0, [REMOVED]]);
});

Deno.test("runCall() a tool that ends without a result has failed, whatever it printed", async () => {
  for (const stream of [[], [outputFrame(bytes("abc"))], [DONE(0).subarray(0, 9)]]) {
    const fake = fakePodman((c) => {
      c.started(0);
      for (const chunk of stream) c.put(chunk);
      c.end();
    });
    const { outcome } = await run(fake);
    strictEqual(outcome.status, "tool_failed");
    deepStrictEqual(fake.asked, [REMOVED]);
  }
});

Deno.test("runCall() a result that does not agree with the output is no success", async () => {
  for (const frame of [DONE(4), resultFrame("{}"), resultFrame('{"ok":true}')]) {
    const fake = fakePodman((c) => {
      c.started(0);
      c.put(outputFrame(bytes("abc")));
      c.put(frame);
      c.end();
    });
    strictEqual((await run(fake)).outcome.status, "tool_failed");
  }
});

Deno.test("runCall() a failed client means the tool never ran, and its text stays with the owner", async () => {
  const fake = fakePodman((c) => {
    c.log("Error: statfs /home/owner/x: no such file or directory");
    c.end();
    c.started(125);
  });
  const { outcome } = await run(fake);
  deepStrictEqual([outcome.status, outcome.code], ["could_not_start", "mount-refused"]);
  isTrue(outcome.log.includes("/home/owner/x") && !outcome.message.includes("/home"));
  deepStrictEqual(fake.asked, [REMOVED]);
});

Deno.test("runCall() a name in use is another start of this call: nothing of it is removed", async () => {
  const fake = fakePodman((c) => {
    c.log('Error: the container name "bx-c" is already in use by 1234');
    c.end();
    c.started(125);
  });
  const { outcome } = await run(fake);
  deepStrictEqual(
    [outcome.status, outcome.code, fake.asked],
    ["could_not_start", "call-already-started", []],
  );
});

Deno.test("runCall() a tool that hangs is ended at its limit", async () => {
  const fake = fakePodman((c) => c.started(0));
  const { outcome } = await run(fake, clockWith(5_000));
  deepStrictEqual([outcome.status, fake.asked], ["timeout", [REMOVED]]);
  strictEqual(outcome.message, "The tool was ended after 5 s");
});

Deno.test("runCall() a Podman that hangs is ended, and the call could not start", async () => {
  const fake = fakePodman(() => {});
  const { outcome } = await run(fake, clockWith(60_000));
  deepStrictEqual([outcome.status, outcome.code], ["could_not_start", "container-not-started"]);
  strictEqual(fake.seen.kills, 1);
  isTrue(fake.asked.includes(REMOVED));
});

Deno.test("runCall() a stop ends the call, also before it has started", async () => {
  const stop = new AbortController();
  const fake = fakePodman((c) => {
    c.started(0);
    stop.abort();
  });
  const { outcome } = await run(fake, clockWith(), stop.signal);
  deepStrictEqual([outcome.status, fake.asked], ["killed", [REMOVED]]);
  const never = fakePodman(() => isTrue(false));
  deepStrictEqual(
    [(await run(never, clockWith(), stop.signal)).outcome.status, never.asked],
    ["killed", []],
  );
});

Deno.test("runCall() pipes that a removed container still holds are let go", async () => {
  const fake = fakePodman((c) => c.started(0), true);
  const { outcome } = await run(fake, clockWith(5_000));
  strictEqual(outcome.status, "timeout");
  isTrue(fake.seen.isAbandoned);
});

Deno.test("runCall() a tool that stays after its result is removed and has still succeeded", async () => {
  const fake = fakePodman((c) => {
    c.started(0);
    c.put(DONE(0));
  });
  const { outcome } = await run(fake, clockWith(2_000));
  deepStrictEqual([outcome.status, fake.asked], ["ok", [REMOVED]]);
});

Deno.test("runCall() a tool's own failure is told in its words, memory by name", async () => {
  const failed = fakePodman((c) => {
    c.started(0);
    c.put(resultFrame('{"ok":false,"code":"not-found","message":"The file does not exist"}'));
    c.end();
  });
  const first = await run(failed);
  deepStrictEqual(
    [first.outcome.status, first.outcome.message, failed.asked],
    ["tool_failed", "The file does not exist", []],
  );
  const starved = fakePodman((c) => {
    c.started(0);
    c.log("Fatal JavaScript out of memory: Reached heap limit");
    c.end();
  });
  strictEqual((await run(starved)).outcome.message, "The tool ran out of its 64 MB of memory");
});

Deno.test("runCall() an ordinary call asks Podman for nothing more", async () => {
  const fake = fakePodman((c) => {
    c.put(outputFrame(bytes("0123456789")));
    c.put(DONE(10));
    c.started(0);
    c.end();
  });
  const { outcome, output } = await run(fake);
  deepStrictEqual(
    [outcome.status, outcome.message, output, fake.asked],
    ["ok", "n", "0123456789", []],
  );
  isTrue(fake.seen.isInputClosed);
});

Deno.test("runCall() a receiver that throws leaves no container", async () => {
  const fake = fakePodman((c) => {
    c.started(0);
    c.put(outputFrame(bytes("x")));
  });
  const clock = clockWith();
  const io = {
    onOutput: () => {
      throw new Error("bug");
    },
    signal: new AbortController().signal,
  };
  const parts = { podman: podmanOver(fake.port, clock, "runc"), clock };
  await rejects(() => runCall(CALL, PLAN, io, parts), /bug/);
  deepStrictEqual(fake.asked, [REMOVED]);
});

Deno.test("runCall() a Podman that is not there is named", async () => {
  const port: ProcessPort = { spawn: () => err("runtime-unavailable", "gone") };
  const fake = { port, asked: [], seen: { isInputClosed: false, isAbandoned: false, kills: 0 } };
  const { outcome } = await run(fake);
  deepStrictEqual([outcome.status, outcome.code], ["could_not_start", "runtime-unavailable"]);
});

Deno.test("podmanOver() an answer that does not come, and pipes that somebody else holds, are given up", async () => {
  const held = pipe();
  const exit = Promise.withResolvers<number>();
  const port: ProcessPort = {
    spawn: () =>
      ok({
        write: () => Promise.resolve(true),
        closeInput: () => Promise.resolve(),
        stdout: held.pieces,
        stderr: held.pieces,
        abandon: held.end,
        exit: exit.promise,
        kill: () => exit.resolve(137),
      }),
  };
  const answered = await podmanOver(port, clockWith(60_000), "runc").ask(["info"]);
  strictEqual(!answered.ok && answered.code, "runtime-unavailable");
});
