// The Mattermost double as a program, on 127.0.0.1 only. With a folder its state outlives it: killed
// at any moment and started again on the same port, it is the same server after a restart. Tests
// reach its operations through `controlOf(url)`.
import { parseArgs } from "node:util";
import { type MattermostDouble, startMattermostDouble } from "./double.ts";
import { untilTold } from "../until_told.ts";
import { furnish } from "./rig.ts";

const USAGE = `Usage: deno run -A tests/doubles/mattermost/main.ts [options]
  --port N              0 or left out: a free port
  --port-file FILE      written with the port once it listens
  --folder FOLDER       keeps state and record there
  --token TEXT          the bot's token (boxmaker-token)
  --owner-token TEXT    the owner's token (owner-token)
  --time-scale X        multiplies the server's own durations (1)
  --bare                no owner, no bot
  --until-stdin-ends    stop when standard input ends`;

const TEXT = { type: "string" } as const;
const FLAG = { type: "boolean", default: false } as const;

function prepare(double: MattermostDouble, token?: string, ownerToken?: string): void {
  const { owner, bot, dm } = furnish(double);
  if (token !== undefined) double.addToken(bot.id, token);
  if (ownerToken !== undefined) double.addToken(owner.id, ownerToken);
  console.log(`owner ${owner.id}\nbot ${bot.id}\nchannel ${dm}`);
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    args: Deno.args,
    options: {
      "port": TEXT,
      "port-file": TEXT,
      "folder": TEXT,
      "token": TEXT,
      "owner-token": TEXT,
      "time-scale": TEXT,
      "bare": FLAG,
      "until-stdin-ends": FLAG,
      "help": FLAG,
    },
  });
  if (values.help) return console.log(USAGE);
  const { folder } = values;
  const double = await startMattermostDouble({
    port: Number(values.port ?? 0),
    timeScale: Number(values["time-scale"] ?? 1),
    ...(folder === undefined ? {} : { folder }),
  });
  if (!values.bare) prepare(double, values.token, values["owner-token"]);
  console.log(`listening on ${double.url}`);
  const file = values["port-file"];
  if (file !== undefined) await Deno.writeTextFile(file, `${double.port}\n`);
  await untilTold(values["until-stdin-ends"] ? "input" : "signal");
  await double.stop();
}

if (import.meta.main) {
  await main();
  Deno.exit(0);
}
