// A whole brokerd in memory: a disk that can crash, a clock that stands still, a runtime and a memoryd
// that do what a test says. Only the sockets are missing.
import { BrokerdConfig } from "../../shared/config/brokerd.ts";
import {
  type CallId,
  CallId as CallIdSchema,
  SessionId,
  TurnId,
  ulid,
} from "../../shared/ids/ids.ts";
import { seededRandom } from "../../shared/clock/random.ts";
import type { Label } from "../../shared/labels/label.ts";
import { err, ok, type Result } from "../../shared/results/result.ts";
import { secretOf } from "../../shared/secrets/secret_store.ts";
import { catalogBytes } from "../../shared/tool/catalog.ts";
import { sha256Hex } from "../../shared/tool/digest.ts";
import type { Manifest } from "../../shared/tool/manifest.ts";
import { encodeCanonical, encodeUtf8 } from "../../shared/wire/codec.ts";
import { type House, type HousePorts, openHouse } from "../../roles/brokerd/house.ts";
import type { Approval } from "../../roles/brokerd/approvals.ts";
import type { RunIo, RunOutcome, RunPlan, Runtime } from "../../roles/brokerd/runtime/plan.ts";
import { manifest as editFile } from "../../toolkit/edit_file/manifest.ts";
import { manifest as httpFetch } from "../../toolkit/http_fetch/manifest.ts";
import { manifest as listDir } from "../../toolkit/list_dir/manifest.ts";
import { manifest as readFile } from "../../toolkit/read_file/manifest.ts";
import { manifest as searchFiles } from "../../toolkit/search_files/manifest.ts";
import { manifest as writeFile } from "../../toolkit/write_file/manifest.ts";
export { manifest as RUN_COMMAND } from "../../toolkit/run_command/manifest.ts";
import { type FaultyDisk, faultyDisk } from "./faulty_disk.ts";
import { type ManualClock, manualClock } from "./manual_clock.ts";

export const HOME = "/home/bx";
export const ROOT = "/srv/docs";
export const IMAGE = "a".repeat(64);
const KIT: readonly Manifest[] = [
  editFile,
  httpFetch,
  listDir,
  readFile,
  searchFiles,
  writeFile,
];

/** What a run of the fake runtime does; the default prints its arguments and is done. */
export type RunScript = (plan: RunPlan, io: RunIo) => Promise<Result<RunOutcome>>;

export type FakeRuntime = {
  readonly runtime: Runtime;
  readonly runs: RunPlan[];
  script: RunScript;
};

export const outcomeOf = (plan: RunPlan, more: Partial<RunOutcome> = {}): RunOutcome => ({
  status: "ok",
  code: null,
  message: "",
  containerName: `bx-${plan.callId}`,
  log: "",
  ...more,
});

export function fakeRuntime(): FakeRuntime {
  const fake: FakeRuntime = {
    runs: [],
    script: (plan, io) => {
      io.onOutput(encodeUtf8(`ran ${plan.argsJson}`));
      return Promise.resolve(ok(outcomeOf(plan)));
    },
    runtime: {
      status: () => ({
        state: "ready",
        facts: { podman: "4.3.1", runtime: "runc", limits: "process" },
      }),
      run(plan, io) {
        fake.runs.push(plan);
        return fake.script(plan, io);
      },
      killAll: () => Promise.resolve(),
    },
  };
  return fake;
}

/** A script whose runs end when the test says so, or as killed when they are aborted. */
export function heldScript(): { script: RunScript; release: () => void } {
  const gate = Promise.withResolvers<void>();
  return {
    release: () => gate.resolve(),
    script: async (plan, io) => {
      const killed = new Promise<"killed">((resolve) =>
        io.signal.addEventListener("abort", () => resolve("killed"))
      );
      if (io.signal.aborted) return ok(outcomeOf(plan, { status: "killed" }));
      const how = await Promise.race([gate.promise.then(() => "ok" as const), killed]);
      if (how === "ok") io.onOutput(encodeUtf8("held"));
      return ok(outcomeOf(plan, { status: how }));
    },
  };
}

export type HouseOptions = {
  readonly config?: unknown;
  /** Grant files by name. */
  readonly grants?: Readonly<Record<string, string>>;
  /** The owner's files below ROOT, by relative path. */
  readonly files?: Readonly<Record<string, string>>;
};

export type TestHouse = {
  readonly disk: FaultyDisk;
  readonly clock: ManualClock;
  readonly fake: FakeRuntime;
  readonly posted: Approval[];
  readonly notices: string[];
  readonly logged: string[];
  readonly ports: HousePorts;
  memoryReply: (tool: string, args: string, label: Label) => Result<{ text: string; label: Label }>;
  open(): House;
  grant(name: string, toml: string | null): void;
};

/** A grant that lets `tool` read below ROOT, in TOML; `more` adds or repeats nothing. */
export function grantToml(tool: string, mode: string, more = ""): string {
  return `tool = "${tool}"\nmode = "${mode}"\npaths = ["${ROOT}"]\n` +
    `max_taint = "private"\nresult_class = "private"\nuntrusted = false\n${more}`;
}

export function makeDisk(options: HouseOptions): FaultyDisk {
  const below = ["audit", "broker", "grants", "jobs", "locks"].map((name) => `${HOME}/${name}`);
  const disk = faultyDisk(["/home", HOME, ...below, "/srv", ROOT, "/srv/image", "/srv/other"]);
  const catalog = catalogBytes(KIT);
  const names = {
    v: 1,
    digest: IMAGE,
    id: "b".repeat(64),
    catalog: sha256Hex(catalog),
    files: "c".repeat(64),
    built_from: { deno: "2.9.6", libraries: {} },
  };
  disk.plant("/srv/image/image.json", encodeCanonical(names));
  disk.plant("/srv/image/catalog.json", catalog);
  for (const [name, toml] of Object.entries(options.grants ?? {})) {
    disk.plant(`${HOME}/grants/${name}`, encodeUtf8(toml));
  }
  for (const [name, text] of Object.entries(options.files ?? { "a.txt": "hello" })) {
    disk.plant(`${ROOT}/${name}`, encodeUtf8(text));
  }
  return disk;
}

export class DiskDied extends Error {}

/** Parts of a house over a disk; `open` begins a life of brokerd. */
export function testHouse(options: HouseOptions = {}, on = makeDisk(options)): TestHouse {
  const clock = manualClock(Date.UTC(2026, 10, 30, 8));
  const fake = fakeRuntime();
  const posted: Approval[] = [];
  const notices: string[] = [];
  const logged: string[] = [];
  const log = (line: string) => void logged.push(line);
  const ports: HousePorts = {
    home: HOME,
    config: BrokerdConfig.parse({
      paths: { roots: [ROOT] },
      secrets: { key: { file: "/etc/key" } },
      ...(typeof options.config === "object" ? options.config : {}),
    }),
    disk: on,
    clock,
    random: seededRandom(7),
    log: { info: log, warn: log, error: log, failure: (what, one) => log(`${what} ${one.code}`) },
    fatal: (detail) => {
      throw new DiskDied(detail);
    },
    runtime: fake.runtime,
    memory: (request, args, io) => {
      const text = new TextDecoder().decode(args);
      const said = house.memoryReply(request.tool, text, request.label);
      if (!said.ok) return Promise.resolve(said);
      io.onOutput(encodeUtf8(said.value.text));
      return Promise.resolve(ok({ outcome: "done", code: null, label: said.value.label }));
    },
    egress: () => Promise.resolve(err("egress-unavailable", "No way out")),
    egressStatus: () => Promise.resolve(ok("idle")),
    secret: () => ok(secretOf("canary")),
    gateway: {
      post: (approval) => {
        posted.push(approval);
        return Promise.resolve(ok(null));
      },
      closed: () => Promise.resolve(ok(null)),
      notice: (_id, text) => {
        notices.push(text);
        return Promise.resolve(ok(null));
      },
    },
    startedUnixMs: clock.nowUnixMs(),
    imageFolder: "/srv/image",
    forbidden: [HOME, "/srv/image"],
  };
  const house: TestHouse = {
    disk: on,
    clock,
    fake,
    posted,
    notices,
    logged,
    ports,
    memoryReply: () => ok({ text: "remembered", label: { class: "private", untrusted: false } }),
    open() {
      const opened = openHouse(ports);
      if (!opened.ok) throw new Error(`${opened.code}: ${opened.detail}`);
      return opened.value;
    },
    grant(name, toml) {
      const path = `${HOME}/grants/${name}`;
      if (toml === null) on.unlink(path);
      else on.plant(path, encodeUtf8(toml));
    },
  };
  return house;
}

/** A house for as long as `body` runs. */
export async function withHouse(
  options: HouseOptions,
  body: (house: House, test: TestHouse) => Promise<void> | void,
): Promise<void> {
  const test = testHouse(options);
  const house = test.open();
  try {
    await body(house, test);
  } finally {
    await house.close();
  }
}

const idRandom = seededRandom(99);
const fresh = () => ulid(Date.UTC(2026, 10, 30), idRandom);
export const newSession = (): SessionId => SessionId.parse(`chat-${fresh()}`);
export const newTurn = (): TurnId => TurnId.parse(`t-${fresh()}`);
export const newCall = (): CallId => CallIdSchema.parse(`c-${fresh()}`);

/** Opens a fresh chat session in a house. */
export function openChat(house: House): SessionId {
  const session = newSession();
  const opened = house.sessions.open({ session, kind: "chat", job: null, workspace: null });
  if (!opened.ok) throw new Error(opened.detail);
  return session;
}
