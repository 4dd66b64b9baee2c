// When a server started by hand or by another process is to end.

/** Resolves on SIGTERM or SIGINT; with `input` also when standard input ends. */
export async function untilTold(by: "input" | "signal"): Promise<void> {
  const signalled = new Promise<void>((resolve) => {
    Deno.addSignalListener("SIGTERM", resolve);
    Deno.addSignalListener("SIGINT", resolve);
  });
  if (by === "signal") return await signalled;
  const ended = Deno.stdin.readable.pipeTo(new WritableStream());
  await Promise.race([signalled, ended]);
}
