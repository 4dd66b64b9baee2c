// How long until every role is ready, and what they hold in memory when idle. Memory is the
// proportional share (PSS), so pages of the one Deno binary are counted once.
import { e2eHouse } from "../doubles/e2e_house.ts";
import { pssOf } from "../doubles/role_process.ts";
import { line, ms } from "./rounds.ts";

export async function benchMemoryAndStart(): Promise<void> {
  const from = performance.now();
  await using rig = await e2eHouse();
  line("from nothing to every socket answering", ms(performance.now() - from), "limit 2 s");
  await rig.chat("hello");
  let total = 0;
  for (const [name, pid] of rig.house.supervisor.pids()) {
    if (name === "model") continue;
    const kib = pssOf(pid) ?? NaN;
    total += kib;
    line(`  ${name}`, `${(kib / 1024).toFixed(0)} MB`);
  }
  line("all roles, idle after one turn", `${(total / 1024).toFixed(0)} MB`, "limit 400 MB");
}
