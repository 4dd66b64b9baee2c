// Kills memoryd, under its real flags, at random moments of writing and starting, while the owner saves
// memory.md in the middle of its edits. After each start: no acknowledged write and no owner's save is
// lost, and the journal's last state is that of the files. At the end recall finds the last note.
// Throws when not.
import { deepStrictEqual, ok, strictEqual } from "node:assert";
import { seededRandom, systemRandom } from "../../shared/clock/random.ts";
import { readChain } from "../../shared/chain/chain_reader.ts";
import { sha256Hex } from "../../shared/tool/digest.ts";
import { denoDisk } from "../../shared/disk/deno_disk.ts";
import { ulid } from "../../shared/ids/ids.ts";
import { encodeUtf8 } from "../../shared/wire/codec.ts";
import { call } from "../../shared/wire/dial.ts";
import { MEMORY_CALL, MEMORY_STATUS, OWNER_RECALL } from "../../shared/wire/memory.ts";
import { parseNotes } from "../../roles/memoryd/notes.ts";
import { chatId } from "../doubles/session_logs.ts";

const SERVE = decodeURIComponent(new URL("../../launch/serve", import.meta.url).pathname);

/** The exact command that the launcher would become; asked once, as it stays the same. */
function commandFor(home: string): string[] {
  const env = { PATH: "/usr/bin:/bin", BOXMAKER_HOME: home, BOXMAKER_DENO: Deno.execPath() };
  const asked = new Deno.Command("/bin/sh", {
    args: [SERVE, "memoryd", "--print"],
    clearEnv: true,
    env,
    stderr: "inherit",
  }).outputSync();
  ok(asked.success);
  return new TextDecoder().decode(asked.stdout).trimEnd().split("\n");
}

function makeHome(): string {
  const home = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "bxm" }));
  for (const name of ["config", "locks", "memory", "index", "sessions", "cache", "run"]) {
    Deno.mkdirSync(`${home}/${name}`, { mode: 0o700 });
  }
  for (const pair of ["loop-memory", "broker-memory", "owner-memory"]) {
    Deno.mkdirSync(`${home}/run/${pair}`, { mode: 0o700 });
  }
  return home;
}

function spawn([program = "", ...args]: readonly string[]): Deno.ChildProcess {
  return new Deno.Command(program, { args, stdout: "null", stderr: "null" }).spawn();
}

async function start(home: string, command: readonly string[]): Promise<Deno.ChildProcess> {
  const child = spawn(command);
  for (let tries = 0; tries < 2_400; tries++) {
    const status = await call(`${home}/run/owner-memory/admin.sock`, MEMORY_STATUS, {});
    if (status.ok) return child;
    await wait(25);
  }
  throw new Error("memoryd did not start");
}

/** What became of a call; `gone` when nobody answered. */
async function tell(home: string, args: unknown): Promise<"done" | "refused" | "gone"> {
  const body = MEMORY_CALL.request.shape.body.parse({
    session: chatId(1),
    call: `c-${ulid(Date.now(), systemRandom)}`,
    tool: "memory",
    label: { class: "private", untrusted: false },
    staged: false,
  });
  const upload = encodeUtf8(JSON.stringify(args));
  const reply = await call(`${home}/run/broker-memory/memory.sock`, MEMORY_CALL, body, { upload });
  return reply.ok ? reply.value.body.outcome : "gone";
}

/** `entries` are states of memory.md that were acknowledged, or that the owner saved. */
type Told = { notes: string[]; entries: Set<string>; ownerSaves: number };

/** Writes until the process dies under it. */
async function writeUntilDead(home: string, told: Told, round: number): Promise<void> {
  let old = fileOf(home);
  for (let i = 0;; i++) {
    const note = `note ${round} ${i}`;
    const noted = await tell(home, { action: "note", text: note });
    if (noted === "gone") return;
    if (noted === "done") told.notes.push(note);
    const next = `state ${round} ${i}`;
    const edit = old === ""
      ? { action: "add", file: "memory", text: next }
      : { action: "replace", file: "memory", old, text: next };
    const edited = await tell(home, edit);
    if (edited === "gone") return;
    if (edited === "done") told.entries.add(next);
    old = edited === "done" ? next : fileOf(home);
  }
}

/** Text of memory.md; while an edit takes its place it has no name for a moment. */
function fileOf(home: string): string {
  for (let tries = 0; tries < 1_000; tries++) {
    try {
      return Deno.readTextFileSync(`${home}/memory/memory.md`);
    } catch (thrown) {
      if (!(thrown instanceof Deno.errors.NotFound)) throw thrown;
    }
  }
  return "";
}

/** The owner saves memory.md in an editor, which replaces it or writes into it. */
function saveAsOwner(home: string, told: Told, round: number): void {
  const text = `owner ${round}`;
  const path = `${home}/memory/memory.md`;
  if (round % 2 === 0) {
    Deno.writeTextFileSync(`${home}/memory/.memory.md.swp`, text);
    Deno.renameSync(`${home}/memory/.memory.md.swp`, path);
  } else {
    fileOf(home);
    Deno.writeTextFileSync(path, text);
  }
  told.entries.add(text);
  told.ownerSaves++;
}

type Read = { file: string; position: Parameters<typeof readChain>[3] };

/** Reads the journal on from where it was read to; the state in its last line and its line count. */
function readOn(home: string, read: Read, told: Told, what: string) {
  const files = [...Deno.readDirSync(`${home}/memory/edits`)].map((entry) => entry.name)
    .filter((name) => name.endsWith(".jsonl")).sort();
  let state: unknown = null;
  let lines = 0;
  for (const file of files.filter((name) => name >= read.file)) {
    const position = file === read.file ? read.position : undefined;
    for (const record of readChain(denoDisk, `${home}/memory/edits/${file}`, "memory", position)) {
      ok(record.ok, record.ok ? "" : `${what}: ${record.detail}`);
      const { n, hash, end, value } = record.value;
      read.file = file;
      read.position = { offset: end, next: { n: n + 1, prev: hash } };
      lines++;
      if (typeof value !== "object" || value === null) continue;
      told.entries.delete(String(Reflect.get(value, "before")));
      told.entries.delete(String(Reflect.get(value, "after")));
      state = Reflect.get(value, "state") ?? state;
    }
  }
  return { state, lines };
}

/** After a start: no acknowledged note or state is lost, and the journal says what the file holds. */
function check(home: string, told: Told, read: Read, what: string): void {
  const bytes = Deno.readFileSync(`${home}/memory/notes.md`);
  const notes = new Set(parseNotes(bytes).notes.map((placed) => placed.note.text));
  for (const note of told.notes) ok(notes.has(note), `${what}: lost ${note}`);
  const { state } = readOn(home, read, told, what);
  deepStrictEqual([...told.entries], [], `${what}: states that the journal does not know`);
  if (state === null) return;
  const file = Deno.readFileSync(`${home}/memory/memory.md`);
  ok(typeof state === "object" && Reflect.get(state, "memory") === sha256Hex(file), what);
  ok(typeof state === "object" && Reflect.get(state, "notes") === bytes.length, what);
}

const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

async function stopped(child: Deno.ChildProcess, signal: "SIGKILL" | "SIGTERM"): Promise<void> {
  child.kill(signal);
  await child.status;
}

/** One life of memoryd: a check, writes, an owner's save in the middle, a kill. */
async function life(home: string, command: readonly string[], told: Told, round: Round) {
  const { number, dice, read, what } = round;
  if (dice() < 32) {
    // Killed while it starts.
    const child = spawn(command);
    await wait(dice() * 2);
    return await stopped(child, "SIGKILL");
  }
  const child = await start(home, command);
  check(home, told, read, what);
  const writing = writeUntilDead(home, told, number);
  await wait(10 + dice());
  saveAsOwner(home, told, number);
  await wait(dice());
  await stopped(child, "SIGKILL");
  await writing;
}

type Round = {
  readonly number: number;
  readonly dice: () => number;
  readonly read: Read;
  readonly what: string;
};

/** Kills memoryd `kills` times at moments that `seed` gives; what was acknowledged and saved. */
export async function campaign(
  kills: number,
  seed: number,
): Promise<{ notes: number; ownerSaves: number }> {
  const random = seededRandom(seed);
  const dice = () => random.bytes(1)[0] ?? 0;
  const home = makeHome();
  const command = commandFor(home);
  const told: Told = { notes: [], entries: new Set(), ownerSaves: 0 };
  const read: Read = { file: "", position: undefined };
  try {
    await stopped(await start(home, command), "SIGTERM");
    for (let number = 0; number < kills; number++) {
      await life(home, command, told, { number, dice, read, what: `seed ${seed} round ${number}` });
    }
    const last = await start(home, command);
    check(home, told, read, `seed ${seed} at the end`);
    const query = told.notes.at(-1) ?? "note";
    const found = await call(`${home}/run/owner-memory/admin.sock`, OWNER_RECALL, { query, k: 1 });
    strictEqual(found.ok && found.value.body.hits[0]?.snippet, told.notes.at(-1), `seed ${seed}`);
    await stopped(last, "SIGTERM");
    await stopped(await start(home, command), "SIGTERM");
    const { lines } = readOn(home, read, told, `seed ${seed} at the end`);
    strictEqual(lines, 0, `seed ${seed}: a start found something unjournalled`);
    return { notes: told.notes.length, ownerSaves: told.ownerSaves };
  } finally {
    Deno.removeSync(home, { recursive: true });
  }
}
