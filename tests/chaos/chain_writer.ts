// A process that appends to a chained log for as long as it lives and says what it was acknowledged:
// one line `N HASH` per record on standard output. The argument is the folder. For kill campaigns.
import { openChain } from "../../shared/chain/chained_log.ts";
import { denoDisk } from "../../shared/disk/deno_disk.ts";

const [folder = ""] = Deno.args;
const opened = openChain({
  disk: denoDisk,
  path: `${folder}/log.jsonl`,
  headPath: `${folder}/head.json`,
  domain: "audit",
  genesis: { kind: "open", log: "L", role: "brokerd", protocol: 1, nonce: "n" },
  repair: (finding) => ({ kind: "repair", ...finding }),
  check: "full",
});
if (!opened.ok) {
  console.error(opened.detail);
  Deno.exit(1);
}
const say = (n: number, hash: string) =>
  Deno.stdout.writeSync(new TextEncoder().encode(`${n} ${hash}\n`));
const { chain } = opened.value;
say(chain.head().n, chain.head().hash);
for (let i = 0;; i++) {
  const head = chain.append({ kind: "x", i, text: "y".repeat((i * 977) % 20_000) });
  if (!head.ok) throw new Error(head.detail);
  say(head.value.n, head.value.hash);
}
