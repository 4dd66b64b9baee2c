// Guards the whole of brokerd against orders of events that nobody thought of; the long form is
// `deno task attack --states 100000`.
import { ok } from "node:assert";
import { randomStates } from "../../tests/attack/states.ts";

Deno.test("random orders of events begin nothing without a yes, nothing twice, nothing late, nothing after a stop", async () => {
  const begun = await randomStates(300);
  ok(begun > 100, `only ${begun} effects began, which proves little`);
});
