// A program of the test image that does what no tool should, one thing a call.
import { runTool } from "../../../shared/tool/deno_tool.ts";
import { optionalText, textArgument, type ToolCall } from "../../../shared/tool/sdk.ts";
import { err, messageOf, ok } from "../../../shared/results/result.ts";

const ACTS: Readonly<Record<string, (call: ToolCall) => unknown>> = {
  async flood(call) {
    const piece = new Uint8Array(65_536).fill(120);
    for (let i = 0; i < 16_384; i++) await call.write(piece);
  },
  hang: () => new Promise<void>((resolve) => setTimeout(resolve, 600_000)),
  spin() {
    for (;;);
  },
  spin_on_output() {
    // The one writer that outlives its reader: console.log ignores a closed pipe.
    for (;;) console.log("x");
  },
  async write_on(call) {
    for (;;) {
      await call.write("x".repeat(65_536));
      await new Promise<void>((resolve) => setTimeout(resolve, 20));
    }
  },
  exit125() {
    Deno.exit(125);
  },
  silent() {
    Deno.exit(0);
  },
  unframed() {
    console.log("hello");
  },
  buffers() {
    const kept: Uint8Array[] = [];
    for (let i = 0; i < 4_096; i++) kept.push(new Uint8Array(1_048_576).fill(1));
    return kept.length;
  },
  heap() {
    const kept: number[][] = [];
    for (;;) kept.push(Array.from({ length: 100_000 }, (_, i) => i + 0.5));
  },
  async fill_scratch(call) {
    const piece = new Uint8Array(1_048_576);
    using file = await Deno.open("/tmp/big", { write: true, create: true });
    for (let i = 0; i < 64; i++) {
      await call.write(`${i}\n`);
      for (let from = 0; from < piece.length;) from += await file.write(piece.subarray(from));
    }
  },
  async fill_grant() {
    using file = await Deno.open("/grant/0/big", { write: true, create: true });
    await file.truncate(200 * 1_048_576);
  },
  async read(call) {
    const path = optionalText(call, "path") ?? "";
    await call.write(await Deno.readFile(path));
  },
  async secret(call) {
    await call.write(JSON.stringify(Object.keys(call.secrets)));
    await new Promise<void>((resolve) => setTimeout(resolve, 1_500));
  },
  async denied(call) {
    const tries: Readonly<Record<string, () => unknown>> = {
      read_etc: () => Deno.readTextFileSync("/etc/passwd"),
      read_proc: () => Deno.readTextFileSync("/proc/self/mountinfo"),
      read_tools: () => Deno.readTextFileSync("/tk/read_file.js"),
      run: () => new Deno.Command("/bin/deno").outputSync(),
      env: () => Deno.env.get("HOME"),
      connect: () => Deno.connect({ hostname: "127.0.0.1", port: 80 }),
      sys: () => Deno.hostname(),
      ffi: () => Deno.dlopen("/lib/x86_64-linux-gnu/libc.so.6", {}),
      set_id: () => {
        Deno.writeTextFileSync("/tmp/s", "");
        Deno.chmodSync("/tmp/s", 0o4755);
      },
      link_out: () => Deno.symlinkSync("/etc/passwd", "/tmp/l"),
    };
    for (const [name, attempt] of Object.entries(tries)) {
      try {
        await attempt();
        await call.write(`${name} allowed\n`);
      } catch (thrown) {
        await call.write(`${name} ${thrown instanceof Error ? thrown.name : "unknown"}\n`);
      }
    }
  },
};

await runTool(async (call) => {
  const act = ACTS[textArgument(call, "what")];
  if (act === undefined) return err("unknown", "No such act");
  try {
    await act(call);
    return ok("");
  } catch (thrown) {
    return err("refused", messageOf(thrown));
  }
});
