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

Deno.test("supervise() a log that cannot be put aside is told of and grows on", async () => {
  const home = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "bx" }));
  Deno.mkdirSync(`${home}/logs/one.log.1/in_the_way`, { recursive: true });
  Deno.writeTextFileSync(`${home}/logs/one.log`, "");
  Deno.truncateSync(`${home}/logs/one.log`, 17 * 1024 * 1024);
  const said: string[] = [];
  const told = Promise.withResolvers<void>();
  const supervisor = supervise({
    home,
    programs: [{ name: "one", argv: ["/bin/sh", "-c", "echo here; exit 3"], env: {} }],
    say: (line) => {
      said.push(line);
      if (line.includes("ended")) told.resolve();
    },
  });
  await told.promise;
  await supervisor.stop();
  match(said[0] ?? "", /one\.log cannot be put aside: .*/);
  match(said[1] ?? "", /^one ended \(status 3\): .*here$/);
  Deno.removeSync(home, { recursive: true });
});
