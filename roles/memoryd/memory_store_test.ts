import assert from "node:assert/strict";
import { seededRandom } from "../../shared/clock/random.ts";
import type { Clock } from "../../shared/clock/clock.ts";
import { readChain } from "../../shared/chain/chain_reader.ts";
import {
  type FaultKind,
  type FaultyDisk,
  faultyDisk,
  SimulatedCrash,
} from "../../tests/doubles/faulty_disk.ts";
import { DiskError } from "../../shared/disk/disk.ts";
import { CallId, SessionId } from "../../shared/ids/ids.ts";
import { decodeUtf8, encodeUtf8 } from "../../shared/wire/codec.ts";
import { entriesOf, IDENTITY_FILES } from "./entries.ts";
import { firstBadByte } from "./identity_files.ts";
import { JOURNAL_DOMAIN } from "./journal.ts";
import { type MemoryStore, openStore, type Origin } from "./memory_store.ts";
import { parseNotes } from "./notes.ts";

const HOME = "/home/memory";
const ORIGIN: Origin = {
  session: SessionId.parse("chat-01ARZ3NDEKTSV4RRFFQ69G5FAV"),
  call: CallId.parse("c-01ARZ3NDEKTSV4RRFFQ69G5FAV"),
  label: { class: "private", untrusted: false },
};

function clockAt(unixMs: number): Clock & { set(ms: number): void } {
  let now = unixMs;
  return {
    nowUnixMs: () => now,
    monotonicMs: () => now,
    sleep: () => Promise.resolve(),
    set: (ms) => void (now = ms),
  };
}

const NOVEMBER = Date.UTC(2026, 10, 30, 8);
const RECALL = { time_unix_ms: 1, session: ORIGIN.session, call: ORIGIN.call, hits: [] };

function opened(disk: FaultyDisk, clock: Clock = clockAt(NOVEMBER)): MemoryStore {
  const store = openStore({ disk, clock, random: seededRandom(1), folder: HOME }, "Be plain.");
  assert.ok(store.ok, store.ok ? "" : `${store.code}: ${store.detail}`);
  return store.value;
}

function bytesOf(disk: FaultyDisk, name: string): Uint8Array {
  const file = disk.open(`${HOME}/${name}`, "read");
  const bytes = new Uint8Array(file.stat().size);
  file.read(bytes);
  file.close();
  return bytes;
}

function text(disk: FaultyDisk, name: string): string {
  const decoded = decodeUtf8(bytesOf(disk, name));
  assert.ok(decoded.ok);
  return decoded.value;
}

function journal(disk: FaultyDisk, month = "2026-11"): Record<string, unknown>[] {
  const lines: Record<string, unknown>[] = [];
  for (const record of readChain(disk, `${HOME}/edits/${month}.jsonl`, JOURNAL_DOMAIN)) {
    assert.ok(record.ok);
    lines.push({ ...Object(record.value.value) });
  }
  return lines;
}

const add = (what: string) => ({ action: "add", file: "memory", text: what }) as const;

Deno.test("openStore() never overwrites what is there, whatever it is", () => {
  const disk = faultyDisk(["/home", HOME]);
  disk.plant(`${HOME}/soul.md`, encodeUtf8("mine"));
  disk.plant(`${HOME}/memory.md`, Uint8Array.of(0x61, 0xff, 0x62));
  const store = opened(disk);
  assert.equal(text(disk, "soul.md"), "mine");
  const block = store.block(IDENTITY_FILES);
  assert.ok(!block.ok && block.code === "memory-unavailable");
  assert.match(block.detail, /memory\.md is not UTF-8 at byte 1/);
  const edit = store.edit(add("x"), ORIGIN);
  assert.ok(!edit.ok && edit.code === "memory-unavailable");
  const file = disk.open(`${HOME}/memory.md`, "read");
  const bytes = new Uint8Array(3);
  file.read(bytes);
  assert.deepEqual([...bytes], [0x61, 0xff, 0x62]);
});

Deno.test("openStore() needs no room on the disk when nothing is missing", () => {
  const disk = faultyDisk(["/home", HOME]);
  opened(disk).close();
  const { open } = disk;
  disk.open = (path, mode) => {
    const write = (bytes: Uint8Array) => {
      throw new DiskError("no_space", `No room for ${bytes.length} bytes`);
    };
    return { ...open(path, mode), write };
  };
  const store = opened(disk);
  assert.ok(store.block(IDENTITY_FILES).ok);
  const note = store.note("tea", ORIGIN);
  assert.equal(!note.ok && note.code, "disk-full");
  store.close();
});

Deno.test("block() names a file over its limit and a missing one", () => {
  const disk = faultyDisk(["/home", HOME]);
  disk.plant(`${HOME}/user.md`, encodeUtf8("é".repeat(1_376)));
  const store = opened(disk);
  const block = store.block(IDENTITY_FILES);
  assert.ok(!block.ok && block.code === "memory-unavailable");
  assert.match(block.detail, /user\.md has 1,376 of 1,375 characters: .* byte 2750/);
  disk.unlink(`${HOME}/soul.md`);
  const gone = store.block(IDENTITY_FILES);
  assert.ok(!gone.ok && /soul\.md/.test(gone.detail));
});

Deno.test("firstBadByte() finds the place in a broken sequence", () => {
  assert.equal(firstBadByte(Uint8Array.of(0x61, 0xef, 0xbf, 0x41)), 1);
  assert.equal(firstBadByte(encodeUtf8("aé\uFFFD😀")), 10);
});

Deno.test("edit() fails cleanly when the owner saves in the middle, and loses neither side", () => {
  const disk = faultyDisk(["/home", HOME]);
  const store = opened(disk);
  assert.ok(store.edit(add("first"), ORIGIN).ok);
  // The owner's editor wins the race between the check of the rules and the rename.
  const original = disk.open;
  disk.open = (path, mode) => {
    if (path.endsWith("memory.md.tmp") && mode === "create_new") {
      disk.plant(`${HOME}/memory.md`, encodeUtf8("owner's own"));
    }
    return original(path, mode);
  };
  const edit = store.edit(add("second"), ORIGIN);
  disk.open = original;
  assert.ok(!edit.ok && edit.code === "memory-changed");
  assert.equal(text(disk, "memory.md"), "owner's own");
  assert.ok(store.edit(add("second"), ORIGIN).ok);
  assert.deepEqual(entriesOf(text(disk, "memory.md")), ["owner's own", "second"]);
  assert.deepEqual(journal(disk).map((line) => line.kind), ["open", "edit", "found", "edit"]);
});

Deno.test("edit() overwrites no owner's save, however late it comes and however it is made", () => {
  for (const way of ["by name", "in place"] as const) {
    const disk = faultyDisk(["/home", HOME]);
    const store = opened(disk);
    assert.ok(store.edit(add("first"), ORIGIN).ok);
    const original = disk.link;
    disk.link = (existing, fresh) => {
      if (way === "by name") disk.plant(`${HOME}/memory.md`, encodeUtf8("owner's own"));
      original(existing, fresh);
      if (way === "by name" || !existing.endsWith(".tmp")) return;
      const file = disk.open(`${HOME}/memory.md.aside`, "read_write");
      file.truncate(0);
      file.write(encodeUtf8("owner's own"));
      file.close();
    };
    const edit = store.edit(add("second"), ORIGIN);
    disk.link = original;
    assert.ok(!edit.ok && edit.code === "memory-changed", way);
    assert.equal(text(disk, "memory.md"), "owner's own", way);
    assert.deepEqual(disk.list(HOME).filter((one) => /tmp|aside/.test(one.name)), [], way);
    assert.ok(store.edit(add("second"), ORIGIN).ok);
    assert.deepEqual(journal(disk).map((line) => line.kind), ["open", "edit", "found", "edit"]);
  }
});

Deno.test("edit() journals before and after, and what left stands in notes.md", () => {
  const disk = faultyDisk(["/home", HOME]);
  const store = opened(disk);
  assert.ok(store.edit(add("one"), ORIGIN).ok);
  assert.ok(store.edit(add("two"), ORIGIN).ok);
  const entries = [{ old: "one", move: true }, { old: "two", text: "two, better" }] as const;
  const done = store.edit({ action: "consolidate", file: "memory", entries: [...entries] }, ORIGIN);
  assert.ok(done.ok && done.value === "two, better");
  const notes = parseNotes(bytesOf(disk, "notes.md")).notes.map((placed) => placed.note);
  assert.deepEqual(notes.map((note) => [note.kind, note.from, note.text]), [
    ["moved", "memory", "one"],
    ["dropped", "memory", "two"],
  ]);
  const last = journal(disk).at(-1);
  assert.equal(last?.before, "one\n§\ntwo");
  assert.equal(last?.after, "two, better");
  assert.equal(last?.call, ORIGIN.call);
});

Deno.test("openStore() journals a change that was made without it", () => {
  const disk = faultyDisk(["/home", HOME]);
  opened(disk).close();
  disk.plant(`${HOME}/user.md`, encodeUtf8("Likes tea"));
  disk.plant(`${HOME}/notes.md`, encodeUtf8("by hand"));
  opened(disk).close();
  const found = journal(disk).filter((line) => line.kind === "found");
  assert.deepEqual(found.map((line) => line.file), ["user", "notes"]);
  assert.equal(found[0]?.after, "Likes tea");
  opened(disk).close();
  assert.equal(journal(disk).length, 3);
});

Deno.test("openStore() goes on in a new file of the chain when the month turns", () => {
  const disk = faultyDisk(["/home", HOME]);
  const clock = clockAt(NOVEMBER);
  const store = opened(disk, clock);
  assert.ok(store.note("in November", ORIGIN).ok);
  clock.set(Date.UTC(2026, 11, 1));
  assert.ok(store.note("in December", ORIGIN).ok);
  clock.set(NOVEMBER);
  assert.ok(store.note("clock stepped back", ORIGIN).ok);
  store.close();
  assert.deepEqual(journal(disk, "2026-12").map((line) => line.kind), ["open", "note", "note"]);
  opened(disk, clock).close();
  assert.equal(journal(disk, "2026-12").length, 3);
});

/** What the scenario was told is done. */
type Told = { entries: string[]; notes: string[] };

function scenario(disk: FaultyDisk, told: Told): void {
  const at = { disk, clock: clockAt(NOVEMBER), random: seededRandom(1), folder: HOME };
  const store = openStore(at, "Be plain.");
  if (!store.ok) return;
  try {
    if (store.value.note("a note\n§ forged", ORIGIN).ok) told.notes.push("a note\n§ forged");
    if (store.value.edit(add("alpha"), ORIGIN).ok) told.entries.push("alpha");
    if (store.value.edit(add("beta"), ORIGIN).ok) told.entries.push("beta");
    store.value.edit({ action: "remove", file: "memory", old: "alpha" }, ORIGIN);
    store.value.logRecall({ ...RECALL, query: "x" });
  } finally {
    store.value.close();
  }
}

function checkAfter(disk: FaultyDisk, told: Told, what: string): void {
  opened(disk).close();
  const entries = entriesOf(text(disk, "memory.md"));
  const notes = parseNotes(bytesOf(disk, "notes.md")).notes.map((placed) => placed.note.text);
  for (const entry of told.entries) {
    assert.ok(entries.includes(entry) || notes.includes(entry), `${what}: ${entry} is lost`);
  }
  for (const note of told.notes) assert.ok(notes.includes(note), `${what}: a note is lost`);
  const lines = journal(disk);
  const unsaid = lines.length;
  opened(disk).close();
  assert.equal(journal(disk).length, unsaid, `${what}: files and journal differ after a start`);
}

Deno.test("openStore() loses nothing it acknowledged, whichever disk call fails or is the last", () => {
  const kinds: FaultKind[] = ["io", "no_space", "short", "crash"];
  for (const kind of kinds) {
    for (const lasting of ["once", "for_good"] as const) {
      // What fails for good fails the same way from call to call; a third of them will do.
      const step = lasting === "for_good" ? 3 : 1;
      for (let failAt = 1;; failAt += step) {
        const disk = faultyDisk(["/home", HOME]);
        disk.setFault({ failAt, kind, lasting, seed: failAt });
        const told: Told = { entries: [], notes: [] };
        try {
          scenario(disk, told);
        } catch (thrown) {
          if (!(thrown instanceof SimulatedCrash)) throw thrown;
        }
        const reached = disk.calls() >= failAt;
        disk.setFault(null);
        const what = `${kind} ${lasting} at call ${failAt}`;
        checkAfter(disk.afterKill(), told, what);
        if (kind === "crash" && disk.pendingChanges() <= 3) {
          // A write may be cut at any byte; a few cuts of each stand for all of them.
          let cut = 0;
          for (const left of disk.afterCrash()) {
            if (cut++ % 47 === failAt % 47) checkAfter(left, told, `${what}, power cut ${cut}`);
          }
        }
        if (!reached) break;
      }
    }
  }
});
