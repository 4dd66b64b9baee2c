// Guards each session's label: it only rises, it survives every loss of its files, and nobody but the
// owner's own files opens a job.
import { deepStrictEqual, ok, strictEqual } from "node:assert";
import fc from "fast-check";
import { SessionId, ulid } from "../../shared/ids/ids.ts";
import { seededRandom } from "../../shared/clock/random.ts";
import { DATA_CLASSES, join, type Label, SESSION_START } from "../../shared/labels/label.ts";
import { readWhole } from "../../shared/disk/durable.ts";
import { encodeUtf8 } from "../../shared/wire/codec.ts";
import {
  HOME,
  newCall,
  newSession,
  newTurn,
  openChat,
  testHouse,
} from "../../tests/doubles/broker_house.ts";
import { settled } from "../../tests/doubles/manual_clock.ts";
import { foldSession, sessionsIn, type SessionState } from "./taint.ts";

const random = seededRandom(3);
const jobSession = (name: string) => SessionId.parse(`job-${name}-${ulid(0, random)}`);
const chat = (session = newSession()) => ({
  session,
  kind: "chat" as const,
  job: null,
  workspace: null,
});

Deno.test("open() an id of another kind, an unnamed job and an unregistered workspace are refused", async () => {
  const test = testHouse();
  const house = test.open();
  const session = newSession();
  const daily = jobSession("daily");
  const openings = [
    { ...chat(session), kind: "main" as const },
    { ...chat(session), job: "daily" },
    { ...chat(session), workspace: "/srv/docs" },
    { session: daily, kind: "job" as const, job: "daily", workspace: null },
    { session: daily, kind: "job" as const, job: null, workspace: null },
  ];
  for (const opening of openings) {
    const opened = house.sessions.open(opening);
    ok(!opened.ok && opened.code === "session-refused", JSON.stringify(opening));
    strictEqual(house.sessions.find(opening.session), null);
  }
  test.disk.plant(`${HOME}/jobs/daily.toml`, encodeUtf8(""));
  ok(house.sessions.open({ session: daily, kind: "job", job: "daily", workspace: null }).ok);
  const other = {
    session: jobSession("weekly"),
    kind: "job" as const,
    job: "daily",
    workspace: null,
  };
  ok(!house.sessions.open(other).ok, "a job's session of another name");
  await house.close();
});

Deno.test("open() twice as the same is one opening, as another is refused, and never lowers a label", async () => {
  const house = testHouse().open();
  const one = chat();
  ok(house.sessions.open(one).ok);
  house.sessions.raise(one.session, { class: "secret", untrusted: true }, "a file");
  const again = house.sessions.open(one);
  ok(again.ok);
  deepStrictEqual(again.value.label, { class: "secret", untrusted: true });
  ok(!house.sessions.open({ ...one, kind: "run" }).ok);
  strictEqual([...house.audit.records()].filter((one) => one.kind === "session").length, 1);
  await house.close();
});

Deno.test("raise() a lower label changes nothing and is not recorded; an unknown session has none", async () => {
  const house = testHouse().open();
  const { session } = chat();
  ok(!house.sessions.raise(session, SESSION_START, "x").ok);
  house.sessions.open(chat(session));
  house.sessions.raise(session, { class: "public", untrusted: false }, "x");
  house.sessions.raise(session, { class: "private", untrusted: true }, "a page");
  house.sessions.raise(session, { class: "public", untrusted: false }, "x");
  const state = house.sessions.find(session);
  deepStrictEqual(state?.label, { class: "private", untrusted: true });
  strictEqual(state?.raises.length, 1);
  strictEqual([...house.audit.records()].filter((one) => one.kind === "raise").length, 1);
  await house.close();
});

const arbLabel: fc.Arbitrary<Label> = fc.record({
  class: fc.constantFrom(...DATA_CLASSES),
  untrusted: fc.boolean(),
});
const arbLoss = fc.constantFrom(
  "nothing" as const,
  "file" as const,
  "folder" as const,
  "damage" as const,
  "stale" as const,
);
const arbStep = fc.oneof(
  { weight: 4, arbitrary: fc.record({ at: fc.nat(3), label: arbLabel }) },
  { weight: 1, arbitrary: fc.constant("new month" as const) },
);

Deno.test("sessionsIn() labels rebuilt from the audit log equal the live ones, whatever was lost and over months", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(arbStep, { maxLength: 10 }), arbLoss, async (steps, lost) => {
      const test = testHouse();
      let house = test.open();
      const main = SessionId.parse(`mm-${"a".repeat(26)}`);
      const sessions = [newSession(), newSession(), newSession(), main];
      const openings = sessions.map((one, i) => ({
        ...chat(one),
        kind: i === 3 ? "main" as const : "chat" as const,
      }));
      const expected = sessions.map((): Label => SESSION_START);
      for (const opening of openings) ok(house.sessions.open(opening).ok);
      const paths = sessions.map((one) => `${HOME}/broker/sessions/${one}.json`);
      const old = paths.map((path) => readWhole(test.disk, path, 9_999));
      for (const step of steps) {
        if (step === "new month") {
          await house.close();
          test.clock.setWall(test.clock.nowUnixMs() + 31 * 86_400_000);
          house = test.open();
          continue;
        }
        const session = sessions[step.at];
        ok(session !== undefined && house.sessions.raise(session, step.label, "x").ok);
        expected[step.at] = join(expected[step.at] ?? SESSION_START, step.label);
      }
      const folded = new Map<SessionId, SessionState>();
      for (const record of house.audit.records()) foldSession(folded, record);
      deepStrictEqual(sessions.map((one) => folded.get(one)?.label), expected);
      await house.close();
      for (const [i, path] of paths.entries()) {
        const before = old[i];
        if (lost === "file" || lost === "folder") test.disk.unlink(path);
        if (lost === "damage") test.disk.plant(path, encodeUtf8("{"));
        if (lost === "stale" && before?.ok === true) test.disk.plant(path, before.value);
      }
      if (lost === "folder") {
        test.disk.rename(`${HOME}/broker/sessions`, `${HOME}/broker/gone`);
      }
      const next = test.open();
      for (const [i, opening] of openings.entries()) {
        const again = next.sessions.open(opening);
        ok(again.ok);
        deepStrictEqual(again.value.label, expected[i], "reopened at another label");
      }
      const opened = [...next.audit.records()].filter((one) => one.kind === "session");
      strictEqual(opened.length, sessions.length, "a session was opened anew");
      await next.close();
    }),
    { numRuns: 100 },
  );
});

Deno.test("find() a fresh id of this life costs no reading of the log, an older one costs one", async () => {
  const test = testHouse();
  const house = test.open();
  const fresh = SessionId.parse(`chat-${ulid(test.clock.nowUnixMs() + 1, random)}`);
  const plain = house.audit.records;
  let reads = 0;
  const counted = sessionsIn(
    { ...test.ports },
    { ...house.audit, records: () => (reads++, plain()) },
    new Map(),
    test.clock.nowUnixMs(),
  );
  test.clock.setWall(test.clock.nowUnixMs() + 1);
  strictEqual(counted.find(fresh), null);
  strictEqual(reads, 0);
  for (let i = 0; i < 3; i++) strictEqual(counted.find(newSession()), null);
  strictEqual(reads, 1);
  await house.close();
});

Deno.test("an identity edit asks the owner, unless its session's label makes it a note or nothing", async () => {
  const above: Label[] = [
    { class: "private", untrusted: true },
    { class: "public", untrusted: true },
    { class: "secret", untrusted: false },
  ];
  for (const label of [SESSION_START, ...above]) {
    const test = testHouse({ config: { memory: { identity_writes: "ask" } } });
    const told: Label[] = [];
    test.memoryReply = (_tool, _args, given) => {
      told.push(given);
      return { ok: true, value: { text: "noted", label: given } };
    };
    const house = test.open();
    const session = openChat(house);
    ok(house.sessions.raise(session, label, "a page").ok);
    const now = house.sessions.find(session)?.label;
    for (
      const edit of [
        '"add","text":"rain"',
        '"remove","old":"rain"',
        '"consolidate","entries":[]',
      ]
    ) {
      const args = `{"action":${edit},"file":"user"}`;
      ok(
        house.calls.request({ session, turn: newTurn(), call: newCall(), tool: "memory", args }).ok,
      );
      await settled();
    }
    // memoryd is told that very label, and edits no identity file under it.
    const isAsked = label === SESSION_START;
    deepStrictEqual(told, isAsked ? [] : [now, now, now]);
    strictEqual(house.approvals.list("pending").length, isAsked ? 3 : 0);
    await house.close();
  }
});
