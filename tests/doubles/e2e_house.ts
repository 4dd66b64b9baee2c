// A whole house for an end-to-end test: the seven real programs under their real flags, the product's
// tool image in real containers, and a model server. Everything lies in a fresh folder and is gone
// afterwards; the image store is shared by all tests.
import { loadImage } from "../../deploy/image/load.ts";
import { type House, type Ran, startHouse } from "../../launch/house.ts";
import { rehearsalModel, type ServedModel } from "../../launch/served_model.ts";
import type { Role } from "../../shared/wire/sockets.ts";
import { NO_CONTAINERS, PODMAN, testFolders } from "./container_house.ts";

export { NO_CONTAINERS };

const SOURCE = decodeURIComponent(new URL("../..", import.meta.url).pathname).replace(/\/$/, "");
const IMAGE = `${SOURCE}/build/image`;

export interface E2eOptions {
  readonly model?: ServedModel;
  /** Folders that grants may name; the house's own papers when left out. */
  readonly roots?: readonly string[];
  /** Added to the TOML that the house writes for the role. */
  readonly extra?: Partial<Record<Role, string>>;
  readonly grants?: (papers: string) => Readonly<Record<string, string>>;
}

export interface ChatReply {
  readonly status: number;
  readonly session: string;
  readonly kind: string;
  readonly code: string | null;
  readonly text: string;
  readonly label: { readonly class: string; readonly untrusted: boolean };
}

export interface Question {
  readonly approval: string;
  readonly code: string;
  readonly text: string;
}

export interface E2eHouse extends AsyncDisposable {
  readonly house: House;
  readonly papers: string;
  /** What `up` said: which program ended and was started again. */
  readonly said: string[];
  bx(...args: string[]): Promise<Ran>;
  /** A bxctl command's JSON. */
  json(...args: string[]): Promise<Record<string, unknown>>;
  chat(text: string, session?: string): Promise<ChatReply>;
  /** A session's log records. */
  records(session: string): Promise<Record<string, unknown>[]>;
  /** Waits for a question to the owner. */
  question(): Promise<Question>;
  /** Kills the program with SIGKILL and waits until another process has taken its place. */
  kill(name: string): Promise<void>;
}

/** What a test's grants say unless it brings its own. */
export function usualGrants(papers: string): Record<string, string> {
  const common =
    `paths = ["${papers}"]\nmax_taint = "private"\nresult_class = "private"\nuntrusted = false\n`;
  return {
    "list.toml": `tool = "list_dir"\nmode = "auto"\n${common}`,
    "read.toml": `tool = "read_file"\nmode = "ask"\n${common}`,
    "write.toml": `tool = "write_file"\nmode = "ask"\nwrite = true\n${common}`,
  };
}

export async function e2eHouse(options: E2eOptions = {}): Promise<E2eHouse> {
  const base = await Deno.makeTempDir({ prefix: "bxe" });
  const home = `${base}/home`;
  const papers = `${base}/papers`;
  await Deno.mkdir(papers);
  await Deno.writeTextFile(`${papers}/plan.txt`, "Launch plan: fill the tanks, wait, go.\n");
  const model = options.model ?? rehearsalModel(SOURCE);
  await loadProductImage();
  const said: string[] = [];
  const house = await startHouse({
    home,
    source: SOURCE,
    configs: e2eConfigs(options.roots ?? [papers], model, options.extra ?? {}),
    grants: (options.grants ?? usualGrants)(papers),
    model: model.program,
    say: (line) => void said.push(line),
  });
  return rig(house, base, papers, said);
}

/** Loads the image that `deno task image` built; the gate builds it before the tests. */
export async function loadProductImage(): Promise<void> {
  const { digest } = JSON.parse(await Deno.readTextFile(`${IMAGE}/image.json`));
  await loadImage({ image: IMAGE, digest, podman: PODMAN, ...testFolders() });
}

/** What each role's configuration says in a test's house. */
export function e2eConfigs(
  roots: readonly string[],
  model: ServedModel,
  extra: Partial<Record<Role, string>>,
) {
  const examples = model.examples === null ? "" : `examples = "${model.examples}"\n`;
  const sampling = model.examples === null ? "" : "[inference.sampling]\ntemperature = 0\n";
  const folders = testFolders();
  return {
    ...extra,
    inferproxy: `[upstream]\naddress = "${model.address}"\n${extra.inferproxy ?? ""}`,
    loopd: `[inference]\nself_test = "first-turn"\n${examples}${extra.loopd ?? ""}\n${sampling}`,
    brokerd: `[paths]\nroots = ${JSON.stringify(roots)}\n[runtime]\nstore = "${folders.store}"\n` +
      `run = "${folders.run}"\n${extra.brokerd ?? ""}`,
  };
}

function rig(house: House, base: string, papers: string, said: string[]): E2eHouse {
  const json = async (...args: string[]) => {
    const ran = await house.bx([...args, "--json"]);
    return lastJson(ran);
  };
  return {
    house,
    papers,
    said,
    bx: (...args) => house.bx(args),
    json,
    async chat(text, session) {
      const where = session === undefined ? [] : ["--session", session];
      const ran = await house.bx(["chat", "-m", text, ...where, "--json"]);
      return readReply(ran);
    },
    async records(session) {
      const { records } = await json("sessions", "show", session);
      return Array.isArray(records) ? records : [];
    },
    question: () => nextQuestion(json),
    kill: (name) => killAndWait(house, name),
    async [Symbol.asyncDispose]() {
      await house.stop();
      await Deno.remove(base, { recursive: true });
    },
  };
}

function lastJson(ran: Ran): Record<string, unknown> {
  const line = ran.out.trim().split("\n").at(-1) ?? "";
  try {
    return Object(JSON.parse(line));
  } catch {
    throw new Error(`bxctl printed no JSON (status ${ran.status}): ${ran.out} ${ran.err}`);
  }
}

function readReply(ran: Ran): ChatReply {
  const value = lastJson(ran);
  const label = Object(value.label);
  const error = Object(value.error);
  return {
    status: ran.status,
    session: String(value.session),
    kind: String(value.kind ?? "error"),
    code: value.code === null ? null : String(value.code ?? error.code),
    text: String(value.text ?? error.detail),
    label: { class: String(label.class), untrusted: label.untrusted === true },
  };
}

async function nextQuestion(
  json: (...args: string[]) => Promise<Record<string, unknown>>,
): Promise<Question> {
  for (let i = 0; i < 600; i++) {
    const { approvals } = await json("approvals");
    const first = Array.isArray(approvals) ? approvals[0] : undefined;
    if (first !== undefined) {
      const shown = await json("approvals", "show", String(Object(first).approval));
      return {
        approval: String(shown.approval),
        code: String(shown.code),
        text: String(shown.text),
      };
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error("No question to the owner came");
}

async function killAndWait(house: House, name: string): Promise<void> {
  const before = house.supervisor.pids().get(name);
  if (before === undefined) throw new Error(`${name} does not run`);
  Deno.kill(before, "SIGKILL");
  for (let i = 0; i < 600; i++) {
    const now = house.supervisor.pids().get(name);
    if (now !== undefined && now !== before && await house.supervisor.ready(30_000)) return;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  throw new Error(`${name} was not started again`);
}

/** A test of a whole house, skipped by name where no container can be started. */
export function houseTest(name: string, run: () => Promise<void>): void {
  const reason = NO_CONTAINERS;
  Deno.test({
    name: reason === null ? name : `${name} (skipped: ${reason})`,
    ignore: reason !== null,
    fn: run,
  });
}
