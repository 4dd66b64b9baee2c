// `deno task try`: a whole house under a scratch home, to talk to. On a terminal it opens a chat;
// without one it plays a short scripted conversation and prints what that has proved.
// Options: --model uses the real small model; --mattermost talks over a Mattermost server, the double
// or the one that BOXMAKER_MATTERMOST_URL names; --keep leaves everything running at the end.
import { parseArgs } from "node:util";
import { escapeForDisplay, escapeProse } from "../shared/text/escape.ts";
import { runMain, stopSignal } from "./command.ts";
import { bxctlCommand, type House, startHouse } from "./house.ts";
import { makeScratch, type Scratch } from "./scratch.ts";
import {
  foundModel,
  givenModel,
  rehearsalModel,
  type ServedModel,
  smallModel,
} from "./served_model.ts";
import {
  givenMattermost,
  rehearsalMattermost,
  type ServedMattermost,
} from "./served_mattermost.ts";
import { roleFlags } from "./role_flags.ts";
import { DAEMONS } from "./supervisor.ts";
import { workerFiles } from "./worker_files.ts";
import { playScript, REHEARSAL_PHRASES, SMALL_MODEL_PHRASES } from "./try_script.ts";

const SOURCE = decodeURIComponent(new URL("..", import.meta.url).pathname).replace(/\/$/, "");

// What a model said must not reach a terminal as a command.
const say = (line: string) => console.error(escapeProse(line));

async function chooseModel(wantsSmall: boolean): Promise<ServedModel> {
  if (wantsSmall) return smallModel(SOURCE);
  const given = Deno.env.get("BOXMAKER_LLAMA_URL");
  if (given !== undefined && given !== "") return givenModel(given);
  return await foundModel() ?? rehearsalModel(SOURCE);
}

function chooseMattermost(isWanted: boolean, base: string): Promise<ServedMattermost> | null {
  if (!isWanted) return null;
  const given = Deno.env.get("BOXMAKER_MATTERMOST_URL") ?? "";
  return given === ""
    ? rehearsalMattermost(SOURCE, base)
    : Promise.resolve(givenMattermost(given, (name) => Deno.env.get(name)));
}

/** A text as TOML writes it. */
const toml = (text: string) => JSON.stringify(text);

function configs(scratch: Scratch, model: ServedModel, mattermost: ServedMattermost | null) {
  const sampling = model.examples === null
    ? ""
    : `examples = ${toml(model.examples)}\n[inference.sampling]\ntemperature = 0\n`;
  return {
    ...(mattermost === null ? {} : { gatewayd: mattermost.config }),
    inferproxy: `[upstream]\naddress = ${toml(model.address)}\n`,
    loopd: `[inference]\nupstream = ${toml(model.address)}\nself_test = "first-turn"\n${sampling}`,
    brokerd: `[paths]\nroots = [${toml(scratch.papers)}]\n[runtime]\nstore = ${
      toml(scratch.store)
    }\n`,
  };
}

function grants(papers: string) {
  const common = `paths = [${toml(papers)}]\nmax_taint = "private"\nresult_class = "private"\n`;
  const trusted = "untrusted = false\n";
  return {
    "list.toml": `tool = "list_dir"\nmode = "auto"\n${common}${trusted}`,
    "search.toml": `tool = "search_files"\nmode = "auto"\n${common}${trusted}`,
    "read.toml": `tool = "read_file"\nmode = "ask"\n${common}${trusted}`,
    "write.toml": `tool = "write_file"\nmode = "ask"\nwrite = true\n${common}${trusted}`,
  };
}

async function prepareImage(store: string): Promise<void> {
  for (const words of [["build"], ["load", "--store", store]]) {
    const status = await new Deno.Command(Deno.execPath(), {
      args: [
        "run",
        "-A",
        `--config=${SOURCE}/deno.json`,
        `${SOURCE}/deploy/image/main.ts`,
        ...words,
      ],
      stdout: "null",
      stderr: "inherit",
    }).spawn().status;
    if (!status.success) throw new Error(`The tool image could not be prepared (${words[0]})`);
  }
}

async function script(house: House, scratch: Scratch, model: ServedModel): Promise<number> {
  say(`No terminal is attached, so ${model.name} plays a short conversation:\n`);
  const forbidden = "/etc/hostname";
  const isSmall = model.examples !== null;
  const proofs = await playScript({
    house,
    paper: `${scratch.papers}/${isSmall ? "key" : "plan"}.txt`,
    forbidden,
    phrases: isSmall ? SMALL_MODEL_PHRASES : REHEARSAL_PHRASES,
    say,
  });
  console.log("\nWhat this has shown");
  for (const one of proofs) {
    console.log(
      `  ${one.isShown ? "yes" : "NO "}  ${one.claim}: ${escapeForDisplay(one.evidence, "line")}`,
    );
  }
  console.log("\nWhat each role may do");
  for (const role of DAEMONS) {
    const place = { home: house.home, source: SOURCE, workerFiles: workerFiles(role, SOURCE) };
    const flags = roleFlags(role, place);
    if (!flags.ok) throw new Error(flags.detail);
    console.log(`  ${role}`);
    for (const flag of flags.value) {
      console.log(`    ${flag.replaceAll(house.home, "{home}").replaceAll(SOURCE, "{source}")}`);
    }
  }
  return proofs.every((one) => one.isShown) ? 0 : 1;
}

async function talk(home: string): Promise<number> {
  const { file, options } = bxctlCommand(home, SOURCE, ["chat"]);
  // Control-C is for the chat; this process stays to end the house.
  Deno.addSignalListener("SIGINT", () => {});
  return (await new Deno.Command(file, options).spawn().status).code;
}

/** The conversation over Mattermost: through the double's client, or wherever the owner's bot is. */
async function overMattermost(
  mattermost: ServedMattermost,
  paper: string,
  isTerminal: boolean,
): Promise<number> {
  if (mattermost.phone !== null) {
    if (isTerminal) Deno.addSignalListener("SIGINT", () => {});
    return await mattermost.phone(paper, isTerminal ? "talk" : "play");
  }
  say(`Write to the bot on ${mattermost.name}; Control-C ends everything`);
  await stopSignal();
  return 0;
}

function nextSteps(scratch: Scratch, isKept: boolean): void {
  const running = isKept
    ? `Everything still runs at ${scratch.home}; end it with: kill ${Deno.pid}`
    : `Everything is stopped; logs and records stay at ${scratch.home} until the next try`;
  console.log(`\n${running}`);
  console.log("Next: README.md for a home of your own, grants/ for what to allow,");
  console.log("      sh deploy/bootstrap.sh model and then try --model for a real small model");
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    args: Deno.args,
    options: {
      model: { type: "boolean" },
      mattermost: { type: "boolean" },
      keep: { type: "boolean" },
    },
  });
  const owner = Deno.env.get("HOME");
  if (owner === undefined) {
    throw new Error("HOME is not set, so there is no place for a scratch home");
  }
  const scratch = makeScratch(owner);
  const model = await chooseModel(values.model === true);
  await prepareImage(scratch.store);
  const mattermost = await chooseMattermost(values.mattermost === true, scratch.base);
  const over = mattermost === null ? "" : ` and ${mattermost.name}`;
  say(`try: starting every role at ${scratch.home} with ${model.name}${over}`);
  const isTerminal = Deno.stdin.isTerminal() && Deno.stdout.isTerminal();
  // Control-C in a chat is the chat's; whatever else ends this process ends the house first.
  const told = stopSignal(isTerminal ? ["SIGTERM", "SIGHUP"] : undefined);
  const house = await startHouse({
    home: scratch.home,
    source: SOURCE,
    configs: configs(scratch, model, mattermost),
    grants: grants(scratch.papers),
    model: model.program,
    say: (line) => say(`try: ${line}`),
    stopped: told,
  });
  try {
    const played = mattermost !== null
      ? overMattermost(mattermost, `${scratch.papers}/plan.txt`, isTerminal)
      : isTerminal
      ? talk(house.home)
      : script(house, scratch, model);
    const status = await Promise.race([played, told.then(() => 143)]);
    nextSteps(scratch, values.keep === true);
    if (values.keep === true) await Promise.race([told, stopSignal()]);
    return status;
  } finally {
    await house.stop();
    await mattermost?.stop();
  }
}

if (import.meta.main) await runMain("try", main);
