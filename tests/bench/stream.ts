// How fast a long answer streams through the house, beside the same request sent to the same server
// directly: from the first to the last piece that the client sees. A server that writes as fast as it
// can shows the house's own cost; the real one shows what an owner gets. Its speed varies with all
// else that the machine does, so there each way is measured by the time that the server itself
// says it took for that very answer.
import { givenModel, type ServedModel, smallModel } from "../../launch/served_model.ts";
import { e2eHouse } from "../doubles/e2e_house.ts";
import { hasRealLlama, REAL_LLAMA_MISSING } from "../doubles/real_llama.ts";
import { askDirectly, converse, lastExchange, type Seen } from "./conversation.ts";
import { startModelProcess } from "./model_process.ts";
import { line, ms, spread } from "./rounds.ts";

const SOURCE = decodeURIComponent(new URL("../..", import.meta.url).pathname).replace(/\/$/, "");
const STORY = "Tell me a long story about a lighthouse, a boat and a storm.";

type Pace = {
  readonly what: string;
  readonly text: string;
  readonly rounds: number;
  /** Whether the server says how long an answer took it. */
  readonly hasOwnTime?: true;
};

export async function benchStream(): Promise<void> {
  {
    await using server = await startModelProcess();
    await compare(givenModel(server.url), [
      { what: "100 words a second", text: "10 300", rounds: 5 },
      { what: "a server as fast as it can", text: "0 4000", rounds: 10 },
    ]);
  }
  if (!hasRealLlama()) return line("the real server", `skipped, ${REAL_LLAMA_MISSING}`);
  await compare(smallModel(SOURCE), [
    { what: "the real server", text: STORY, rounds: 5, hasOwnTime: true },
  ]);
}

async function compare(model: ServedModel, paces: readonly Pace[]): Promise<void> {
  await using rig = await e2eHouse({ model });
  const talk = converse(rig.house);
  await talk.say("Hello.");
  for (const { what, text, rounds, hasOwnTime } of paces) {
    const results: Record<"house" | "direct", { speed: number; cpuMs: number }[]> = {
      house: [],
      direct: [],
    };
    for (let round = 0; round < rounds; round++) {
      const cpuBefore = cpuMs(rig.house.supervisor.pids());
      const through = await talk.say(text);
      const cpu = cpuMs(rig.house.supervisor.pids()) - cpuBefore;
      const { body, ownMs } = lastExchange(rig.house.home, talk.session);
      const bare = await askDirectly(`http://${model.address}`, body);
      const speed = (seen: Seen, ownMs: number | null) =>
        seen.units / (seen.lastMs - seen.firstMs) / (hasOwnTime ? seen.units / (ownMs ?? 1) : 1);
      results.house.push({ speed: speed(through, ownMs), cpuMs: cpu });
      results.direct.push({ speed: speed(bare, bare.ownMs), cpuMs: 0 });
    }
    const middle = (of: "house" | "direct") => spread(results[of].map((one) => one.speed)).p50;
    const pairs = results.house.map((one, i) => one.speed / (results.direct[i]?.speed ?? 1));
    const range = `pairs ${Math.min(...pairs).toFixed(3)} to ${Math.max(...pairs).toFixed(3)}`;
    line(what, `${spread(pairs).p50.toFixed(3)} of direct; ${range}`, "limit 0.99");
    const unit = hasOwnTime ? "of the server's own pace" : "characters a millisecond";
    line("", `${middle("house").toFixed(3)} and ${middle("direct").toFixed(3)} ${unit}`);
    const { p50 } = spread(results.house.map((one) => one.cpuMs));
    line("", `${ms(p50)} of processor in loopd and inferproxy per answer`);
  }
  await talk.close();
}

/** Processor time that the two roles on the way have used, in steps of 10 ms. */
function cpuMs(pids: ReadonlyMap<string, number>): number {
  return ["loopd", "inferproxy"].reduce((sum, name) => {
    const stat = Deno.readTextFileSync(`/proc/${pids.get(name)}/stat`);
    const [user = 0, system = 0] = stat.slice(stat.lastIndexOf(")")).split(" ").slice(12).map(
      Number,
    );
    return sum + (user + system) * 10;
  }, 0);
}
