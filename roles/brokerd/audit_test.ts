// Guards the audit log as brokerd keeps it: it refuses to go on from anything but itself, goes on in a
// new file each month, and says where it is broken.
import { deepStrictEqual, match, ok, strictEqual } from "node:assert";
import { encodeUtf8 } from "../../shared/wire/codec.ts";
import { HOME, openChat, type TestHouse, testHouse } from "../../tests/doubles/broker_house.ts";
import { hashLine } from "../../shared/chain/chain_record.ts";
import { AUDIT_DOMAIN } from "./audit_records.ts";
import { SimulatedCrash } from "../../tests/doubles/faulty_disk.ts";
import { openHouse } from "./house.ts";
import { repairClosed, verifyClosed } from "./audit.ts";
import { brokenLogRoutes } from "./audit_requests.ts";
import { attempt } from "../../shared/disk/durable.ts";
import { call } from "../../shared/wire/dial.ts";
import { listen } from "../../shared/wire/listen.ts";
import { AUDIT_REPAIR, AUDIT_VERIFY, BROKER_STATUS, STOP } from "../../shared/wire/broker_owner.ts";

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

/** Damages of a log that is opened again, each with what `verify` says after it was declared. */
const DAMAGES: readonly (readonly [string, (test: TestHouse, lines: string[]) => void])[] = [
  ["edit", (test) => plantLog(test, textOf(test).replace("private", "public"))],
  ["deletion", (test, lines) => plantLog(test, lines.toSpliced(2, 1).join("\n") + "\n")],
  ["cut off", (test, lines) => plantLog(test, lines.slice(0, -1).join("\n") + "\n")],
  ["file gone", (test) => test.disk.unlink(LOG)],
  ["emptied", (test) => plantLog(test, "")],
  ["head gone", (test) => test.disk.unlink(`${HOME}/audit/head.json`)],
  ["head unreadable", (test) => test.disk.plant(`${HOME}/audit/head.json`, encodeUtf8("{}"))],
];
const plantLog = (test: TestHouse, text: string) => test.disk.plant(LOG, encodeUtf8(text));

/** Asks the routes that are served while the log is damaged, over a socket. */
async function asked(
  test: TestHouse,
  ask: (path: string) => Promise<void>,
): Promise<number> {
  const opened = openHouse(test.ports);
  ok(!opened.ok);
  let ended = 0;
  const path = `${Deno.makeTempDirSync()}/s`;
  const routes = brokenLogRoutes(test.ports, `${HOME}/audit`, opened, () => ended++);
  const server = listen({ path, routes, log: () => {} });
  try {
    await ask(path);
  } finally {
    await server.close();
    Deno.removeSync(path.slice(0, -2), { recursive: true });
  }
  return ended;
}

Deno.test("brokenLogRoutes() nothing is done but for the very finding that was shown", async () => {
  const test = await filled();
  plantLog(test, textOf(test).replace("private", "public"));
  const before = textOf(test);
  const ended = await asked(test, async (path) => {
    const status = await call(path, BROKER_STATUS, {});
    ok(!status.ok && status.code === "audit-broken");
    const verified = await call(path, AUDIT_VERIFY, { against: null });
    ok(verified.ok && !verified.value.body.is_whole);
    match(verified.value.body.finding, /record \d+: edit/);
    for (const finding of [null, "", "x", verified.value.body.finding]) {
      const said = await call(path, AUDIT_REPAIR, { finding });
      ok(said.ok && !said.value.body.is_done);
    }
    const stop = await call(path, STOP, { why: "x" });
    ok(!stop.ok && stop.code === "kind-unknown");
    strictEqual(textOf(test), before);
    strictEqual(test.disk.list(`${HOME}/audit`).length, 2);
    const shown = await call(path, AUDIT_REPAIR, { finding: null });
    ok(shown.ok);
    const done = await call(path, AUDIT_REPAIR, { finding: shown.value.body.finding });
    ok(done.ok && done.value.body.is_done && done.value.body.head !== null);
  });
  strictEqual(ended, 1);
  await test.open().close();
});

Deno.test("repairClosed() a declared repair keeps what was damaged, says what was lost, and is whole from there", async () => {
  for (const [name, damage] of DAMAGES) {
    const test = await filled();
    const first = test.open();
    const shown = first.audit.head();
    const lowered = openChat(first);
    first.sessions.raise(lowered, { class: "private", untrusted: true }, "a page");
    const last = first.audit.head();
    await first.close();
    damage(test, textOf(test).trimEnd().split("\n"));
    const damaged = attempt(() => textOf(test));
    const opened = openHouse(test.ports);
    ok(!opened.ok && opened.code === "audit-broken", name);
    const found = await verifyClosed(test.ports, `${HOME}/audit`, opened, null, () => {});
    ok(found.ok && !found.value.is_whole && found.value.finding !== "", name);
    const repaired = repairClosed(test.ports, `${HOME}/audit`, opened);
    ok(repaired.ok, name);
    if (damaged.ok) strictEqual(textOf(test, `${LOG}.broken-1`), damaged.value, name);
    test.disk.unlink(`${HOME}/broker/sessions/${lowered}.json`);
    const house = test.open();
    const verified = await house.audit.verify(null, () => {});
    ok(verified.ok && verified.value.is_whole, `${name}: ${verified.ok && verified.value.finding}`);
    match(
      verified.value.finding,
      /^Whole but for .*, as the owner declared: .* is damaged \(\w+\)/,
    );
    if (!name.startsWith("head") && name !== "file gone" && name !== "emptied") {
      ok(house.checkWitness(last).ok, `${name}: the last head that was shown is not known`);
    }
    if (name === "edit") ok(!house.checkWitness({ ...shown, hash: "a".repeat(64) }).ok);
    if (damaged.ok && name !== "emptied" && name !== "cut off") {
      strictEqual(house.sessions.find(lowered)?.label.untrusted, true, `${name}: a label fell`);
    }
    await house.close();
    // Again: a second damage and repair, and then what was put aside first is tampered with.
    plantLog(test, textOf(test).replace("open", "opem"));
    const again = openHouse(test.ports);
    ok(!again.ok && repairClosed(test.ports, `${HOME}/audit`, again).ok, name);
    const third = test.open();
    const twice = await third.audit.verify(null, () => {});
    ok(twice.ok && twice.value.is_whole, `${name}: ${twice.ok && twice.value.finding}`);
    const kept = test.disk.list(`${HOME}/audit`).map((one) => one.name).find((one) =>
      /jsonl\.broken-/.test(one)
    );
    ok(kept !== undefined);
    test.disk.plant(`${HOME}/audit/${kept}`, encodeUtf8("other"));
    const gone = await third.audit.verify(null, () => {});
    await third.close();
    if (!gone.ok || !gone.value.is_whole) continue;
    ok(kept.endsWith("-1"), `${name}: what was put aside was changed and nobody noticed`);
  }
});

Deno.test("repairClosed() what an interrupted rotation began is put aside too", async () => {
  const test = await filled();
  const next = `${HOME}/audit/2026-12.jsonl`;
  test.disk.plant(next, encodeUtf8(textOf(test).split("\n")[0] + "\n"));
  plantLog(test, textOf(test).replace("private", "public"));
  test.clock.setWall(test.clock.nowUnixMs() + 2 * DAY);
  const opened = openHouse(test.ports);
  ok(!opened.ok && opened.code === "audit-broken");
  ok(repairClosed(test.ports, `${HOME}/audit`, opened).ok);
  const house = test.open();
  const verified = await house.audit.verify(null, () => {});
  ok(verified.ok && verified.value.is_whole, verified.ok ? verified.value.finding : "");
  await house.close();
});

Deno.test("repairClosed() a crash at any disk call loses nothing that was put aside, and can be gone on from", async () => {
  const folder = `${HOME}/audit`;
  let disks = 0;
  for (let failAt = 1;; failAt++) {
    const test = await filled();
    plantLog(test, textOf(test).replace("private", "public"));
    const damaged = textOf(test);
    const opened = openHouse(test.ports);
    ok(!opened.ok);
    test.disk.setFault({ failAt, kind: "crash", lasting: "for_good", seed: 1 });
    try {
      repairClosed(test.ports, folder, opened);
    } catch (thrown) {
      if (!(thrown instanceof SimulatedCrash)) throw thrown;
    }
    if (!test.disk.hasCrashed()) break;
    for (const disk of test.disk.afterCrash("edges")) {
      disks++;
      const next = testHouse({}, disk);
      let house = openHouse(next.ports);
      for (let i = 0; !house.ok && i < 3; i++) {
        ok(repairClosed(next.ports, folder, house).ok, `call ${failAt}: ${house.detail}`);
        house = openHouse(next.ports);
      }
      ok(house.ok, `call ${failAt}: ${house.ok ? "" : house.detail}`);
      const verified = await house.value.audit.verify(null, () => {});
      ok(
        verified.ok && verified.value.is_whole,
        `${failAt}: ${verified.ok && verified.value.finding}`,
      );
      await house.value.close();
      const kept = disk.list(folder).map(({ name }) => textOf(next, `${folder}/${name}`));
      ok(kept.includes(damaged), `call ${failAt}: what was damaged is gone`);
    }
  }
  ok(disks > 5, `only ${disks} crashes`);
});

Deno.test("repair() an older month that was damaged is declared lost in the running log", async () => {
  const test = await filled();
  test.clock.setWall(test.clock.nowUnixMs() + 2 * DAY);
  const house = test.open();
  openChat(house);
  const before = textOf(test);
  plantLog(test, before.replace("private", "public"));
  const found = await house.audit.verify(null, () => {});
  ok(found.ok && found.value.broken !== null && found.value.broken.file === "2026-11.jsonl");
  ok(house.audit.repair(found.value.broken, found.value.finding).ok);
  const verified = await house.audit.verify(null, () => {});
  ok(verified.ok && verified.value.is_whole, verified.ok ? verified.value.finding : "");
  match(
    verified.value.finding,
    /put aside as 2026-11\.jsonl\.broken-1, damaged from record \d+ on.*: edit/,
  );
  match(
    textOf(test, `${HOME}/audit/2026-12.jsonl`),
    /"kind":"repair".*"repaired":\{"file":"2026-11/,
  );
  // The present month, while brokerd runs.
  const now = `${HOME}/audit/2026-12.jsonl`;
  test.disk.plant(now, encodeUtf8(textOf(test, now).replace("session", "sessiom")));
  const second = await house.audit.verify(null, () => {});
  ok(second.ok && second.value.broken !== null);
  ok(house.audit.repair(second.value.broken, second.value.finding).ok);
  openChat(house);
  // The first declaration went along with what was put aside; the whole gap is told.
  const both = await house.audit.verify(null, () => {});
  ok(both.ok && both.value.is_whole, both.ok ? both.value.finding : "");
  match(both.value.finding, /^Whole but for records 0 to \d+, put aside as 2026-12/);
  await house.close();
  await test.open().close();
});

Deno.test("repair() a month that is not there any more is declared gone", async () => {
  const test = await filled();
  test.clock.setWall(test.clock.nowUnixMs() + 2 * DAY);
  const house = test.open();
  test.disk.unlink(LOG);
  const found = await house.audit.verify(null, () => {});
  ok(found.ok && found.value.broken !== null && !found.value.is_whole);
  match(found.value.finding, /missing file/);
  ok(house.audit.repair(found.value.broken, found.value.finding).ok);
  const end = await house.audit.verify(null, () => {});
  ok(end.ok && end.value.is_whole, end.ok ? end.value.finding : "");
  match(end.value.finding, /^Whole but for records 0 to \d+, gone, as the owner declared/);
  await house.close();
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

Deno.test("verify() sees every flipped bit of a log of two files, whatever it hits", async () => {
  const test = await filled();
  const house = test.open();
  test.clock.setWall(test.clock.nowUnixMs() + 2 * DAY);
  ok(house.audit.rotateIfDue().ok);
  openChat(house);
  for (const path of [LOG, `${HOME}/audit/2026-12.jsonl`]) {
    const log = encodeUtf8(textOf(test, path));
    for (let bit = 0; bit < log.length * 8; bit++) {
      const at = bit >> 3;
      test.disk.plant(path, log.with(at, (log[at] ?? 0) ^ (1 << (bit & 7))));
      const verified = await house.audit.verify(null, () => {});
      ok(verified.ok && !verified.value.is_whole, `${path}, byte ${at}, bit ${bit & 7}`);
    }
    test.disk.plant(path, log);
  }
  const whole = await house.audit.verify(null, () => {});
  ok(whole.ok && whole.value.is_whole);
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
