// Guards what brokerd does with a call that has hosts: the way is open before the container and closed
// after every end of it, secrets go where the grant says, requests are on record.
import { deepStrictEqual, ok as isTrue, strictEqual } from "node:assert";
import { err, ok } from "../../shared/results/result.ts";
import {
  newCall,
  newTurn,
  openChat,
  outcomeOf,
  testHouse,
} from "../../tests/doubles/broker_house.ts";
import type { House } from "./house.ts";
import type { WayAsked } from "./way_out.ts";

const HOST = "https://a.example:443";
const grant = (more = "") =>
  `tool = "http_fetch"\nmode = "auto"\nhosts = ["${HOST}"]\nmax_taint = "private"\n` +
  `result_class = "public"\nwhen_untrusted = "ask"\nuntrusted = false\n${more}`;

function rig(more = "") {
  const test = testHouse({ grants: { "fetch.toml": grant(more) } });
  const asked: WayAsked[] = [];
  const seen: string[] = [];
  const egress: House["ports"]["egress"] = (one, record) => {
    asked.push(one);
    seen.push("open");
    const line = { method: "GET", url: `${HOST}/x`, bytes: 0, sha256: "0".repeat(64) };
    isTrue(record({ n: 0, ...line, refused: null }, null).ok);
    const close = () => Promise.resolve(void seen.push("close"));
    return Promise.resolve(ok({ folder: "/run/eg/abc", close }));
  };
  Object.assign(test.ports, { egress });
  return { test, asked, seen };
}

async function fetchOnce(house: House, url = "https://a.example/x") {
  const session = openChat(house);
  const call = newCall();
  const args = JSON.stringify({ url });
  isTrue(house.calls.request({ session, turn: newTurn(), call, tool: "http_fetch", args }).ok);
  for (let i = 0; i < 500 && !house.calls.isIdle(); i++) await new Promise((r) => setTimeout(r, 1));
  const ended = house.calls.fetch(session, call);
  return ended.ok && ended.value.is === "ended" ? ended.value.result : null;
}

Deno.test("egress without a way out nothing starts, and the model is told no path", async () => {
  const test = testHouse({ grants: { "fetch.toml": grant() } });
  const house = test.open();
  const result = await fetchOnce(house);
  strictEqual(result?.code, "egress-unavailable");
  isTrue(!result.message.includes("/"), result.message);
  strictEqual(test.fake.runs.length, 0);
  await house.close();
});

Deno.test("egress the way is closed after every end of the container", async () => {
  for (
    const status of ["ok", "tool_failed", "timeout", "killed", "could_not_start", "throw"] as const
  ) {
    const { test, seen } = rig();
    test.fake.script = (plan) => {
      seen.push("run");
      if (status === "throw") return Promise.reject(new Error("broken"));
      return Promise.resolve(ok(outcomeOf(plan, { status })));
    };
    const house = test.open();
    await fetchOnce(house);
    deepStrictEqual(seen, ["open", "run", "close"], status);
    await house.close();
  }
  const { test, seen } = rig();
  test.fake.script = () => Promise.resolve(err("runtime-unavailable", "none"));
  const house = test.open();
  await fetchOnce(house);
  deepStrictEqual(seen, ["open", "close"]);
  await house.close();
});

Deno.test("egress a header's secret goes to egressd alone, one for standard input to the tool alone", async () => {
  for (const as of ["header:X-Key", "stdin"]) {
    const { test, asked } = rig(`secret = { name = "key", as = "${as}" }\n`);
    const house = test.open();
    strictEqual((await fetchOnce(house))?.outcome, "done");
    const [run] = test.fake.runs;
    const inHeader = as !== "stdin";
    deepStrictEqual(asked[0]?.inject, inHeader ? { header: "X-Key", value: "canary" } : null);
    strictEqual(run?.secretsJson, inHeader ? null : '{"key":"canary"}');
    deepStrictEqual(asked[0]?.origins, [HOST]);
    strictEqual(run?.egressFolder, "/run/eg/abc");
    deepStrictEqual(run?.flags, [
      "--allow-net=a.example:443,unix:/eg/s.sock",
      "--allow-read=/eg/s.sock",
      "--allow-write=/eg/s.sock",
    ]);
    const kinds = [...house.audit.records()].map((one) => one.kind);
    deepStrictEqual(kinds.slice(-3), ["start", "request", "result"]);
    isTrue(!JSON.stringify([...house.audit.records()]).includes("canary"));
    await house.close();
  }
});
