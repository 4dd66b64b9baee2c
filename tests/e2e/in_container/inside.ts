// A program of the test image, run with every permission of the runtime: starts the C program and hands
// on what it printed, so that only the container's own walls are seen.
import { runTool } from "../../../shared/tool/deno_tool.ts";
import { textArgument } from "../../../shared/tool/sdk.ts";
import { messageOf, ok } from "../../../shared/results/result.ts";

await runTool(async (call) => {
  const args = textArgument(call, "what").split(" ").filter((word) => word !== "");
  try {
    const { stdout, signal, code } = await new Deno.Command("/bin/escape", { args }).output();
    await call.write(stdout);
    await call.write(`end ${signal ?? code}\n`);
  } catch (thrown) {
    await call.write(`failed ${messageOf(thrown)}\n`);
  }
  return ok("");
});
