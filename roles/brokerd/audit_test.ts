// Guards the audit log as brokerd keeps it: it refuses to go on from anything but itself, goes on in a
// new file each month, and says where it is broken.
import { deepStrictEqual, match, ok, strictEqual } from "node:assert";
import { encodeUtf8 } from "../../shared/wire/codec.ts";
import { HOME, openChat, type TestHouse, testHouse } from "../../tests/doubles/broker_house.ts";
import { hashLine } from "../../shared/chain/chain_record.ts";
import { AUDIT_DOMAIN } from "./audit_records.ts";
import { openHouse } from "./house.ts";

const LOG = `${HOME}/audit/2026-11.jsonl`;
const DAY = 86_400_000;

function textOf(test: TestHouse, path = LOG): string {
  const file = test.disk.open(path, "read");
  const bytes = new Uint8Array(file.stat().size);
  file.read(bytes);
  file.close();
  return new TextDecoder().decode(bytes);
}

async function filled(): Promise<TestHouse> {
  const test = testHouse();
  const house = test.open();
  for (let i = 0; i < 3; i++) openChat(house);
  await house.close();
  return test;
}

Deno.test("openHouse() a log that was cut, edited, swapped or removed is refused as audit-broken", async () => {
  const lines = textOf(await filled()).split("\n");
  const damages: ((test: TestHouse) => void)[] = [
    (test) => test.disk.plant(LOG, encodeUtf8(lines.slice(0, -2).join("\n") + "\n")),
    (test) => test.disk.plant(LOG, encodeUtf8(textOf(test).replace("private", "public"))),
    (test) =>
      test.disk.plant(
        LOG,
        encodeUtf8([lines[0], lines[2], lines[1], ...lines.slice(3)].join("\n")),
      ),
    (test) => test.disk.unlink(LOG),
    (test) => test.disk.unlink(`${HOME}/audit/head.json`),
    (test) => test.disk.plant(`${HOME}/audit/head.json`, encodeUtf8("{}")),
    (test) => test.disk.plant(LOG, new Uint8Array()),
  ];
  for (const [i, damage] of damages.entries()) {
    const test = await filled();
    damage(test);
    const opened = openHouse(test.ports);
    ok(!opened.ok && opened.code === "audit-broken", `damage ${i}`);
  }
});

Deno.test("openHouse() a torn last line is cut and said; the log goes on", async () => {
  const test = await filled();
  test.disk.plant(LOG, encodeUtf8(textOf(test) + '{"v":1,"n":9,"pre'));
  const house = test.open();
  match(textOf(test), /"kind":"repair".*"cut_bytes":17,/);
  const verified = await house.audit.verify(null, () => {});
  ok(verified.ok && verified.value.is_whole);
  await house.close();
});

Deno.test("rotateIfDue() a new month is a new file that names the old one's head", async () => {
  const test = await filled();
  const before = textOf(test);
  test.clock.setWall(test.clock.nowUnixMs() + 2 * DAY);
  const house = test.open();
  openChat(house);
  strictEqual(textOf(test), before);
  match(textOf(test, `${HOME}/audit/2026-12.jsonl`), /"previous":\{"file":"2026-11.jsonl"/);
  const verified = await house.audit.verify(null, () => {});
  ok(verified.ok && verified.value.is_whole);
  strictEqual(verified.value.files, 2);
  const tail = house.audit.tail(100);
  ok(tail.ok);
  strictEqual(tail.value.length, verified.value.records);
  deepStrictEqual(house.audit.tail(2).ok, true);
  const first = { n: 0, hash: "" };
  ok(!house.audit.holds(first));
  await house.close();
  test.disk.unlink(LOG);
  const next = test.open();
  const missing = await next.audit.verify(null, () => {});
  ok(missing.ok && !missing.value.is_whole, "a missing month was not noticed");
  await next.close();
});

/** What `verify` says of a log whose lines were changed while brokerd ran. */
async function foundIn(change: (lines: string[]) => string[]): Promise<string> {
  const test = await filled();
  const house = test.open();
  const lines = change(textOf(test).trimEnd().split("\n"));
  test.disk.plant(LOG, encodeUtf8(lines.map((line) => `${line}\n`).join("")));
  const verified = await house.audit.verify(null, () => {});
  await house.close();
  ok(verified.ok);
  return verified.value.finding;
}

/** The same records as another brokerd would have chained them, from record `from` on. */
function rechained(lines: readonly string[], from: number): string[] {
  const made: string[] = lines.slice(0, from);
  for (const line of lines.slice(from)) {
    const before = made.at(-1);
    const prev = before === undefined ? "0".repeat(64) : hashLine(AUDIT_DOMAIN, before);
    made.push(line.replace(/"prev":"[0-9a-f]{64}"/, `"prev":"${prev}"`));
  }
  return made;
}

Deno.test("verify() tells a torn tail, an edit, a deletion, a fork and a splice apart", async () => {
  const edited = (line: string) => line.replace('"time":"2026', '"time":"2025');
  const cases: readonly (readonly [RegExp, (lines: string[]) => string[]])[] = [
    [
      /^2026-11\.jsonl, record 4: edit: /,
      (all) => all.map((one, i) => i === 3 ? edited(one) : one),
    ],
    [/record 2: edit: .*not_json/, (all) => all.map((one, i) => i === 2 ? one.slice(1) : one)],
    [/record 2: deletion: /, (all) => all.toSpliced(2, 1)],
    [/^deletion at its end: /, (all) => all.slice(0, -1)],
    [/^fork: /, (all) => rechained(all.map((one, i) => i === 3 ? edited(one) : one), 4)],
    [/record 3: splice: /, (all) => all.toSpliced(2, 0, all[2] ?? "")],
    [
      /record 3: splice: /,
      (all) => {
        const other = rechained(all.map((one, i) => i === 0 ? edited(one) : one), 1);
        return [...all.slice(0, 3), ...other.slice(3).map((one, i) => i === 0 ? one : edited(one))];
      },
    ],
  ];
  for (const [says, change] of cases) match(await foundIn(change), says);
  const test = await filled();
  const house = test.open();
  test.disk.plant(LOG, encodeUtf8(textOf(test) + '{"v":1'));
  const torn = await house.audit.verify(null, () => {});
  ok(torn.ok);
  match(torn.value.finding, /torn tail/);
  await house.close();
});

Deno.test("openHouse() a log that the owner put aside begins anew, and what callers were shown is accepted once", async () => {
  const test = await filled();
  const house = test.open();
  const shown = house.audit.head();
  await house.close();
  test.disk.plant(LOG, encodeUtf8(textOf(test).replace("private", "public")));
  ok(!openHouse(test.ports).ok);
  for (const path of [LOG, `${HOME}/audit/head.json`]) test.disk.unlink(path);
  const anew = test.open();
  ok(!anew.checkWitness(shown).ok && anew.stop.isStopped(), "another history was not noticed");
  ok(anew.resume().ok);
  ok(anew.checkWitness(shown).ok && !anew.stop.isStopped());
  const kinds = [...anew.audit.records()].map((one) => one.kind);
  for (const kind of ["alarm", "stop", "resume"] as const) ok(kinds.includes(kind), kind);
  ok(
    !anew.checkWitness({ n: shown.n, hash: "e".repeat(64) }).ok,
    "any other head is still refused",
  );
  await anew.close();
});

Deno.test("tail() ends at the record that was asked for, also in an older file", async () => {
  const test = await filled();
  test.clock.setWall(test.clock.nowUnixMs() + 2 * DAY);
  const house = test.open();
  openChat(house);
  for (let n = 0; n <= house.audit.head().n; n++) {
    const line = house.audit.tail(1, n);
    ok(line.ok && line.value.length === 1 && line.value[0]?.includes(`"n":${n},`), String(n));
  }
  await house.close();
});

Deno.test("verify() names the record that was changed, and a head that was never there", async () => {
  const test = await filled();
  const house = test.open();
  const head = house.audit.head();
  let told = 0;
  const whole = await house.audit.verify(head, () => told++);
  ok(whole.ok && whole.value.is_whole && told > 0);
  const other = await house.audit.verify({ n: head.n, hash: "f".repeat(64) }, () => {});
  ok(other.ok && !other.value.is_whole);
  match(other.value.finding, /does not hold/);
  test.disk.plant(LOG, encodeUtf8(textOf(test).replace("private", "public")));
  const broken = await house.audit.verify(null, () => {});
  ok(broken.ok && !broken.value.is_whole);
  match(broken.value.finding, /record \d+/);
  await house.close();
});

Deno.test("append() a text that would break a line, or is half a character, is one line", async () => {
  const test = testHouse();
  const house = test.open();
  const before = textOf(test).split("\n").length;
  for (const why of ["a\nb", "\u2028", "\u001b[2J", "x".repeat(1_000_000)]) {
    ok(house.audit.append({ kind: "alarm", code: "x", detail: why, witness: null }).ok);
  }
  ok(house.audit.append({ kind: "alarm", code: "x", detail: "\ud800", witness: null }).ok);
  match(textOf(test), /"detail":"\ufffd"/);
  strictEqual(textOf(test).split("\n").length, before + 5);
  await house.close();
});
