// Kills memoryd, under its real flags, at random moments of writing, and looks after each start whether
// an acknowledged write is lost; at the end whether files and journal agree and recall finds the last
// note. Throws when not.
import { ok, strictEqual } from "node:assert";
import { seededRandom, systemRandom } from "../../shared/clock/random.ts";
import { readChain } from "../../shared/chain/chain_reader.ts";
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

async function start(home: string, command: readonly string[]): Promise<Deno.ChildProcess> {
  const [program = "", ...args] = command;
  const child = new Deno.Command(program, { args, stdout: "null", stderr: "null" }).spawn();
  for (let tries = 0; tries < 600; tries++) {
    const status = await call(`${home}/run/owner-memory/admin.sock`, MEMORY_STATUS, {});
    if (status.ok) return child;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error("memoryd did not start");
}

async function tell(home: string, args: unknown): Promise<boolean> {
  const body = MEMORY_CALL.request.shape.body.parse({
    session: chatId(1),
    call: `c-${ulid(Date.now(), systemRandom)}`,
    tool: "memory",
    label: { class: "private", untrusted: false },
    staged: false,
  });
  const upload = encodeUtf8(JSON.stringify(args));
  const reply = await call(`${home}/run/broker-memory/memory.sock`, MEMORY_CALL, body, { upload });
  return reply.ok && reply.value.body.outcome === "done";
}

type Told = { notes: string[]; entry: string; next: string };

/** Writes until the process dies under it. */
async function writeUntilDead(home: string, told: Told, round: number): Promise<void> {
  for (let i = 0;; i++) {
    const note = `note ${round} ${i}`;
    if (!await tell(home, { action: "note", text: note })) return;
    told.notes.push(note);
    told.next = `state ${round} ${i}`;
    const edit = { action: "replace", file: "memory", old: told.entry, text: told.next };
    if (!await tell(home, edit)) return;
    told.entry = told.next;
  }
}

function checkFiles(home: string, told: Told, what: string): void {
  const bytes = Deno.readFileSync(`${home}/memory/notes.md`);
  const notes = new Set(parseNotes(bytes).notes.map((placed) => placed.note.text));
  for (const note of told.notes) ok(notes.has(note), `${what}: lost ${note}`);
  const entry = Deno.readTextFileSync(`${home}/memory/memory.md`);
  ok(entry === told.entry || entry === told.next, `${what}: memory.md is ${entry}`);
  told.entry = entry;
}

function journalLines(home: string): number {
  let lines = 0;
  for (const entry of Deno.readDirSync(`${home}/memory/edits`)) {
    if (!entry.name.endsWith(".jsonl")) continue;
    for (const record of readChain(denoDisk, `${home}/memory/edits/${entry.name}`, "memory")) {
      ok(record.ok, record.ok ? "" : record.detail);
      lines++;
    }
  }
  return lines;
}

async function stopped(child: Deno.ChildProcess, signal: "SIGKILL" | "SIGTERM"): Promise<void> {
  child.kill(signal);
  await child.status;
}

/** Kills memoryd `kills` times at moments that `seed` gives; how many notes were acknowledged. */
export async function campaign(kills: number, seed: number): Promise<number> {
  const random = seededRandom(seed);
  const home = makeHome();
  const command = commandFor(home);
  const told: Told = { notes: [], entry: "first", next: "first" };
  try {
    for (let round = 0; round < kills; round++) {
      const child = await start(home, command);
      if (round === 0) ok(await tell(home, { action: "add", file: "memory", text: "first" }));
      else checkFiles(home, told, `seed ${seed} round ${round}`);
      const writing = writeUntilDead(home, told, round);
      await new Promise((resolve) => setTimeout(resolve, 20 + (random.bytes(1)[0] ?? 0) * 2));
      await stopped(child, "SIGKILL");
      await writing;
    }
    const last = await start(home, command);
    checkFiles(home, told, `seed ${seed} at the end`);
    const found = await call(`${home}/run/owner-memory/admin.sock`, OWNER_RECALL, {
      query: told.notes.at(-1) ?? "note",
      k: 1,
    });
    strictEqual(found.ok && found.value.body.hits[0]?.snippet, told.notes.at(-1), `seed ${seed}`);
    await stopped(last, "SIGTERM");
    const lines = journalLines(home);
    await stopped(await start(home, command), "SIGTERM");
    strictEqual(journalLines(home), lines, `seed ${seed}: a start found something unjournalled`);
    return told.notes.length;
  } finally {
    Deno.removeSync(home, { recursive: true });
  }
}
