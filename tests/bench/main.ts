// `deno task bench`: what the house costs, each figure beside what it is compared with, in one run.
// Nothing here passes or fails; noise on a shared machine is why each pair takes turns.
import { NO_CONTAINERS } from "../doubles/container_house.ts";
import { benchFirstToken } from "./first_token.ts";
import { benchFrames } from "./frames.ts";
import { benchToolCall } from "./tool_call.ts";
import { benchMemoryAndStart } from "./roles.ts";

async function auditVerify(): Promise<void> {
  const program = decodeURIComponent(new URL("./audit_verify.ts", import.meta.url).pathname);
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", program],
    stdout: "inherit",
    stderr: "inherit",
  }).spawn();
  await child.status;
}

console.log("wire");
await benchFrames();
console.log("\naudit log");
await auditVerify();
if (NO_CONTAINERS === null) {
  console.log("\ntool call");
  await benchToolCall();
  console.log("\nfirst word");
  await benchFirstToken();
  console.log("\nroles");
  await benchMemoryAndStart();
} else {
  console.log(`\ntool call, first word and roles: skipped, ${NO_CONTAINERS}`);
}
Deno.exit(0);
