// Guards: "what dies is restarted and named; nothing it wrote reaches the watcher's terminal raw".
import { match, strictEqual } from "node:assert";
import { supervise } from "./supervisor.ts";

Deno.test("supervise() tells a dead program's last words escaped, and starts it again", async () => {
  const home = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "bx" }));
  Deno.mkdirSync(`${home}/logs`);
  const said: string[] = [];
  const two = Promise.withResolvers<void>();
  const script = "printf 'error: \\033]0;owned\\007\\033[2J gone\\n'; exit 3";
  const supervisor = supervise({
    home,
    programs: [{ name: "one", argv: ["/bin/sh", "-c", script], env: {} }],
    say: (line) => {
      if (said.push(line) === 2) two.resolve();
    },
  });
  await two.promise;
  await supervisor.stop();
  for (const line of said) {
    match(line, /^one ended \(status 3\): error: .* gone$/);
    strictEqual(/\p{Cc}/u.test(line), false);
  }
  Deno.removeSync(home, { recursive: true });
});
