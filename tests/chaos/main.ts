// `deno task chaos --role loopd|memoryd [--kills N] [--seed S]`, `deno task chaos --channel [...]`: long
// campaigns of kills and troubles. `--index [--step N]` changes every Nth byte of an index. Each prints its seed; the same seed chooses the same moments.
import { parseArgs } from "node:util";

const { values } = parseArgs({
  args: Deno.args,
  strict: false,
  options: {
    role: { type: "string" },
    channel: { type: "boolean" },
    index: { type: "boolean" },
    step: { type: "string", default: "1" },
    kills: { type: "string", default: "1000" },
    seed: { type: "string" },
  },
});
const kills = Number(values.kills);
const seed = Number(values.seed ?? crypto.getRandomValues(new Uint32Array(1))[0]);

if (values.channel === true) {
  const program = decodeURIComponent(new URL("./channel.ts", import.meta.url).pathname);
  const child = new Deno.Command(Deno.execPath(), { args: ["run", "-A", program, ...Deno.args] });
  Deno.exit((await child.spawn().status).code);
}
if (values.index === true) {
  const { damageCampaign } = await import("./index_damage.ts");
  for (const how of ["sealed", "unsealed"] as const) {
    const { bytes, noticed, passing, wrong } = await damageCampaign(Number(values.step), how);
    console.log(
      `index ${how}: ${bytes} bytes changed one by one, ${noticed} noticed by themselves, ` +
        `${passing.length} answered otherwise until rebuilt, ${wrong.length} afterwards`,
    );
  }
  Deno.exit(0);
}
console.log(`seed ${seed}`);
if (values.role === "memoryd") {
  const { campaign } = await import("./memoryd_campaign.ts");
  const { notes, ownerSaves } = await campaign(kills, seed);
  console.log(`${kills} kills, ${notes} notes and ${ownerSaves} owner's saves, 0 lost`);
} else if (values.role === "loopd") {
  const { campaign } = await import("./loopd_campaign.ts");
  const whole = await campaign(0, seed);
  let done = 0;
  // A conversation ends before many kills; another one follows, until there were enough.
  for (let round = 0; done < kills; round++) {
    const killed = await campaign(Math.min(40, kills - done), seed + round);
    done += killed.kills;
    const isSame = ["log", "runs", "items"].every((part) =>
      JSON.stringify(Reflect.get(whole, part)) === JSON.stringify(Reflect.get(killed, part))
    );
    console.log(`${done} kills, the log ${isSame ? "is" : "IS NOT"} that of a run without`);
    if (!isSame) {
      console.log(`seed ${seed + round}\n${whole.log.join("\n")}\n---\n${killed.log.join("\n")}`);
      Deno.exit(1);
    }
  }
} else {
  console.error(
    "usage: deno task chaos --role loopd|memoryd [--kills N] [--seed S] | --channel | --index [--step N]",
  );
  Deno.exit(2);
}
