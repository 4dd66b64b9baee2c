// Measures verifying a chained log of typical records beside sha256sum over the same file.
//
//   deno run -A tests/bench/audit_verify.ts [RECORDS]
//
// `parsed` hashes every record and has every line parsed and encoded again; `sealed` leaves the
// parsing out, as the head's hash vouches for the bytes; `tail` is an opening, whatever the size.
import { openChain } from "../../shared/chain/chained_log.ts";
import { hashLine, type Head, NO_PREVIOUS, renderLine } from "../../shared/chain/chain_record.ts";
import { verifyChain } from "../../shared/chain/chain_verify.ts";
import { writeHead } from "../../shared/chain/head_file.ts";
import { denoDisk } from "../../shared/disk/deno_disk.ts";

const GENESIS = { kind: "open", log: "L", role: "brokerd", protocol: 1, nonce: "n" };

function record(i: number) {
  return {
    time: new Date(1_700_000_000_000 + i).toISOString(),
    kind: "decision",
    session: "chat-01ABCDEFGHJKMNPQRSTVWXYZ00",
    tool: "read_file",
    arguments: { path: `/home/owner/notes/${i}.txt` },
    ruling: "allow",
    label: { class: "private", untrusted: false },
  };
}

/** Writes a whole log with its head, without a sync per record. */
function writeLog(folder: string, records: number): Head {
  const lines: string[] = [];
  let place = { n: -1, hash: NO_PREVIOUS, start: 0, end: 0 };
  for (let n = 0; n < records; n++) {
    const line = renderLine({ n, prev: place.hash }, n === 0 ? GENESIS : record(n));
    if (!line.ok) throw new Error(line.detail);
    lines.push(line.value + "\n");
    const end = place.end + line.value.length + 1;
    place = { n, hash: hashLine("audit", line.value), start: place.end, end };
  }
  Deno.writeTextFileSync(`${folder}/log.jsonl`, lines.join(""));
  writeHead(denoDisk, `${folder}/head.json`, "log.jsonl", place);
  return place;
}

type Measured = readonly [what: string, act: () => Promise<void> | void];

/** The best of five rounds of all, in milliseconds; taking turns, so that noise hits all alike. */
async function bestOf(measured: readonly Measured[]): Promise<(readonly [string, number])[]> {
  const best = measured.map(() => Infinity);
  for (let round = 0; round < 5; round++) {
    for (const [i, [, act]] of measured.entries()) {
      const from = performance.now();
      await act();
      best[i] = Math.min(best[i] ?? Infinity, performance.now() - from);
    }
  }
  return measured.map(([what], i) => [what, best[i] ?? 0] as const);
}

function openAtTail(folder: string): void {
  const opened = openChain({
    disk: denoDisk,
    path: `${folder}/log.jsonl`,
    headPath: `${folder}/head.json`,
    domain: "audit",
    genesis: GENESIS,
    repair: () => ({ kind: "repair" }),
    check: "tail",
  });
  if (!opened.ok) throw new Error(opened.detail);
  opened.value.chain.close();
}

/** Rows of `[what, milliseconds]` for a log of `records` records, sha256sum first. */
export async function measureAuditVerify(
  records: number,
): Promise<{ rows: (readonly [string, number])[]; bytes: number }> {
  const folder = Deno.makeTempDirSync();
  try {
    const head = writeLog(folder, records);
    const path = `${folder}/log.jsonl`;
    const verify = (depth: "parsed" | "sealed") => () => {
      const report = verifyChain(denoDisk, path, "audit", { head, depth });
      if (!report.ok || report.value.verdict !== null) throw new Error("the log does not verify");
    };
    const rows = await bestOf([
      ["sha256sum", async () => {
        await new Deno.Command("sha256sum", { args: [path], stdout: "null" }).output();
      }],
      ["verify, sealed", verify("sealed")],
      ["verify, parsed", verify("parsed")],
      ["open, tail", () => openAtTail(folder)],
    ]);
    return { rows, bytes: Deno.statSync(path).size };
  } finally {
    Deno.removeSync(folder, { recursive: true });
  }
}

if (import.meta.main) {
  const records = Number(Deno.args[0] ?? "200000");
  const { rows, bytes } = await measureAuditVerify(records);
  const base = rows[0]?.[1] ?? 1;
  console.log(`${records} records, ${Math.round(bytes / records)} bytes each`);
  for (const [what, ms] of rows) {
    const rate = Math.round(records / ms).toString().padStart(6);
    const ratio = (ms / base).toFixed(2).padStart(6);
    console.log(`${what.padEnd(16)} ${ms.toFixed(1).padStart(8)} ms ${rate}k records/s ${ratio} x`);
  }
}
