// Guards: "a role starts while the others come and go".
import { deepStrictEqual } from "node:assert";
import { prepareHome } from "./home.ts";

Deno.test("prepareHome() takes a socket that vanishes while it looks for what it is: gone", () => {
  const home = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "bx" }));
  deepStrictEqual(prepareHome(home), { ok: true, value: null });
  const path = `${home}/run/owner-loop/admin.sock`;
  const listener = Deno.listen({ transport: "unix", path });
  const look = Deno.lstatSync;
  Reflect.set(Deno, "lstatSync", (asked: string) => {
    if (asked === path) Deno.removeSync(path);
    return look(asked);
  });
  try {
    deepStrictEqual(prepareHome(home), { ok: true, value: null });
  } finally {
    Reflect.set(Deno, "lstatSync", look);
    listener.close();
    Deno.removeSync(home, { recursive: true });
  }
});
