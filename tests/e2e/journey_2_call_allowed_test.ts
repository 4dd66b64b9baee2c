// Journey 2: a tool call is allowed by a grant and runs in a container. docs/journeys/journey-2-call-allowed.md
import { match, ok as isTrue, strictEqual } from "node:assert";
import { e2eHouse, houseTest } from "../doubles/e2e_house.ts";

houseTest("journey 2: without a grant that fits, nothing runs and the reason is told", async () => {
  await using house = await e2eHouse();
  const cases = [
    ["read /etc/hostname", "path_outside"],
    ["read /proc/self/environ", "path_outside"],
    ["search secret in /etc", "no_grant"],
    [`write x to ${house.papers}/../../escape.txt`, "arguments_invalid"],
    ["fetch http://127.0.0.1:1/x", null],
  ] as const;
  for (const [text, code] of cases) {
    const reply = await house.chat(text);
    strictEqual(reply.kind, "reply", `${text}: ${reply.text}`);
    const result = (await house.records(reply.session)).find((one) => one.kind === "tool_result");
    isTrue(result !== undefined, text);
    strictEqual(result.container, null, text);
    isTrue(result.outcome !== "done", text);
    if (code !== null) strictEqual(result.code, code, text);
  }
  const { approvals } = await house.json("approvals", "--all");
  strictEqual(Array.isArray(approvals) && approvals.length, 0);
});

houseTest("journey 2: an allowed call runs in a fresh container and is on record", async () => {
  await using house = await e2eHouse();
  const reply = await house.chat(`list ${house.papers}`);
  match(reply.text, /plan\.txt/);
  const records = await house.records(reply.session);
  const result = records.find((record) => record.kind === "tool_result");
  strictEqual(result?.outcome, "done");
  match(String(result?.container), /^bx-/);
  match(String(result?.image), /^[0-9a-f]{64}$/);

  const audit = await house.json("audit", "tail", "-n", "50");
  const kinds = (Array.isArray(audit.records) ? audit.records : []).map((one) => Object(one).kind);
  for (const kind of ["session", "decision", "start", "result"]) {
    isTrue(kinds.includes(kind), `${kind} in ${kinds}`);
  }
  const verified = await house.bx("audit", "verify");
  strictEqual(verified.status, 0, verified.out);

  const again = await house.chat(`list ${house.papers}`);
  const other = (await house.records(again.session)).find((one) => one.kind === "tool_result");
  isTrue(other?.container !== result?.container);
});

houseTest("journey 2: stop refuses every effect, also over a restart, until resume", async () => {
  await using house = await e2eHouse();
  strictEqual((await house.bx("stop", "test")).status, 0);
  await house.kill("brokerd");
  const refused = await house.chat(`list ${house.papers}`);
  const result = (await house.records(refused.session)).find((one) => one.kind === "tool_result");
  strictEqual(result?.code, "stopped");
  strictEqual((await house.bx("status")).status, 1);
  strictEqual((await house.bx("resume")).status, 0);
  match((await house.chat(`list ${house.papers}`)).text, /plan\.txt/);
});

houseTest("journey 2: a grant edited while the house runs counts from then on", async () => {
  await using house = await e2eHouse();
  const file = `${house.house.home}/grants/list.toml`;
  const text = await Deno.readTextFile(file);
  await Deno.writeTextFile(file, text.replace("auto", "deny"));
  const denied = await house.chat(`list ${house.papers}`);
  const result = (await house.records(denied.session)).find((one) => one.kind === "tool_result");
  strictEqual(result?.outcome, "denied");
  await Deno.writeTextFile(file, text.replace("mode", "moed"));
  const check = await house.bx("grants", "check");
  strictEqual(check.status, 1);
  match(check.out, /list\.toml/);
  await Deno.writeTextFile(file, text);
  strictEqual((await house.bx("grants", "check")).status, 0);
  match((await house.chat(`list ${house.papers}`)).text, /plan\.txt/);
});
