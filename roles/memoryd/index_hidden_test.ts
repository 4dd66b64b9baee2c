// Guards: what was purged is not found from the moment on that the list of purges holds it, whatever the
// index is doing, and whatever keeps it from being taken out.
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
import type { Index } from "./index_messages.ts";
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

/** A home with one session that said "launch", so many times. */
function homeOf(session: SessionId, times: number): string {
  const home = Deno.makeTempDirSync();
  for (const name of ["sessions", "memory", "index"]) Deno.mkdirSync(`${home}/${name}`);
  Deno.writeTextFileSync(`${home}/memory/notes.md`, "");
  writeBaseline(home, session);
  writeRecords(home, session, Array.from({ length: times }, (_, i) => userRecord("launch", i)));
  return home;
}

const session = SessionId.parse(chatId(1));
const silent = { log: () => {}, onStep: () => {}, maxClass: "private" as const };

function purge(home: string): void {
  const line = { time_unix_ms: 1, session, why: "", hidden: [] };
  assert.ok(appendPurge(denoDisk, `${home}/memory/purged.jsonl`, line).ok);
}

/** How many texts are found, or why none can be. */
async function found(index: Index): Promise<number | string> {
  const hits = await index.search("launch", 5);
  return hits.ok ? hits.value.hits.length : hits.code;
}

Deno.test("search() finds nothing rather than what was purged while no new index can take its place", async () => {
  const home = homeOf(session, 1);
  let isFull = false;
  const rename = (from: string, to: string) => {
    if (isFull) throw new DiskError("no_space", "The disk is full");
    denoDisk.rename(from, to);
  };
  const disk = { ...denoDisk, rename };
  const index = openKeeper({ disk, clock: systemClock, home, ...silent });
  assert.equal(await found(index), 1);
  purge(home);
  isFull = true;
  await refusingOne(() => index.update(session));
  assert.equal(await found(index), "memory-index-damaged");
  isFull = false;
  assert.ok((await index.reindex(() => {})).ok);
  assert.equal(await found(index), 0);
  void index.close();
  Deno.removeSync(home, { recursive: true });
});

Deno.test("search() finds nothing that was purged while the index is built anew", async () => {
  const home = homeOf(session, 600);
  const first = openKeeper({ disk: denoDisk, clock: systemClock, home, ...silent });
  assert.equal(await found(first), 5);
  await first.close();
  Deno.removeSync(`${home}/index/memory.sqlite3.seal`);
  const gate = Promise.withResolvers<void>();
  const held = Promise.withResolvers<void>();
  const sleep = (ms: number, signal?: AbortSignal) => {
    if (ms > 0) return systemClock.sleep(Math.min(ms, 20), signal);
    held.resolve();
    return gate.promise;
  };
  const index = openKeeper({ disk: denoDisk, clock: { ...systemClock, sleep }, home, ...silent });
  await held.promise;
  assert.equal(await found(index), 5);
  purge(home);
  const hidden = index.update(session);
  assert.equal(await found(index), "memory-index-damaged");
  gate.resolve();
  await hidden;
  assert.equal(await found(index), 0);
  void index.close();
  Deno.removeSync(home, { recursive: true });
});

Deno.test("search() carries a purge out that nobody has told the index of", async () => {
  const home = homeOf(session, 1);
  const index = openKeeper({ disk: denoDisk, clock: systemClock, home, ...silent });
  assert.equal(await found(index), 1);
  purge(home);
  assert.equal(await found(index), 0);
  void index.close();
  Deno.removeSync(home, { recursive: true });
});
