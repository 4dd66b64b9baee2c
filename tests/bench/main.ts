// `deno task bench [PART...]`: what the house costs, each figure beside what it is compared with, in
// one run. Nothing here passes or fails; noise on a shared machine is why each pair takes turns.
import { NO_CONTAINERS } from "../doubles/container_house.ts";
import { benchFirstToken } from "./first_token.ts";
import { benchFrames } from "./frames.ts";
import { benchToolCall } from "./tool_call.ts";
import { benchMemoryAndStart } from "./roles.ts";
import { benchStream } from "./stream.ts";

async function auditVerify(): Promise<void> {
  const program = decodeURIComponent(new URL("./audit_verify.ts", import.meta.url).pathname);
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", program],
    stdout: "inherit",
    stderr: "inherit",
  }).spawn();
  await child.status;
}

type Part = { readonly act: () => Promise<void>; readonly needsHouse: boolean };
const PARTS: Readonly<Record<string, Part>> = {
  wire: { act: benchFrames, needsHouse: false },
  audit: { act: auditVerify, needsHouse: false },
  call: { act: benchToolCall, needsHouse: true },
  word: { act: benchFirstToken, needsHouse: true },
  stream: { act: benchStream, needsHouse: true },
  roles: { act: benchMemoryAndStart, needsHouse: true },
};

const chosen = Deno.args.length === 0 ? Object.keys(PARTS) : Deno.args;
if (chosen.some((name) => !Object.hasOwn(PARTS, name))) {
  console.error(`usage: bench [${Object.keys(PARTS).join("|")}]...`);
  Deno.exit(2);
}
console.log(`machine: load ${Deno.loadavg()[0]?.toFixed(1)}`);
for (const name of chosen) {
  console.log(`\n${name}`);
  const part = PARTS[name];
  if (part === undefined || (part.needsHouse && NO_CONTAINERS !== null)) {
    console.log(`skipped, ${NO_CONTAINERS}`);
  } else await part.act();
}
Deno.exit(0);
