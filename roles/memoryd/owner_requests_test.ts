import assert from "node:assert/strict";
import { CallId, SessionId } from "../../shared/ids/ids.ts";
import { call } from "../../shared/wire/dial.ts";
import {
  MEMORY_LOG,
  MEMORY_OVERVIEW,
  MEMORY_PURGE,
  MEMORY_REVIEW,
  MEMORY_SHOW,
  MEMORY_STAGED,
  MEMORY_UNDO,
  OWNER_RECALL,
  REINDEX,
} from "../../shared/wire/memory.ts";
import {
  indexInWorker,
  TAINTED,
  withMemoryHouse as withHouse,
} from "../../tests/doubles/memoryd_house.ts";
import {
  chatId,
  userRecord,
  writeBaseline,
  writeRecords,
} from "../../tests/doubles/session_logs.ts";

const add = (text: string, file = "memory") => ({ action: "add", file, text });
const session = (number: number) => SessionId.parse(chatId(number));

async function found(home: string, query: string): Promise<string[]> {
  const reply = await call(`${home}/2.sock`, OWNER_RECALL, { query, k: 50 });
  assert.ok(reply.ok, reply.ok ? "" : reply.detail);
  return reply.value.body.hits.map((hit) => hit.snippet).sort();
}

/** Everything that lies in the folder of the index, one character a byte. */
function indexBytes(home: string): string {
  const files = [...Deno.readDirSync(`${home}/index`)].map(({ name }) => {
    try {
      return Deno.readFileSync(`${home}/index/${name}`);
    } catch {
      return new Uint8Array();
    }
  });
  return files.map((bytes) => new TextDecoder("latin1").decode(bytes)).join("\n");
}

function recallLines(home: string): number {
  const folder = `${home}/memory/recalls`;
  const texts = [...Deno.readDirSync(folder)].map(({ name }) =>
    Deno.readTextFileSync(`${folder}/${name}`)
  );
  return texts.join("").split("\n").length - 1;
}

async function until(holds: () => boolean): Promise<void> {
  for (let tries = 0; tries < 600 && !holds(); tries++) {
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.ok(holds());
}

Deno.test("memory_purge hides all that a session brought in, for good, also from an index made anew", async () => {
  await withHouse(async ({ home, tool, block, updated, read }) => {
    await tool("memory", add("poison one"), { session: 1 });
    await tool("memory", add("kept"), { session: 2 });
    await tool("memory", add("poison two"), { session: 1 });
    // Another session moves a poisoned entry to the notes under its own name.
    const fates = [{ old: "poison one", move: true }, { old: "kept", keep: true }, {
      old: "poison two",
      keep: true,
    }];
    await tool("memory", { action: "consolidate", file: "memory", entries: fates }, { session: 2 });
    await tool("memory", { action: "note", text: "poison note" }, { session: 1, label: TAINTED });
    await tool("memory", { action: "note", text: "clean note, no poison" }, { session: 2 });
    writeBaseline(home, chatId(1));
    writeRecords(home, chatId(1), [userRecord("poison said")]);
    await updated(1);
    const before = ["clean note, no poison", "poison note", "poison one", "poison said"];
    assert.deepEqual(await found(home, "poison"), before);
    assert.ok(indexBytes(home).includes("poison said"));
    const list = { session: session(1), why: "", mode: "list" } as const;
    const listed = await call(`${home}/2.sock`, MEMORY_PURGE, list, { onChunk: () => {} });
    assert.deepEqual(listed.ok && listed.value.body, { entries: 1, notes: 2, is_hidden: false });
    assert.deepEqual(await found(home, "poison"), before);
    const hide = { session: session(1), why: "planted", mode: "hide" } as const;
    assert.ok((await call(`${home}/2.sock`, MEMORY_PURGE, hide, { onChunk: () => {} })).ok);
    assert.equal(read("memory.md"), "kept");
    assert.match(read("notes.md"), /poison note/);
    assert.doesNotMatch(read("purged.jsonl"), /poison/);
    assert.deepEqual(await found(home, "poison"), ["clean note, no poison"]);
    await until(() => !indexBytes(home).includes("poison said"));
    // What was purged comes back neither by undo, nor by the owner's file, nor by another session.
    const undo = await call(`${home}/2.sock`, MEMORY_UNDO, { file: "memory" });
    assert.equal(!undo.ok && undo.code, "memory-purged");
    assert.equal((await tool("memory", add("more"), { session: 1 })).code, "memory-purged");
    const late = { action: "note", text: "late" };
    assert.equal((await tool("memory", late, { session: 1 })).code, "memory-purged");
    assert.equal((await tool("memory", add("poison two"), { session: 3 })).code, "memory-purged");
    Deno.writeTextFileSync(`${home}/memory/memory.md`, "kept\n§\npoison two");
    const shown = await block();
    assert.ok(typeof shown !== "string" && !shown.text.includes("poison"));
    assert.equal(shown.omitted.length, 1);
    Deno.removeSync(`${home}/index/memory.sqlite3`);
    assert.ok((await call(`${home}/2.sock`, REINDEX, {})).ok);
    assert.deepEqual(await found(home, "poison"), ["clean note, no poison"]);
  }, indexInWorker);
});

Deno.test("memory_purge leaves in sight what the session only moved or dropped", async () => {
  await withHouse(async ({ home, tool }) => {
    const edit = (args: Record<string, string>, session: number) =>
      tool("memory", { file: "memory", ...args }, { session });
    await edit({ action: "add", text: "rent is due on the first" }, 2);
    await edit({ action: "replace", old: "rent is due on the first", text: "no rent" }, 1);
    await edit({ action: "remove", old: "no rent" }, 1);
    const hide = { session: session(1), why: "planted", mode: "hide" } as const;
    const hidden = await call(`${home}/2.sock`, MEMORY_PURGE, hide, { onChunk: () => {} });
    assert.deepEqual(hidden.ok && hidden.value.body.notes, 1);
    assert.deepEqual(await found(home, "rent"), ["rent is due on the first"]);
    assert.ok((await call(`${home}/2.sock`, REINDEX, {})).ok);
    assert.deepEqual(await found(home, "rent"), ["rent is due on the first"]);
  });
});

Deno.test("memory_purge hides at once what it listed, though a file could not be cleaned", async () => {
  await withHouse(async ({ home, tool, updated, block }) => {
    await tool("memory", add("poison entry"), { session: 1 });
    writeBaseline(home, chatId(1));
    writeRecords(home, chatId(1), [userRecord("poison said")]);
    await updated(1);
    assert.deepEqual(await found(home, "poison"), ["poison said"]);
    Deno.mkdirSync(`${home}/memory/memory.md.tmp/kept`, { recursive: true });
    const hide = { session: session(1), why: "planted", mode: "hide" } as const;
    assert.ok(!(await call(`${home}/2.sock`, MEMORY_PURGE, hide, { onChunk: () => {} })).ok);
    assert.deepEqual(await found(home, "poison"), []);
    const shown = await block();
    assert.ok(typeof shown !== "string" && !shown.text.includes("poison"));
  });
});

Deno.test("a purge holds though an editor took the end of its line, and a half one is passed over", async () => {
  await withHouse(async ({ home, tool, read }) => {
    const path = `${home}/memory/purged.jsonl`;
    const hide = async (number: number) => {
      const body = { session: session(number), why: "x", mode: "hide" } as const;
      assert.ok((await call(`${home}/2.sock`, MEMORY_PURGE, body, { onChunk: () => {} })).ok);
    };
    const code = async (number: number) =>
      (await tool("memory", { action: "note", text: "x" }, { session: number })).code;
    await hide(1);
    Deno.writeTextFileSync(path, read("purged.jsonl").trimEnd());
    assert.equal(await code(1), "memory-purged");
    await hide(2);
    Deno.writeTextFileSync(path, read("purged.jsonl") + '{"time_unix_ms":1,"ses');
    assert.equal(await code(3), null);
    await hide(3);
    assert.deepEqual([await code(1), await code(2), await code(3), await code(4)], [
      "memory-purged",
      "memory-purged",
      "memory-purged",
      null,
    ]);
    assert.equal(read("purged.jsonl").split("\n").length, 4);
  });
});

Deno.test("recall finds nothing rather than too much when the list of purges cannot be read", async () => {
  await withHouse(async ({ home, tool }) => {
    await tool("memory", { action: "note", text: "poison note" });
    Deno.writeTextFileSync(`${home}/memory/purged.jsonl`, "not a purge\n");
    await call(`${home}/2.sock`, REINDEX, {});
    const reply = await call(`${home}/2.sock`, REINDEX, {});
    assert.equal(!reply.ok && reply.code, "memory-index-damaged");
    const blocked = await tool("memory", { action: "note", text: "x" });
    assert.equal(blocked.code, "record-invalid");
  });
});

Deno.test("memory_undo puts back the exact bytes, is itself journalled, and never the owner's own change", async () => {
  await withHouse(async ({ home, tool, read }) => {
    const undo = () => call(`${home}/2.sock`, MEMORY_UNDO, { file: "memory" });
    const none = await undo();
    assert.equal(!none.ok && none.code, "memory-nothing-to-undo");
    Deno.writeTextFileSync(`${home}/memory/memory.md`, "by hand \r\n§\r\n\r\ntwo\r\n");
    await tool("memory", add("three"));
    assert.equal(read("memory.md"), "by hand\n§\ntwo\n§\nthree");
    assert.ok((await undo()).ok);
    assert.equal(read("memory.md"), "by hand \r\n§\r\n\r\ntwo\r\n");
    assert.ok((await undo()).ok);
    assert.equal(read("memory.md"), "by hand\n§\ntwo\n§\nthree");
    Deno.writeTextFileSync(`${home}/memory/memory.md`, "mine");
    const changed = await undo();
    assert.equal(!changed.ok && changed.code, "memory-changed");
    assert.equal(read("memory.md"), "mine");
    const log = await call(`${home}/2.sock`, MEMORY_LOG, { limit: 10 });
    assert.ok(log.ok);
    const kinds = log.value.body.lines.map(({ kind, file }) => [kind, file]);
    assert.deepEqual(kinds.slice(1), [
      ["found", "memory.md"],
      ["edit", "memory.md"],
      ["undo", "memory.md"],
      ["undo", "memory.md"],
    ]);
    const pieces: string[] = [];
    const onChunk = (bytes: Uint8Array) => void pieces.push(new TextDecoder().decode(bytes));
    assert.ok((await call(`${home}/2.sock`, MEMORY_SHOW, { n: 2 }, { onChunk })).ok);
    const line = JSON.parse(pieces.join(""));
    assert.deepEqual([line.session, line.after], [chatId(1), "by hand\n§\ntwo\n§\nthree"]);
  });
});

Deno.test("memory_review applies a staged edit to the file as it is, or drops it", async () => {
  await withHouse(async ({ home, tool, read }) => {
    await tool("memory", add("one"), { staged: true });
    await tool("memory", add("two"), { staged: true });
    await tool("memory", add("three"), { staged: true });
    const waiting = async () => {
      const reply = await call(`${home}/2.sock`, MEMORY_STAGED, { call: null });
      assert.ok(reply.ok);
      return reply.value.body.staged.map((one) => one.call);
    };
    const shown = async (one: string) => {
      const pieces: string[] = [];
      const onChunk = (bytes: Uint8Array) => void pieces.push(new TextDecoder().decode(bytes));
      const body = { call: CallId.parse(one) };
      assert.ok((await call(`${home}/2.sock`, MEMORY_STAGED, body, { onChunk })).ok);
      return pieces.join("");
    };
    const [first, second, third] = await waiting();
    assert.ok(first !== undefined && second !== undefined && third !== undefined);
    const review = (one: typeof first, decision: "apply" | "drop") =>
      call(`${home}/2.sock`, MEMORY_REVIEW, { call: one, decision });
    assert.ok((await review(first, "drop")).ok);
    assert.equal(read("memory.md"), "");
    assert.ok((await review(second, "apply")).ok);
    assert.equal(read("memory.md"), "two");
    const again = await review(second, "apply");
    assert.equal(!again.ok && again.code, "memory-not-staged");
    // The owner wrote the same by hand meanwhile: the edit says so, and waits until it is dropped.
    Deno.writeTextFileSync(`${home}/memory/memory.md`, "two\n§\nthree");
    const made = await review(third, "apply");
    assert.equal(!made.ok && made.code, "memory-duplicate");
    assert.deepEqual(await waiting(), [third]);
    // What is shown of an edit is what applying it would do.
    Deno.writeTextFileSync(`${home}/memory/memory.md`, "two");
    assert.match(await shown(third), /"before":"two","after":"two\\n§\\nthree"/);
    const hide = { session: session(1), why: "planted", mode: "hide" } as const;
    assert.ok((await call(`${home}/2.sock`, MEMORY_PURGE, hide, { onChunk: () => {} })).ok);
    assert.match(await shown(third), /"problem":"memory-purged: /);
    const late = await review(third, "apply");
    assert.equal(!late.ok && late.code, "memory-purged");
  });
});

Deno.test("memory_overview counts what recall found, and how often in vain", async () => {
  await withHouse(async ({ home, tool }) => {
    await tool("memory", { action: "note", text: "the launch is on Thursday" });
    await tool("memory", { action: "note", text: "the launch pad is wet" });
    await tool("recall", { query: "launch" });
    await tool("recall", { query: "Thursday" });
    await tool("recall", { query: "unheard" });
    // A recall is answered before its line is written.
    await until(() => recallLines(home) === 3);
    Deno.writeTextFileSync(`${home}/memory/recalls/2026-01.jsonl`, '{"cut sho');
    const reply = await call(`${home}/2.sock`, MEMORY_OVERVIEW, {});
    assert.ok(reply.ok);
    const { staged, purged_sessions, recalls, in_vain, found } = reply.value.body;
    assert.deepEqual([staged, purged_sessions, recalls, in_vain], [0, 0, 3, 1]);
    assert.deepEqual(found.map(({ source, hits }) => [source, hits]), [
      ["notes.md entry 1", 2],
      ["notes.md entry 2", 1],
    ]);
  });
});
