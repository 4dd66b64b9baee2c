// Guards the audit log as brokerd keeps it: it refuses to go on from anything but itself, goes on in a
// new file each month, and says where it is broken.
import { deepStrictEqual, match, ok, strictEqual } from "node:assert";
import { encodeUtf8 } from "../../shared/wire/codec.ts";
import { HOME, openChat, type TestHouse, testHouse } from "../../tests/doubles/broker_house.ts";
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

Deno.test("append() a text that would break a line, or is no text, is one line or none", async () => {
  const test = testHouse();
  const house = test.open();
  const before = textOf(test).split("\n").length;
  for (const why of ["a\nb", "\u2028", "\u001b[2J", "x".repeat(1_000_000)]) {
    ok(house.audit.append({ kind: "alarm", code: "x", detail: why, witness: null }).ok);
  }
  ok(!house.audit.append({ kind: "alarm", code: "x", detail: "\ud800", witness: null }).ok);
  strictEqual(textOf(test).split("\n").length, before + 4);
  await house.close();
});
