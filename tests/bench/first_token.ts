// Time to the first word: through bxctl's socket, loopd and inferproxy, beside the same request sent
// to the same server directly. What the server itself takes, from the whole request to the first
// word it has, depends on how much of the prompt is new and is left out of both. A message is durable
// before the model is asked, so the two syncs that this takes are measured on the same disk in turn.
import { givenModel } from "../../launch/served_model.ts";
import { denoDisk } from "../../shared/disk/deno_disk.ts";
import { openAppender, overwrite } from "../../shared/disk/durable.ts";
import { e2eHouse } from "../doubles/e2e_house.ts";
import { askDirectly, converse, lastExchange, type Seen } from "./conversation.ts";
import { startModelProcess } from "./model_process.ts";
import { inTurn, line, ms, spread } from "./rounds.ts";

const HELLO = "0 20";
const ROUNDS = 100;

export async function benchFirstToken(): Promise<void> {
  await using server = await startModelProcess();
  const withoutServer = async (act: () => Promise<Seen>): Promise<number> => {
    // What a turn leaves to be done after its answer, such as indexing, is over before the next one.
    await new Promise((resolve) => setTimeout(resolve, 150));
    const { sentMs, firstMs } = await act();
    return firstMs - sentMs - await server.ownMs();
  };
  await using rig = await e2eHouse({ model: givenModel(server.url) });
  const talk = converse(rig.house);
  await talk.say(HELLO);
  // The self-test and that first turn.
  for (let i = 0; i < 3; i++) await server.ownMs();
  const disk = twoSyncs(rig.house.home);
  const results = await inTurn({
    direct: () =>
      withoutServer(() => askDirectly(server.url, lastExchange(rig.house.home, talk.session).body)),
    disk: () => Promise.resolve(disk.time()),
    house: () => withoutServer(() => talk.say(HELLO)),
  }, ROUNDS);
  disk.close();
  await talk.close();
  const of = (name: string) => spread(results.get(name) ?? []);
  const told = ({ p50, p95 }: { p50: number; p95: number }) => `p50 ${ms(p50)}, p95 ${ms(p95)}`;
  const [house, direct] = [of("house"), of("direct")];
  line("first word through the house", told(house));
  line("  the same request to the server itself", told(direct));
  line("  two syncs of this disk", told(of("disk")));
  const added = { p50: house.p50 - direct.p50, p95: house.p95 - direct.p95 };
  line("  added by the house", told(added), "limit 10 ms at p95");
}

/** What one record of a session's log costs the disk: a line appended, its head overwritten. */
function twoSyncs(home: string) {
  const path = `${home}/bench`;
  const log = openAppender(denoDisk, path);
  if (!log.ok) throw new Error(log.detail);
  const block = new Uint8Array(512);
  return {
    time(): number {
      const from = performance.now();
      const done = [log.value.append(block), overwrite(denoDisk, path, 0, block)];
      if (done.some((one) => !one.ok)) throw new Error("The disk refused");
      return performance.now() - from;
    },
    close: () => log.value.close(),
  };
}
