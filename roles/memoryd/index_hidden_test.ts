// Guards: what was purged is not found again when it could neither be taken out of the index nor the
// index be exchanged for a new one.
import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { systemClock } from "../../shared/clock/clock.ts";
import { denoDisk } from "../../shared/disk/deno_disk.ts";
import { DiskError } from "../../shared/disk/disk.ts";
import { SessionId } from "../../shared/ids/ids.ts";
import {
  chatId,
  userRecord,
  writeBaseline,
  writeRecords,
} from "../../tests/doubles/session_logs.ts";
import { openKeeper } from "./index_keeper.ts";
import { appendPurge } from "./purged.ts";

/** Has the next change of any index fail. */
async function refusingOne(run: () => Promise<void>): Promise<void> {
  const { exec } = DatabaseSync.prototype;
  let isFirst = true;
  DatabaseSync.prototype.exec = function (sql) {
    if (sql !== "COMMIT" || !isFirst) return exec.call(this, sql);
    isFirst = false;
    throw new Error("database or disk is full");
  };
  try {
    await run();
  } finally {
    DatabaseSync.prototype.exec = exec;
  }
}

Deno.test("search() finds nothing rather than what was purged while no new index can take its place", async () => {
  const home = Deno.makeTempDirSync();
  for (const name of ["sessions", "memory", "index"]) Deno.mkdirSync(`${home}/${name}`);
  Deno.writeTextFileSync(`${home}/memory/notes.md`, "");
  const session = SessionId.parse(chatId(1));
  writeBaseline(home, session);
  writeRecords(home, session, [userRecord("launch said")]);
  let isFull = false;
  const rename = (from: string, to: string) => {
    if (isFull) throw new DiskError("no_space", "The disk is full");
    denoDisk.rename(from, to);
  };
  const index = openKeeper({
    ...{ disk: { ...denoDisk, rename }, clock: systemClock, home, maxClass: "private" },
    ...{ log: () => {}, onStep: () => {} },
  });
  const found = async () => {
    const hits = await index.search("launch", 5);
    return hits.ok ? hits.value.hits.length : hits.code;
  };
  assert.equal(await found(), 1);
  const line = { time_unix_ms: 1, session, why: "", hidden: [] };
  assert.ok(appendPurge(denoDisk, `${home}/memory/purged.jsonl`, line).ok);
  isFull = true;
  await refusingOne(() => index.update(session));
  assert.equal(await found(), "memory-index-damaged");
  isFull = false;
  assert.ok((await index.reindex(() => {})).ok);
  assert.equal(await found(), 0);
  void index.close();
  Deno.removeSync(home, { recursive: true });
});
