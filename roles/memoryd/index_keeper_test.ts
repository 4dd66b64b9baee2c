import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import fc from "fast-check";
import { systemClock } from "../../shared/clock/clock.ts";
import { denoDisk } from "../../shared/disk/deno_disk.ts";
import { DiskError } from "../../shared/disk/disk.ts";
import { SessionId } from "../../shared/ids/ids.ts";
import type { DataClass, Label } from "../../shared/labels/label.ts";
import {
  assistantRecord,
  chatId,
  labelRecord,
  resultRecord,
  summaryRecord,
  userRecord,
  writeBaseline,
  writeRecords,
} from "../../tests/doubles/session_logs.ts";
import { damageCampaign } from "../../tests/chaos/index_damage.ts";
import { openKeeper } from "./index_keeper.ts";
import type { Hit, Index } from "./index_messages.ts";
import { type Note, renderNote } from "./notes.ts";
import { appendPurge, digestOf } from "./purged.ts";

const PRIVATE: Label = { class: "private", untrusted: false };
const TAINTED: Label = { class: "private", untrusted: true };

function home(): string {
  const path = Deno.makeTempDirSync();
  for (const name of ["sessions", "memory", "index"]) Deno.mkdirSync(`${path}/${name}`);
  Deno.writeTextFileSync(`${path}/memory/notes.md`, "");
  return path;
}

function keeper(path: string, maxClass: DataClass = "private", logged: string[] = []): Index {
  return openKeeper({
    disk: denoDisk,
    clock: systemClock,
    home: path,
    maxClass,
    log: (line) => void logged.push(line),
    onStep: () => {},
  });
}

/** The label of a hit, apart from the rest of it. */
function labelOf(hit: Hit | undefined): Label | undefined {
  return hit === undefined ? undefined : { class: hit.class, untrusted: hit.untrusted };
}

async function hits(index: Index, question: string, k = 10): Promise<Hit[]> {
  const found = await index.search(question, k);
  assert.ok(found.ok, found.ok ? "" : found.detail);
  return found.value.hits;
}

async function withHome(run: (path: string) => Promise<void>): Promise<void> {
  const path = home();
  try {
    await run(path);
  } finally {
    Deno.removeSync(path, { recursive: true });
  }
}

function note(text: string, more: Partial<Note> = {}): string {
  const base = { kind: "note", timeUnixMs: 1_000, session: chatId(1), label: PRIVATE, from: null };
  return renderNote({ ...base, kind: "note", text, ...more });
}

function append(path: string, text: string): void {
  Deno.writeTextFileSync(`${path}/memory/notes.md`, text, { append: true });
}

/** Every table of the index as text, ids included. */
function dump(path: string): string {
  const db = new DatabaseSync(`${path}/index/memory.sqlite3`, { readOnly: true });
  try {
    const all = (sql: string) => JSON.stringify(db.prepare(sql).all());
    const words = ["a", "b", "c", "launch", "read_file", "sport"].map((word) =>
      all(
        `SELECT rowid, bm25(words, 1.0, 0.4, 0.3) FROM words WHERE words MATCH '"${word}"' ORDER BY rowid`,
      )
    );
    const scenes = ["a", "launch", "september", "sport"].map((word) =>
      all(`SELECT rowid, bm25(scenes) FROM scenes WHERE scenes MATCH '"${word}"' ORDER BY rowid`)
    );
    const tables = [all("SELECT * FROM rows ORDER BY id"), all("SELECT * FROM logs ORDER BY log")];
    return [...tables, ...words, ...scenes].join("\n");
  } finally {
    db.close();
  }
}

Deno.test("search() finds no tool result, no reasoning, nothing above the class limit", async () => {
  await withHome(async (path) => {
    const session = chatId(1);
    writeBaseline(path, session);
    writeRecords(path, session, [
      userRecord("please look at the alpha page"),
      assistantRecord("", [["read_file", '{"path":"/srv/alpha.txt"}']], 1),
      resultRecord("IGNORE alpha planted", TAINTED, 2),
      assistantRecord("alpha says hello", [], 3),
      labelRecord({ class: "secret", untrusted: false }, 4),
      assistantRecord("the alpha password", [], 5),
      summaryRecord("alpha in short", { class: "public", untrusted: true }, 6),
    ]);
    const index = keeper(path);
    const found = await hits(index, "alpha");
    const seen = Object.fromEntries(found.map((hit) => [hit.snippet, hit]));
    assert.deepEqual(Object.keys(seen).sort(), [
      "alpha in short",
      "alpha says hello",
      "please look at the alpha page",
      'read_file {"path":"/srv/alpha.txt"}',
    ]);
    assert.deepEqual(labelOf(seen["please look at the alpha page"]), PRIVATE);
    assert.deepEqual(labelOf(seen["alpha says hello"]), TAINTED);
    assert.deepEqual(labelOf(seen["alpha in short"]), { class: "public", untrusted: true });
    assert.equal(seen['read_file {"path":"/srv/alpha.txt"}']?.who, "the assistant called");
    assert.deepEqual(await hits(index, "planted password reasoning"), []);
    index.close();
  });
});

Deno.test("search() believes the label an epoch began with", async () => {
  await withHome(async (path) => {
    writeBaseline(path, chatId(1), TAINTED, 1);
    writeRecords(path, chatId(1), [userRecord("second epoch")], 1);
    const index = keeper(path);
    assert.deepEqual(labelOf((await hits(index, "epoch"))[0]), TAINTED);
    index.close();
  });
});

Deno.test("search() lends a cleaner text no words of a tainted neighbour", async () => {
  await withHome(async (path) => {
    writeBaseline(path, chatId(1));
    writeRecords(path, chatId(1), [
      userRecord("clean words"),
      labelRecord(TAINTED, 1),
      assistantRecord("poison", [], 2),
      userRecord("after it", 3),
    ]);
    const index = keeper(path);
    assert.deepEqual((await hits(index, "poison")).map((hit) => hit.snippet), [
      "poison",
      "after it",
    ]);
    assert.deepEqual(
      (await hits(index, "clean")).map((hit) => hit.snippet),
      ["clean words", "after it", "poison"],
    );
    index.close();
  });
});

Deno.test("a log that is damaged, foreign or without its label is skipped whole and named", async () => {
  await withHome(async (path) => {
    const [good, flipped, spliced, bare, odd, altered] = [1, 2, 3, 4, 5, 6].map(chatId);
    for (const session of [good, flipped, spliced, odd, altered]) {
      writeBaseline(path, session ?? "");
    }
    for (const session of [good, flipped, altered]) {
      writeRecords(path, session ?? "", [userRecord("launch on Thursday"), userRecord("more", 1)]);
    }
    const log = (session: string | undefined) => `${path}/sessions/${session}/0.jsonl`;
    const text = Deno.readTextFileSync(log(flipped));
    Deno.writeTextFileSync(log(flipped), text.replace("launch on", "lunch at"));
    Deno.writeTextFileSync(log(spliced), Deno.readTextFileSync(log(good)));
    Deno.mkdirSync(`${path}/sessions/${bare}`);
    Deno.writeTextFileSync(log(bare), Deno.readTextFileSync(log(good)));
    writeRecords(path, odd ?? "", [{ kind: "of the future", time_unix_ms: 1 }]);
    writeBaseline(path, altered ?? "", { class: "public", untrusted: false });
    Deno.mkdirSync(`${path}/sessions/not-a-session`);
    const index = keeper(path);
    const found = await hits(index, "launch lunch thursday");
    assert.deepEqual([...new Set(found.map((hit) => hit.log))], [`${good}/0`]);
    const counts = await index.counts();
    assert.ok(counts.ok);
    assert.equal(counts.value.skipped.length, 5);
    for (const session of [flipped, spliced, bare, odd, altered]) {
      assert.ok(counts.value.skipped.some((line) => line.startsWith(`${session}/0: `)));
    }
    // The owner restores the file: it is read again.
    Deno.writeTextFileSync(log(flipped), text);
    await index.update(SessionId.parse(flipped));
    const logs = (await hits(index, "launch")).map((hit) => hit.log);
    assert.deepEqual([...new Set(logs)].sort(), [`${flipped}/0`, `${good}/0`].sort());
    index.close();
  });
});

Deno.test("update() shows what was noted at once, and notices a file changed by hand", async () => {
  await withHome(async (path) => {
    const index = keeper(path);
    append(path, note("the launch moved to Thursday"));
    void index.update(null);
    const first = await hits(index, "launch");
    assert.deepEqual([first[0]?.log, first[0]?.record, first[0]?.tag], [
      "notes.md",
      1,
      "experience",
    ]);
    append(path, note("Owner prefers UTC", { kind: "moved", from: "memory" }));
    append(path, note("seen on a page", { label: TAINTED }));
    append(path, note("launch codes", { label: { class: "secret", untrusted: false } }));
    await index.update(null);
    assert.equal((await hits(index, "utc"))[0]?.tag, "identity");
    assert.deepEqual(labelOf((await hits(index, "page"))[0]), TAINTED);
    assert.deepEqual(await hits(index, "codes"), []);
    const notes = `${path}/memory/notes.md`;
    Deno.writeTextFileSync(
      notes,
      Deno.readTextFileSync(notes).replace("Thursday", "Friday evening"),
    );
    await index.update(null);
    assert.equal((await hits(index, "friday")).length, 1);
    assert.deepEqual(await hits(index, "thursday"), []);
    Deno.writeTextFileSync(notes, "");
    await index.update(null);
    assert.deepEqual(await hits(index, "launch"), []);
    index.close();
  });
});

Deno.test("openKeeper() builds the index anew when it is lost, of another limit, or damaged", async () => {
  await withHome(async (path) => {
    writeBaseline(path, chatId(1));
    const secret = { class: "secret", untrusted: false } as const;
    writeRecords(path, chatId(1), [
      userRecord("launch"),
      labelRecord(secret),
      userRecord("launch b"),
    ]);
    const file = `${path}/index/memory.sqlite3`;
    const count = async (maxClass: DataClass = "private") => {
      const index = keeper(path, maxClass);
      const found = await hits(index, "launch");
      index.close();
      return found.length;
    };
    assert.equal(await count(), 1);
    assert.equal(await count("secret"), 2);
    assert.equal(await count(), 1);
    Deno.removeSync(file);
    assert.equal(await count(), 1);
    Deno.writeTextFileSync(file, "no database at all, whatever its name says");
    assert.equal(await count(), 1);
    Deno.writeTextFileSync(`${file}.seal`, "of another file");
    assert.equal(await count(), 1);
  });
});

Deno.test("a changed byte anywhere in a closed index is noticed, and recall answers as before", async () => {
  // Every byte one by one: `deno task chaos --index`.
  const { bytes, noticed, passing, wrong } = await damageCampaign(311, "sealed");
  assert.ok(bytes > 30);
  assert.equal(noticed, bytes);
  assert.deepEqual([passing, wrong], [[], []]);
  const crashed = await damageCampaign(601, "unsealed");
  assert.ok(crashed.bytes > 15);
  assert.deepEqual(crashed.wrong, []);
});

Deno.test("search() notices damage while it runs, and answers from a new index", async () => {
  await withHome(async (path) => {
    writeBaseline(path, chatId(1));
    writeRecords(path, chatId(1), [userRecord("launch on Thursday")]);
    const logged: string[] = [];
    const index = keeper(path, "private", logged);
    await hits(index, "launch");
    const other = new DatabaseSync(`${path}/index/memory.sqlite3`);
    other.exec("UPDATE rows SET untrusted = 1, class = 'public'");
    other.close();
    assert.deepEqual(labelOf((await hits(index, "launch"))[0]), PRIVATE);
    assert.match(logged.join("\n"), /damaged/);
    index.close();
  });
});

Deno.test("a zero character in a text damages no index and hides nothing", async () => {
  await withHome(async (path) => {
    writeBaseline(path, chatId(1));
    writeRecords(path, chatId(1), [userRecord("launch\0 on \0Thursday"), userRecord("\0", 1)]);
    append(path, note("pad\0 wet"));
    const logged: string[] = [];
    const index = keeper(path, "private", logged);
    assert.equal((await hits(index, "thursday"))[0]?.snippet, "launch\ufffd on \ufffdThursday");
    assert.equal((await hits(index, "wet")).length, 1);
    writeRecords(path, chatId(1), [userRecord("said later", 2)]);
    await index.update(SessionId.parse(chatId(1)));
    assert.equal((await hits(index, "later"))[0]?.snippet, "said later");
    assert.deepEqual(await index.check(), { ok: true, value: null });
    assert.deepEqual(logged, []);
    index.close();
  });
});

Deno.test("reindex() answers from the old index meanwhile and says how far it is", async () => {
  await withHome(async (path) => {
    for (let i = 0; i < 45; i++) {
      writeBaseline(path, chatId(i));
      writeRecords(path, chatId(i), [userRecord(`launch ${i}`)]);
    }
    const index = keeper(path);
    assert.equal((await hits(index, "launch", 50)).length, 45);
    const seen: number[] = [];
    const made = index.reindex((step) => void seen.push(step.logs));
    assert.equal((await hits(index, "launch", 50)).length, 45);
    const counts = await made;
    assert.ok(counts.ok && counts.value.logs === 45 && counts.value.rows === 45);
    assert.deepEqual(seen, [20, 40]);
    index.close();
  });
});

Deno.test("reindex() that cannot put the new index in its place leaves the old one answering", async () => {
  await withHome(async (path) => {
    writeBaseline(path, chatId(1));
    writeRecords(path, chatId(1), [userRecord("launch")]);
    let isFull = false;
    const rename = (from: string, to: string) => {
      if (isFull) throw new DiskError("no_space", "The disk is full");
      denoDisk.rename(from, to);
    };
    const index = openKeeper({
      disk: { ...denoDisk, rename },
      clock: systemClock,
      home: path,
      maxClass: "private",
      log: () => {},
      onStep: () => {},
    });
    assert.equal((await hits(index, "launch")).length, 1);
    isFull = true;
    const made = await index.reindex(() => {});
    assert.equal(!made.ok && made.code, "disk-full");
    assert.equal((await hits(index, "launch")).length, 1);
    append(path, note("launch noted"));
    await index.update(null);
    assert.equal((await hits(index, "launch")).length, 2);
    isFull = false;
    assert.ok((await index.reindex(() => {})).ok);
    assert.equal((await hits(index, "launch")).length, 2);
    void index.close();
  });
});

async function withFullDisk(run: () => Promise<void>): Promise<void> {
  const { exec } = DatabaseSync.prototype;
  DatabaseSync.prototype.exec = function (sql) {
    if (sql === "COMMIT") throw new Error("database or disk is full");
    return exec.call(this, sql);
  };
  try {
    await run();
  } finally {
    DatabaseSync.prototype.exec = exec;
  }
}

Deno.test("search() finds nothing rather than what was purged while the disk is full", async () => {
  for (const purged of ["a log", "a note"] as const) {
    await withHome(async (path) => {
      const session = SessionId.parse(chatId(purged === "a log" ? 1 : 2));
      writeBaseline(path, chatId(1));
      writeRecords(path, chatId(1), [userRecord("launch said")]);
      append(path, note("launch noted", { session: chatId(2) }));
      const index = keeper(path);
      assert.equal((await hits(index, "launch")).length, 2);
      await withFullDisk(async () => {
        const line = { time_unix_ms: 1, session, why: "", hidden: [] };
        assert.ok(appendPurge(denoDisk, `${path}/memory/purged.jsonl`, line).ok);
        await index.update(session);
        await index.update(null);
        assert.ok(!(await index.search("launch", 5)).ok, purged);
      });
      assert.ok((await index.reindex(() => {})).ok);
      assert.equal((await hits(index, "launch")).length, 1, purged);
      void index.close();
    });
  }
});

Deno.test("update() on a full disk damages no index, and reads what it missed when there is room", async () => {
  await withHome(async (path) => {
    writeBaseline(path, chatId(1));
    writeRecords(path, chatId(1), [userRecord("launch on Thursday")]);
    const logged: string[] = [];
    const index = keeper(path, "private", logged);
    assert.equal((await hits(index, "launch")).length, 1);
    await withFullDisk(async () => {
      writeRecords(path, chatId(1), [userRecord("launch on Friday", 1)]);
      await index.update(SessionId.parse(chatId(1)));
      append(path, note("launch noted"));
      await index.update(null);
    });
    assert.equal((await hits(index, "launch")).length, 1);
    assert.match(logged.join("\n"), /^(?:The index could not be brought up to date.*\n?){2}$/);
    await index.update(null);
    assert.equal((await hits(index, "launch")).length, 3);
    void index.close();
  });
});

Deno.test("update() builds an index that could not be built before, but not again and again", async () => {
  await withHome(async (path) => {
    let nowMs = 0;
    const list = `${path}/memory/purged.jsonl`;
    append(path, note("launch"));
    Deno.writeTextFileSync(list, "not a purge\n");
    const logged: string[] = [];
    const index = openKeeper({
      disk: denoDisk,
      clock: { ...systemClock, monotonicMs: () => nowMs },
      home: path,
      maxClass: "private",
      log: (line) => void logged.push(line),
      onStep: () => {},
    });
    for (let i = 0; i < 5; i++) await index.update(null);
    assert.ok(!(await index.search("launch", 5)).ok);
    assert.equal(logged.length, 2, logged.join("\n"));
    Deno.removeSync(list);
    nowMs = 60_000;
    await index.update(null);
    assert.equal((await hits(index, "launch")).length, 1);
    assert.equal(
      [...Deno.readDirSync(`${path}/index`)].some(({ name }) => /new/.test(name)),
      false,
    );
    void index.close();
  });
});

Deno.test("an index made step by step equals one made anew, row for row", async () => {
  const text = fc.array(fc.constantFrom("a", "b", "tennis", "launch", "東京", "x\0y", "ﷺ"), {
    minLength: 1,
    maxLength: 4,
  })
    .map((words) => words.join(" "));
  const label = fc.constantFrom<Label>(PRIVATE, TAINTED, { class: "secret", untrusted: false });
  const record = fc.oneof(
    fc.tuple(text, fc.nat(3)).map(([content, minutes]) => userRecord(content, minutes)),
    text.map((content) => assistantRecord(content, [["read_file", "{}"]])),
    fc.tuple(text, label).map(([content, own]) => resultRecord(content, own)),
    label.map((own) => labelRecord(own)),
  );
  const step = fc.oneof(
    fc.record({ session: fc.nat(2), records: fc.array(record, { minLength: 1, maxLength: 4 }) }),
    fc.record({ note: text, label }),
    fc.record({ torn: fc.uint8Array({ minLength: 1, maxLength: 6 }) }),
    fc.record({ purged: fc.nat(2), hidden: text }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 8 }), async (steps) => {
      await withHome(async (path) => {
        const index = keeper(path);
        for (const one of steps) {
          if ("note" in one) append(path, note(one.note, { label: one.label }));
          else if ("torn" in one) {
            Deno.writeFileSync(`${path}/memory/notes.md`, one.torn, { append: true });
          } else if ("purged" in one) {
            const session = SessionId.parse(chatId(one.purged));
            const line = { time_unix_ms: 1, session, why: "", hidden: [digestOf(one.hidden)] };
            assert.ok(appendPurge(denoDisk, `${path}/memory/purged.jsonl`, line).ok);
            await index.update(session);
          }
          await index.update(null);
          if (!("session" in one)) continue;
          const session = chatId(one.session);
          writeBaseline(path, session);
          writeRecords(path, session, one.records);
          await index.update(SessionId.parse(session));
        }
        index.close();
        const grown = dump(path);
        const again = keeper(path);
        const made = await again.reindex(() => {});
        assert.ok(made.ok);
        again.close();
        assert.equal(dump(path), grown);
      });
    }),
    { numRuns: 25 },
  );
});
