// Calls of read_file that ask, in a test house: how a test makes them, answers them and reads what became
// of them, and a disk that is full in one place.
import { ok, strictEqual } from "node:assert";
import { DiskError } from "../../shared/disk/disk.ts";
import type { House } from "../../roles/brokerd/house.ts";
import {
  grantToml,
  heldScript,
  type HouseOptions,
  newCall,
  newTurn,
  openChat,
  ROOT,
  type TestHouse,
} from "./broker_house.ts";
import { settled } from "./manual_clock.ts";

export const PATH = JSON.stringify({ path: `${ROOT}/a.txt` });
export const ASK: HouseOptions = {
  grants: {
    "read.toml": grantToml("read_file", "ask"),
    "list.toml": grantToml("list_dir", "auto"),
  },
  config: { runtime: { concurrent: 1 } },
};

export async function asks(
  house: House,
  session = openChat(house),
  tool = "read_file",
  args = PATH,
) {
  const one = { session, turn: newTurn(), call: newCall(), tool, args };
  const answer = house.calls.request(one);
  await settled();
  return { ...one, answer };
}

export function stateOf(house: House, one: Awaited<ReturnType<typeof asks>>): string {
  const now = house.calls.fetch(one.session, one.call);
  ok(now.ok, JSON.stringify(now));
  if (now.value.is === "pending") return now.value.pending.state;
  ok(now.value.is === "ended");
  return now.value.result.code ?? now.value.result.outcome;
}

export async function approve(house: House, code: string | undefined): Promise<void> {
  const said = house.approvals.answer(code ?? "none", "approve", "owner", null);
  ok(said.ok && said.value.outcome === "approved", JSON.stringify(said));
  await settled();
}

/** Keeps one slot taken until it is released. */
export async function busy(house: House, test: TestHouse) {
  const held = heldScript();
  test.fake.script = held.script;
  const one = await asks(house, openChat(house), "list_dir", JSON.stringify({ path: ROOT }));
  strictEqual(stateOf(house, one), "running");
  return held;
}

/** Makes every write of the folders that hold `part` fail until it is called. */
export function full(test: TestHouse, part: string): () => void {
  const open = test.disk.open;
  test.disk.open = (path, mode) => {
    if (path.includes(part) && mode !== "read") throw new DiskError("no_space", "Injected: full");
    return open(path, mode);
  };
  return () => void (test.disk.open = open);
}
