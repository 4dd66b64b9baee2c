// The llama-server double as a program, and with --rehearsal the stand-in model that `try` uses.
// Listens on 127.0.0.1 only; needs no permission beyond that address (and the port file's path).
// Prints one line when it listens and ends with the process that holds its standard input, if asked.
import { parseArgs } from "node:util";
import type { Profile } from "./chat_request.ts";
import { type LlamaOptions, startLlamaDouble } from "./double.ts";
import { rehearsal, REHEARSAL_NAME } from "./rehearsal.ts";
import { untilTold } from "../until_told.ts";
import type { TemplateName } from "./templates.ts";

const USAGE = `Usage: deno run --allow-net=127.0.0.1 main.ts [options]
  --port N              0 or left out: a free port
  --port-file FILE      written with the port once it listens (needs --allow-write=FILE)
  --rehearsal           answer by the rehearsal's rules
  --profile NAME        b10470 (default) or newer
  --template NAME       qwen3.5, qwen3.6 (default with --rehearsal) or qwen2.5
  --model NAME          the name the server gives itself
  --slots N --ctx N     slots (2) and context per slot (32768)
  --token-ms N          milliseconds per generated token
  --until-stdin-ends    stop when standard input ends`;

const TEXT = { type: "string" } as const;
const FLAG = { type: "boolean", default: false } as const;

function oneOf<T extends string>(text: string | undefined, names: readonly T[], preset: T): T {
  if (text === undefined) return preset;
  const found = names.find((name) => name === text);
  if (found === undefined) throw new TypeError(`Unknown choice: ${text}`);
  return found;
}

function wholeNumber(text: string | undefined, preset: number): number {
  if (text === undefined) return preset;
  if (!/^\d{1,9}$/.test(text)) throw new TypeError(`Not a number: ${text}`);
  return Number(text);
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    args: Deno.args,
    options: {
      "port": TEXT,
      "port-file": TEXT,
      "rehearsal": FLAG,
      "profile": TEXT,
      "template": TEXT,
      "model": TEXT,
      "slots": TEXT,
      "ctx": TEXT,
      "token-ms": TEXT,
      "until-stdin-ends": FLAG,
      "help": FLAG,
    },
  });
  if (values.help) {
    console.log(USAGE);
    return;
  }
  const isRehearsal = values.rehearsal;
  const templates: readonly TemplateName[] = ["qwen3.5", "qwen3.6", "qwen2.5"];
  const profiles: readonly Profile[] = ["b10470", "newer"];
  const options: LlamaOptions = {
    port: wholeNumber(values.port, 0),
    profile: oneOf(values.profile, profiles, "b10470"),
    template: oneOf(values.template, templates, isRehearsal ? "qwen3.6" : "qwen3.5"),
    keepThinking: isRehearsal ? "keep" : "drop",
    model: values.model ?? (isRehearsal ? REHEARSAL_NAME : "double"),
    slots: wholeNumber(values.slots, 2),
    nCtx: wholeNumber(values.ctx, 32_768),
    knobs: { tokenMs: wholeNumber(values["token-ms"], 0) },
    ...(isRehearsal ? { script: rehearsal } : {}),
  };
  const double = await startLlamaDouble(options);
  const file = values["port-file"];
  if (file !== undefined) await Deno.writeTextFile(file, `${double.port}\n`);
  console.log(`listening on http://127.0.0.1:${double.port}`);
  await untilTold(values["until-stdin-ends"] ? "input" : "signal");
  await double.stop();
}

if (import.meta.main) {
  await main();
  Deno.exit(0);
}
