// Guards: a process killed at any moment loses no acknowledged record, and its log opens again.
// BOXMAKER_TEST_KILLS sets the number of kills (default 50).
import { ok, strictEqual } from "node:assert";
import { seededRandom, systemRandom } from "../../shared/clock/random.ts";
import { readChain } from "../../shared/chain/chain_reader.ts";
import { verifyChain } from "../../shared/chain/chain_verify.ts";
import { readHead } from "../../shared/chain/head_file.ts";
import { denoDisk } from "../../shared/disk/deno_disk.ts";

const WRITER = decodeURIComponent(new URL("./chain_writer.ts", import.meta.url).pathname);
const CONFIG = decodeURIComponent(new URL("../../deno.json", import.meta.url).pathname);

/** Lets a writer work, kills it `afterMs` after its first word; returns what it was acknowledged. */
async function killOne(folder: string, afterMs: number): Promise<Map<number, string>> {
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-lock", "--cached-only", "--config", CONFIG, WRITER, folder],
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  let text = "";
  let timer: ReturnType<typeof setTimeout> | undefined;
  for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    timer ??= setTimeout(() => child.kill("SIGKILL"), afterMs);
  }
  clearTimeout(timer);
  await child.status;
  const lines = text.split("\n").slice(0, -1).map((line) => line.split(" "));
  return new Map(lines.map(([n, hash]) => [Number(n), hash ?? ""]));
}

Deno.test("Chain.append() no kill at any moment loses an acknowledged record", async () => {
  const kills = Number(Deno.env.get("BOXMAKER_TEST_KILLS") ?? "50");
  const seed = systemRandom.bytes(1)[0] ?? 0;
  const random = seededRandom(seed);
  const folder = Deno.makeTempDirSync();
  const acked = new Map<number, string>();
  try {
    for (let round = 0; round < kills; round++) {
      const fresh = await killOne(folder, (random.bytes(1)[0] ?? 0) / 4);
      ok(fresh.size > 0, `seed ${seed} round ${round}: the log did not open`);
      for (const [n, hash] of fresh) acked.set(n, hash);
    }
    const path = `${folder}/log.jsonl`;
    const head = readHead(denoDisk, `${folder}/head.json`);
    ok(head.ok && head.value !== null);
    const report = verifyChain(denoDisk, path, "audit", { head: head.value, depth: "parsed" });
    ok(report.ok && (report.value.verdict?.name ?? "torn") === "torn", `seed ${seed}`);
    let repairs = 0;
    const there = new Map<number, string>();
    for (const record of readChain(denoDisk, path, "audit")) {
      ok(record.ok, `seed ${seed}`);
      there.set(record.value.n, record.value.hash);
      if (record.value.line.includes('"kind":"repair"')) repairs++;
    }
    for (const [n, hash] of acked) strictEqual(there.get(n), hash, `seed ${seed}: record ${n}`);
    console.log(
      `seed ${seed}: ${kills} kills, ${acked.size} acknowledged, ${repairs} repairs, 0 lost`,
    );
  } finally {
    Deno.removeSync(folder, { recursive: true });
  }
});
