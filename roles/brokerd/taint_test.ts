// Guards each session's label: it only rises, it survives every loss of its files, and nobody but the
// owner's own files opens a job.
import { deepStrictEqual, ok, strictEqual } from "node:assert";
import fc from "fast-check";
import { SessionId, ulid } from "../../shared/ids/ids.ts";
import { seededRandom } from "../../shared/clock/random.ts";
import { DATA_CLASSES, join, type Label, SESSION_START } from "../../shared/labels/label.ts";
import { encodeUtf8 } from "../../shared/wire/codec.ts";
import { HOME, newSession, type TestHouse, testHouse } from "../../tests/doubles/broker_house.ts";
import { foldSession, type SessionState } from "./taint.ts";

const random = seededRandom(3);
const jobSession = (name: string) => SessionId.parse(`job-${name}-${ulid(0, random)}`);
const chat = (session = newSession()) => ({
  session,
  kind: "chat" as const,
  job: null,
  workspace: null,
});

function forget(test: TestHouse, session: SessionId): void {
  test.disk.unlink(`${HOME}/broker/sessions/${session}.json`);
}

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

Deno.test("sessionsIn() labels rebuilt from the audit log equal the live ones, whatever was lost", async () => {
  const step = fc.tuple(fc.nat(2), arbLabel);
  const loss = fc.constantFrom(
    "nothing" as const,
    "file" as const,
    "folder" as const,
    "damage" as const,
    "stale" as const,
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 8 }), loss, async (steps, lost) => {
      const test = testHouse();
      const house = test.open();
      const sessions = [newSession(), newSession(), newSession()];
      const expected = sessions.map((): Label => SESSION_START);
      for (const session of sessions) house.sessions.open(chat(session));
      const path = `${HOME}/broker/sessions/${sessions[0]}.json`;
      const old = new Uint8Array(test.disk.lstat(path).size);
      const file = test.disk.open(path, "read");
      file.read(old);
      file.close();
      for (const [i, label] of steps) {
        const session = sessions[i];
        ok(session !== undefined);
        house.sessions.raise(session, label, "x");
        expected[i] = join(expected[i] ?? SESSION_START, label);
      }
      const folded = new Map<SessionId, SessionState>();
      for (const record of house.audit.records()) foldSession(folded, record);
      deepStrictEqual(sessions.map((one) => folded.get(one)?.label), expected);
      await house.close();
      if (lost === "file") forget(test, sessions[0] ?? newSession());
      if (lost === "damage") test.disk.plant(path, encodeUtf8("{"));
      if (lost === "stale") test.disk.plant(path, old);
      if (lost === "folder") {
        for (const session of sessions) forget(test, session);
        test.disk.rename(`${HOME}/broker/sessions`, `${HOME}/broker/gone`);
      }
      const next = test.open();
      deepStrictEqual(sessions.map((one) => next.sessions.find(one)?.label), expected);
      await next.close();
    }),
    { numRuns: 100 },
  );
});
