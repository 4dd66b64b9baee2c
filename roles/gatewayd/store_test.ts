// Guards: "a row that is cut anew keeps its place": whatever waits in a channel is posted in the order in
// which it was put, each piece once, however often heads are cut and however the channels mix.
import { deepStrictEqual, strictEqual } from "node:assert";
import fc from "fast-check";
import { openStore } from "./store.ts";

const step = fc.record({
  what: fc.constantFrom("put", "post", "cut", "prune"),
  channel: fc.constantFrom("a", "b"),
  pieces: fc.integer({ min: 1, max: 4 }),
  item: fc.integer({ min: -1, max: 3 }),
});

Deno.test("cut() keeps every piece once and in order, whatever else happens to the queue (property)", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const store = openStore(":memory:", () => 1);
      const waiting: Record<string, string[]> = { a: [], b: [] };
      const head = (channel: string) => {
        const row = store.nextOut(channel);
        strictEqual(row?.text, waiting[channel]?.[0]);
        return row;
      };
      const post = (channel: string) => {
        const row = head(channel);
        if (row === undefined) return;
        store.posted(row.key, `p-${row.key}`);
        waiting[channel]?.shift();
      };
      for (const [n, { what, channel, pieces, item }] of steps.entries()) {
        const text = `text ${n}`;
        if (what === "put") {
          store.put({ key: `k${n}`, channel, root: "", text, item });
          waiting[channel]?.push(text);
        } else if (what === "post") post(channel);
        else if (what === "prune") store.prune();
        else {
          const row = head(channel);
          if (row === undefined) continue;
          const texts = Array.from({ length: pieces }, (_, i) => `${row.text}.${i}`);
          store.trying(row.id, "pending");
          store.step(() => store.cut(row, texts));
          waiting[channel]?.splice(0, 1, ...texts);
          strictEqual(row.item < 0 || store.isItemOpen(row.item), true);
        }
      }
      const left = (channel: string) => waiting[channel]?.length ?? 0;
      for (const channel of ["a", "b"]) while (left(channel) > 0) post(channel);
      deepStrictEqual([store.unsent(), store.outChannels()], [0, []]);
      store.close();
    }),
  );
});
