// Guards: whatever the model and the owner do in whatever order, nothing is lost, what is purged is not
// shown, an undo can be undone, and what is shown of a staged edit is what applying it does; and a crash
// at any call of the disk breaks none of what was acknowledged.
import assert from "node:assert/strict";
import fc from "fast-check";
import { seededRandom } from "../../shared/clock/random.ts";
import { sha256Hex } from "../../shared/tool/digest.ts";
import { readWhole } from "../../shared/disk/durable.ts";
import { CallId, SessionId, ulid } from "../../shared/ids/ids.ts";
import { decodeUtf8, encodeUtf8 } from "../../shared/wire/codec.ts";
import { type FaultyDisk, faultyDisk, SimulatedCrash } from "../../tests/doubles/faulty_disk.ts";
import { EDITABLE_FILES, entriesOf, IDENTITY_FILES, textOf } from "./entries.ts";
import { type MemoryStore, openStore } from "./memory_store.ts";
import { runMemory } from "./memory_tool.ts";
import { parseNotes } from "./notes.ts";

const HOME = "/home/memory";
const sessionOf = (n: number) => SessionId.parse(`chat-${ulid(1e12, seededRandom(n))}`);
const callOf = (n: number) => CallId.parse(`c-${ulid(1e12, seededRandom(1_000 + n))}`);
const originOf = (session: number, call: number, untrusted = false) => ({
  session: sessionOf(session),
  call: callOf(call),
  label: { class: "private" as const, untrusted },
});

function opened(disk: FaultyDisk) {
  let now = 1.79e12;
  const clock = {
    nowUnixMs: () => now++,
    monotonicMs: () => now,
    sleep: () => Promise.resolve(),
  };
  return openStore({ disk, clock, random: seededRandom(1), folder: HOME }, "Be plain.");
}

function open(disk: FaultyDisk): MemoryStore {
  const store = opened(disk);
  assert.ok(store.ok, store.ok ? "" : `${store.code}: ${store.detail}`);
  return store.value;
}

function bytesOf(disk: FaultyDisk, name: string): Uint8Array {
  const bytes = readWhole(disk, `${HOME}/${name}`, 1_000_000);
  return bytes.ok ? bytes.value : new Uint8Array();
}

function read(disk: FaultyDisk, file: string): string {
  const text = decodeUtf8(bytesOf(disk, `${file}.md`));
  assert.ok(text.ok);
  return text.value;
}

const notesIn = (disk: FaultyDisk) =>
  parseNotes(bytesOf(disk, "notes.md")).notes.map(({ note }) => note.text);

/** Opens the store anew and sees that the journal says what the files hold. */
function checkJournal(disk: FaultyDisk): void {
  open(disk).close();
  const lines = new TextDecoder().decode(bytesOf(disk, "edits/2026-09.jsonl")).trimEnd().split(
    "\n",
  );
  const state = lines.map((line) => JSON.parse(line).state).findLast((one) => one !== undefined);
  assert.deepEqual(state, {
    memory: sha256Hex(bytesOf(disk, "memory.md")),
    user: sha256Hex(bytesOf(disk, "user.md")),
    notes: bytesOf(disk, "notes.md").length,
  });
}

const text = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom("a", "b", "c", "d\ne", "x\r\ny", "f", "g") },
  fc.constantFrom("§", "a\n§\nb", " ", "\\", "§ note", "é😀", "long ".repeat(60), "\u200b"),
  fc.string({ unit: "binary", maxLength: 12 }).map((one) => one.toWellFormed()),
);
const file = fc.constantFrom(...EDITABLE_FILES);
const fate = fc.constantFrom("keep", "move", "drop", "text");
const act = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      act: fc.constant("tool" as const),
      action: fc.constantFrom("add", "note", "replace", "remove", "consolidate"),
      file,
      text,
      old: fc.nat(5),
      fates: fc.array(fate, { minLength: 9, maxLength: 9 }),
      session: fc.nat(3),
      how: fc.constantFrom("apply", "apply", "stage", "untrusted"),
    }),
  },
  fc.record({ act: fc.constant("undo" as const), file }),
  fc.record({
    act: fc.constant("review" as const),
    number: fc.nat(3),
    decision: fc.constantFrom("apply" as const, "drop" as const),
  }),
  fc.record({ act: fc.constant("purge" as const), session: fc.constantFrom(3, 9) }),
  fc.record({ act: fc.constant("save" as const), file, texts: fc.array(text, { maxLength: 4 }) }),
  fc.record({ act: fc.constant("restart" as const) }),
);
type Act = typeof act extends fc.Arbitrary<infer T> ? T : never;
type House = {
  disk: FaultyDisk;
  store: MemoryStore;
  calls: number;
  purged: Set<number>;
  /** Entries that a purge listed. */
  hidden: Set<string>;
};

function argumentsOf(house: House, one: Extract<Act, { act: "tool" }>): Record<string, unknown> {
  const { action, file, text, old, fates } = one;
  const entries = entriesOf(read(house.disk, file));
  if (action === "note") return { action, text };
  if (action === "add") return { action, file, text };
  if (action === "remove") return { action, file, old: entries[old] ?? text };
  if (action === "replace") return { action, file, old: entries[old] ?? text, text };
  const list = entries.map((entry, i) => {
    const its = fates[i % 9] ?? "keep";
    return its === "text" ? { old: entry, text: text + i } : { old: entry, [its]: true };
  });
  return { action, file, entries: list };
}

function callTool(house: House, one: Extract<Act, { act: "tool" }>): void {
  const { disk, store } = house;
  const before = EDITABLE_FILES.map((name) => read(disk, name));
  const origin = originOf(one.session, house.calls++, one.how === "untrusted");
  const bytes = encodeUtf8(JSON.stringify(argumentsOf(house, one)));
  const answer = runMemory(store, origin, one.how === "stage" ? "stage" : "apply", bytes);
  assert.ok(answer.ok);
  const isDone = answer.value.outcome === "done";
  assert.ok(!isDone || !house.purged.has(one.session), "a purged session wrote");
  const after = EDITABLE_FILES.map((name) => read(disk, name));
  if (!isDone || one.how !== "apply") return assert.deepEqual(after, before);
  const left = [...after.flatMap(entriesOf), ...notesIn(disk)];
  for (const entry of before.flatMap(entriesOf)) {
    assert.ok(left.includes(entry), "an entry is lost");
  }
}

function undoTwice(house: House, file: "memory" | "user"): void {
  const before = read(house.disk, file);
  if (!house.store.undo(file).ok) return assert.equal(read(house.disk, file), before);
  const again = house.store.undo(file);
  assert.ok(again.ok || again.code === "memory-purged");
  if (again.ok) assert.equal(read(house.disk, file), before);
}

function reviewOne(house: House, { number, decision }: Extract<Act, { act: "review" }>): void {
  const staged = house.store.staged();
  assert.ok(staged.ok);
  const one = staged.value[number];
  if (one === undefined) return;
  const { edit, session, call, label } = one;
  const shown = house.store.judged(edit, { session, call, label });
  const done = house.store.review(one.call, decision);
  if (decision === "drop") return assert.ok(done.ok);
  assert.equal(done.ok, shown.ok);
  if (shown.ok) assert.equal(read(house.disk, edit.file), textOf(shown.value.entries));
}

function perform(house: House, one: Act): void {
  if (one.act === "tool") callTool(house, one);
  else if (one.act === "undo") undoTwice(house, one.file);
  else if (one.act === "review") reviewOne(house, one);
  else if (one.act === "save") {
    house.disk.plant(`${HOME}/${one.file}.md`, encodeUtf8(one.texts.join("\n§\n")));
  } else if (one.act === "purge") {
    const gone = house.store.purge(sessionOf(one.session), "a try");
    assert.ok(gone.ok);
    for (const entry of gone.value.entries) house.hidden.add(entry.text);
    house.purged.add(one.session);
  } else {
    house.store.close();
    house.store = open(house.disk);
  }
}

Deno.test("runMemory() and the owner's acts in any order lose nothing and show nothing that is hidden", () => {
  fc.assert(
    fc.property(fc.array(act, { minLength: 20, maxLength: 50, size: "max" }), (acts) => {
      const disk = faultyDisk(["/home", HOME]);
      const sets = { purged: new Set<number>(), hidden: new Set<string>() };
      const house: House = { disk, store: open(disk), calls: 0, ...sets };
      for (const one of acts) {
        perform(house, one);
        const block = house.store.block(IDENTITY_FILES);
        const parts = block.ok ? block.value.text.split(/(?:\n\n)?# [a-z]+\.md.*\n/) : [];
        const shown = parts.slice(2).flatMap(entriesOf);
        assert.ok(!shown.some((entry) => house.hidden.has(entry)), "a purged entry is shown");
      }
      house.store.close();
      checkJournal(disk);
      assert.equal(parseNotes(bytesOf(disk, "notes.md")).unlabelled, 0);
    }),
    { numRuns: 40 },
  );
});

/** What a scenario was told is done. */
type Told = { kept: boolean; staged: boolean; applied: boolean; purged: boolean };

function scenario(disk: FaultyDisk, told: Told): void {
  const store = opened(disk);
  if (!store.ok) return;
  const { edit, stage, undo, review, purge, close } = store.value;
  const add = (what: string) => ({ action: "add", file: "memory", text: what } as const);
  // After `disk-failed` a process ends.
  const steps = [
    () => edit(add("keep"), originOf(2, 1)),
    () => edit(add("poison"), originOf(1, 2)),
    () => stage(add("later"), originOf(2, 3)),
    () => undo("memory"),
    () => undo("memory"),
    () => review(callOf(3), "apply"),
    () => purge(sessionOf(1), "planted"),
  ];
  try {
    for (const [i, step] of steps.entries()) {
      const done = step();
      if (i === 0) told.kept = done.ok;
      if (i === 2) told.staged = done.ok;
      if (i === 5) told.applied = done.ok;
      if (i === 6) told.purged = done.ok;
      if (!done.ok && done.code === "disk-failed") return;
    }
  } finally {
    close();
  }
}

function checkAfter(disk: FaultyDisk, told: Told, what: string): void {
  const store = open(disk);
  const [block, staged] = [store.block(IDENTITY_FILES), store.staged()];
  store.close();
  assert.ok(block.ok && staged.ok, what);
  const entries = entriesOf(read(disk, "memory"));
  assert.ok(!told.kept || entries.includes("keep"), `${what}: an edit is lost`);
  assert.ok(!told.purged || !block.value.text.includes("poison"), `${what}: a purge is lost`);
  assert.ok(!told.applied || entries.includes("later"), `${what}: a review is lost`);
  const waits = staged.value.length === 1;
  assert.ok(!told.staged || waits || entries.includes("later"), `${what}: a staged edit is lost`);
  assert.ok(!told.applied || !waits, `${what}: a review is open again`);
  checkJournal(disk);
}

Deno.test("undo(), stage(), review() and purge() keep what they acknowledged, whichever disk call fails or is the last", () => {
  for (const kind of ["io", "no_space", "short", "crash"] as const) {
    // Every other call; the other ones are struck by the next kind.
    for (let failAt = kind === "io" || kind === "short" ? 1 : 2;; failAt += 2) {
      const disk = faultyDisk(["/home", HOME]);
      disk.setFault({ failAt, kind, lasting: "once", seed: failAt });
      const told = { kept: false, staged: false, applied: false, purged: false };
      try {
        scenario(disk, told);
      } catch (thrown) {
        if (!(thrown instanceof SimulatedCrash)) throw thrown;
      }
      const isReached = disk.calls() >= failAt;
      disk.setFault(null);
      const what = `${kind} at call ${failAt}`;
      checkAfter(disk.afterKill(), told, what);
      if (kind === "crash" && disk.pendingChanges() <= 3) {
        for (const left of disk.afterCrash("edges")) checkAfter(left, told, `${what}, power cut`);
      }
      if (!isReached) break;
    }
  }
});
