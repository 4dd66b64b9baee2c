// Guards: "damage has a name and stops that session alone; a session is never continued with fewer
// records in silence; opening and listing do not read the past".
import { deepStrictEqual, fail, ok as assert, strictEqual } from "node:assert";
import { systemClock } from "../../shared/clock/clock.ts";
import { seededRandom } from "../../shared/clock/random.ts";
import type { Disk } from "../../shared/disk/disk.ts";
import { MessageId, SessionId, TurnId, ulid } from "../../shared/ids/ids.ts";
import type { SessionRecord } from "../../shared/session_log/records.ts";
import { faultyDisk } from "../../tests/doubles/faulty_disk.ts";
import { encodeCanonical } from "../../shared/wire/codec.ts";
import type { Ports } from "./ports.ts";
import { createSession, epochFiles, openSession, verifySession } from "./session_files.ts";
import { listSessions } from "./session_reports.ts";

const random = seededRandom(5);
const session = SessionId.parse(`chat-${ulid(1, random)}`);
const turn = TurnId.parse(`t-${ulid(1, random)}`);
const root = "/sessions";
const folder = `${root}/${session}`;
const files = epochFiles(folder, 0);
const encoder = new TextEncoder();

const portsOf = (disk: Disk): Ports => ({
  clock: systemClock,
  random: seededRandom(8),
  disk,
  log: () => {},
  fatal: (detail) => fail(detail),
});
const baseline = (epoch = 0) => ({
  v: 1 as const,
  session,
  epoch,
  created_unix_ms: 1,
  label: { class: "private" as const, untrusted: false },
  system: "s",
  examples: [],
  tools: [],
  sampling: {},
});
const userRecord = (i: number, content = `message ${i}`): SessionRecord => ({
  ...{ kind: "user", time_unix_ms: i, turn, message_id: MessageId.parse(`m-${i}`) },
  ...{ content, artifact: null },
});
const endRecord = (i: number): SessionRecord => ({
  ...{ kind: "turn_end", time_unix_ms: i, turn, outcome: "answered" },
  so_far: { turns: 3, label: { class: "secret", untrusted: true } },
});

/** A disk with one whole session, and the bytes of its log. */
function written(records: readonly SessionRecord[]) {
  const disk = faultyDisk([root]);
  const made = createSession(portsOf(disk), folder, baseline());
  assert(made.ok);
  for (const record of records) assert(made.value.append(record).ok);
  made.value.close();
  return { disk, bytes: bytesOf(disk, files.log) };
}

function bytesOf(disk: Disk, path: string): Uint8Array {
  const file = disk.open(path, "read");
  const bytes = new Uint8Array(file.stat().size);
  let at = 0;
  while (at < bytes.length) at += file.read(bytes.subarray(at));
  file.close();
  return bytes;
}

const RECORDS = [0, 1].map((i) => userRecord(i, "naïve\u2028text")).concat([endRecord(3)]);

Deno.test("openSession() refuses every prefix of a log by name, and changes none of its bytes", () => {
  const { disk, bytes } = written(RECORDS);
  for (let length = 0; length < bytes.length; length++) {
    const prefix = bytes.slice(0, length);
    disk.plant(files.log, prefix);
    const opened = openSession(portsOf(disk), folder);
    strictEqual(opened.ok ? "ok" : opened.code, "session-damaged", `${length} bytes`);
    deepStrictEqual(bytesOf(disk, files.log), prefix);
  }
  disk.plant(files.log, bytes);
  const whole = openSession(portsOf(disk), folder);
  assert(whole.ok);
  strictEqual(whole.value.records.length, 4);
  whole.value.close();
});

const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
const lines = (bytes: Uint8Array) => text(bytes).split("\n").slice(0, -1);
const DAMAGE: readonly (readonly [name: string, change: (bytes: Uint8Array) => string])[] = [
  ["a run of NUL bytes", (bytes) => text(bytes).replace(/.{20}\n$/, "\0".repeat(20) + "\n")],
  ["NUL bytes in the middle", (bytes) => text(bytes).replace("message_id", "\0".repeat(10))],
  ["fused records", (bytes) => lines(bytes).join("")],
  ["a removed record", (bytes) => lines(bytes).toSpliced(1, 1).join("\n") + "\n"],
  ["records in another order", (bytes) => lines(bytes).toSorted().reverse().join("\n") + "\n"],
  ["a line break that is U+2028", (bytes) => lines(bytes).join("\u2028") + "\n"],
  ["a newer version", (bytes) => text(bytes).replace(/\{"v":1,"n":2/, '{"v":2,"n":2')],
  ["an unknown kind", (bytes) => text(bytes).replace('"kind":"turn_end"', '"kind":"turn_emd"')],
  ["a lone surrogate", (bytes) => text(bytes).replace("na\u00efve", "\\ud800")],
  ["an edited word", (bytes) => text(bytes).replace("na\u00efve", "noble")],
];
for (const [name, change] of DAMAGE) {
  Deno.test(`openSession() refuses a log with ${name}`, () => {
    const { disk, bytes } = written(RECORDS);
    const changed = encoder.encode(change(bytes));
    assert(text(changed) !== text(bytes));
    disk.plant(files.log, changed);
    const opened = openSession(portsOf(disk), folder);
    strictEqual(opened.ok ? "ok" : opened.code, "session-damaged");
    deepStrictEqual(bytesOf(disk, files.log), changed);
  });
}

Deno.test("openSession() refuses a baseline that is not readable, or newer", () => {
  const { disk } = written(RECORDS);
  const good = text(bytesOf(disk, files.baseline));
  for (const bad of ["", "{", good.slice(0, -1), good.replace('"v":1', '"v":2'), `${good} `]) {
    disk.plant(files.baseline, encoder.encode(bad));
    const opened = openSession(portsOf(disk), folder);
    strictEqual(opened.ok ? "ok" : opened.code, "session-damaged", bad.slice(0, 20));
    const listed = listSessions(disk, root, { before: null, limit: 5 }, () => false);
    deepStrictEqual(listed.ok ? listed.value.map((one) => one.state) : [], ["damaged"]);
  }
});

/** What opening and what verifying say of a session's files. */
function judged(disk: Disk, at = folder): { readonly opened: string; readonly isWhole: boolean } {
  const verified = verifySession(disk, at);
  const opened = openSession(portsOf(disk), at);
  if (opened.ok) opened.value.close();
  return {
    opened: opened.ok ? "ok" : opened.code,
    isWhole: verified.ok && verified.value.isWhole,
  };
}
const REFUSED = { opened: "session-damaged", isWhole: false };

Deno.test("openSession() and verifySession() refuse every single-bit flip of a baseline", () => {
  const { disk } = written(RECORDS);
  const good = bytesOf(disk, files.baseline);
  for (let bit = 0; bit < good.length * 8; bit++) {
    const flipped = good.slice();
    flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7));
    disk.plant(files.baseline, flipped);
    deepStrictEqual(judged(disk), REFUSED, `bit ${bit}`);
    deepStrictEqual(bytesOf(disk, files.baseline), flipped);
  }
  disk.plant(files.baseline, good);
  deepStrictEqual(judged(disk), { opened: "ok", isWhole: true });
});

Deno.test("openSession() and verifySession() refuse a baseline that was altered and is well-formed", () => {
  const { disk } = written(RECORDS);
  const good = baseline();
  const altered: readonly object[] = [
    { ...good, system: "obey" },
    { ...good, label: { class: "public", untrusted: false } },
    { ...good, tools: [{ type: "function" }] },
    { ...good, examples: [{ role: "user", content: "yes" }] },
    { ...good, sampling: { temperature: 2 } },
    { ...good, created_unix_ms: 2 },
    { ...good, epoch: 1 },
    { ...good, session: `chat-${ulid(2, random)}` },
  ];
  for (const one of altered) {
    disk.plant(files.baseline, encodeCanonical(one));
    deepStrictEqual(judged(disk), REFUSED, JSON.stringify(one));
  }
});

Deno.test("openSession() and verifySession() refuse what belongs to another session", () => {
  const { disk } = written(RECORDS);
  const other = SessionId.parse(`chat-${ulid(9, random)}`);
  const place = `${root}/${other}`;
  const made = createSession(portsOf(disk), place, { ...baseline(), session: other });
  assert(made.ok);
  made.value.close();
  const foreign = epochFiles(place, 0);
  const good = bytesOf(disk, foreign.baseline);
  disk.plant(foreign.baseline, bytesOf(disk, files.baseline));
  deepStrictEqual(judged(disk, place), REFUSED, "its baseline");
  disk.plant(foreign.log, bytesOf(disk, files.log));
  disk.plant(foreign.head, bytesOf(disk, files.head));
  deepStrictEqual(judged(disk, place), REFUSED, "all its files");
  disk.plant(foreign.baseline, good);
  deepStrictEqual(judged(disk, place), REFUSED, "its log and head");
});

Deno.test("openSession() refuses an emptied log, also when its head is gone", () => {
  const { disk, bytes } = written(RECORDS);
  disk.unlink(files.head);
  for (const length of [0, 1, 40]) {
    const kept = bytes.slice(0, length);
    disk.plant(files.log, kept);
    deepStrictEqual(judged(disk), REFUSED, `${length} bytes`);
    deepStrictEqual(bytesOf(disk, files.log), kept);
  }
});

Deno.test("createSession() refuses a log whose baseline was taken away, and changes none of it", () => {
  const { disk, bytes } = written(RECORDS);
  disk.unlink(files.baseline);
  const again = createSession(portsOf(disk), folder, { ...baseline(), system: "other" });
  strictEqual(again.ok ? "ok" : again.code, "session-damaged");
  deepStrictEqual(bytesOf(disk, files.log), bytes);
  disk.plant(files.log, encoder.encode(`${lines(bytes)[0]}\n`));
  const short = createSession(portsOf(disk), folder, { ...baseline(), system: "other" });
  strictEqual(short.ok ? "ok" : short.code, "session-damaged");
});

Deno.test("createSession() takes up what a crash before the baseline has left, with another baseline", () => {
  const { disk } = written([]);
  const log = bytesOf(disk, files.log);
  const head = bytesOf(disk, files.head);
  const left: readonly (readonly [Uint8Array, Uint8Array | null])[] = [
    [log, head],
    [log, null],
    [log.slice(0, 40), null],
    [log.slice(0, 0), null],
  ];
  for (const [logLeft, headLeft] of left) {
    disk.unlink(files.baseline);
    disk.unlink(files.head);
    disk.plant(files.log, logLeft);
    if (headLeft !== null) disk.plant(files.head, headLeft);
    const made = createSession(portsOf(disk), folder, { ...baseline(), system: "other" });
    assert(made.ok);
    assert(made.value.append(userRecord(1)).ok);
    made.value.close();
    deepStrictEqual(judged(disk), { opened: "ok", isWhole: true });
  }
});

Deno.test("openSession() notices a log that was taken away, also together with its head", () => {
  const { disk } = written(RECORDS);
  disk.unlink(files.log);
  const without = openSession(portsOf(disk), folder);
  strictEqual(without.ok ? "ok" : without.code, "session-damaged");
  disk.unlink(files.head);
  const both = openSession(portsOf(disk), folder);
  strictEqual(both.ok ? "ok" : both.code, "session-damaged");
  const listed = listSessions(disk, root, { before: null, limit: 5 }, () => false);
  deepStrictEqual(listed.ok ? listed.value.map((one) => one.state) : [], ["damaged"]);
});

Deno.test("listSessions() shows an altered last record as damage, not what it says", () => {
  const { disk, bytes } = written(RECORDS);
  disk.plant(files.log, encoder.encode(text(bytes).replace('"secret"', '"public"')));
  const listed = listSessions(disk, root, { before: null, limit: 5 }, () => false);
  assert(listed.ok);
  deepStrictEqual(listed.value.map((one) => [one.state, one.label.class]), [[
    "damaged",
    "private",
  ]]);
});

/** Counts the bytes that are read. */
function counting(disk: Disk): { readonly disk: Disk; bytes(): number } {
  let bytes = 0;
  const open: Disk["open"] = (path, mode) => {
    const file = disk.open(path, mode);
    return {
      ...file,
      read(into) {
        const got = file.read(into);
        bytes += got;
        return got;
      },
    };
  };
  return { disk: { ...disk, open }, bytes: () => bytes };
}

Deno.test("openSession() and listSessions() read the same of a session with a past of 100,000 records", () => {
  const cost = (past: number) => {
    const { disk } = written(RECORDS);
    const line = `${JSON.stringify(endRecord(1))}\n`;
    disk.plant(files.log, encoder.encode(line.repeat(past)));
    const next = createSession(portsOf(disk), folder, baseline(1));
    assert(next.ok);
    for (const record of RECORDS) assert(next.value.append(record).ok);
    next.value.close();
    const opening = counting(disk);
    const opened = openSession(portsOf(opening.disk), folder);
    assert(opened.ok && opened.value.records.length === 4);
    opened.value.close();
    const listing = counting(disk);
    const listed = listSessions(listing.disk, root, { before: null, limit: 5 }, () => false);
    deepStrictEqual(listed.ok ? listed.value.map((one) => one.epoch) : [], [1]);
    return [opening.bytes(), listing.bytes()];
  };
  deepStrictEqual(cost(100_000), cost(1));
});

Deno.test("openSession() reads the epoch that it opens once", () => {
  const { disk, bytes } = written(Array.from({ length: 300 }, (_, i) => userRecord(i)));
  const counted = counting(disk);
  const opened = openSession(portsOf(counted.disk), folder);
  assert(opened.ok && opened.value.records.length === 301);
  opened.value.close();
  // Beside the log: the baseline, the head, and the head's own record once more.
  assert(counted.bytes() < bytes.length + 3_000, `${counted.bytes()} of ${bytes.length} bytes`);
});

Deno.test("listSessions() reads of an idle session its last record alone, and knows it all", () => {
  const cost = (turns: number) => {
    const many = Array.from({ length: turns }, (_, i) => userRecord(i));
    const { disk } = written([...many, endRecord(turns)]);
    const counted = counting(disk);
    const listed = listSessions(counted.disk, root, { before: null, limit: 5 }, () => false);
    assert(listed.ok && listed.value[0] !== undefined);
    const { turns: told, records, label, state } = listed.value[0];
    deepStrictEqual([told, records, label, state], [3, turns + 2, {
      class: "secret",
      untrusted: true,
    }, "idle"]);
    return counted.bytes();
  };
  // The numbers in the head and in the last record grow by a few digits.
  assert(cost(300) - cost(3) < 40);
});
