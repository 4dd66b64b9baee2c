// Guards the system call profile as data: what the kernel does with it is shown from inside a container.
import { deepStrictEqual, ok as isTrue, strictEqual } from "node:assert";
import { REFUSED } from "../../../tests/doubles/refused_calls.ts";
import { ALLOWED, namesOf, seccompProfile } from "./seccomp.ts";

const profile = JSON.parse(seccompProfile());
type Rule = { names: string[]; action: string; args?: object[]; errnoRet?: number };
const rules: Rule[] = profile.syscalls;

Deno.test("seccompProfile() refuses by default, for one architecture", () => {
  deepStrictEqual(
    [profile.defaultAction, profile.defaultErrnoRet, profile.architectures],
    ["SCMP_ACT_ERRNO", 1, ["SCMP_ARCH_X86_64"]],
  );
});

Deno.test("seccompProfile() no refused name has any rule, and no name is there twice", () => {
  const named = rules.flatMap((rule) => rule.names);
  for (const name of namesOf(REFUSED)) isTrue(!named.includes(name), name);
  strictEqual(new Set(named).size, named.length);
  strictEqual(namesOf(ALLOWED).length, 253);
});

Deno.test("seccompProfile() conditions: no namespace, no other socket, no set-id bit", () => {
  const rule = (name: string) => rules.filter((one) => one.names.includes(name));
  const masked = (index: number, value: number) => ({
    index,
    value,
    valueTwo: 0,
    op: "SCMP_CMP_MASKED_EQ",
  });
  deepStrictEqual(rule("clone")[0]?.args, [masked(0, 2114060288)]);
  for (const name of ["socket", "socketpair"]) {
    deepStrictEqual(rule(name)[0]?.args, [{ index: 0, value: 1, op: "SCMP_CMP_EQ" }]);
  }
  for (
    const [name, index] of [["open", 2], ["openat", 3], ["creat", 1], ["fchmodat", 2]] as const
  ) {
    deepStrictEqual(rule(name)[0]?.args, [masked(index, 0o6000)]);
  }
  for (const name of ["clone3", "openat2"]) {
    deepStrictEqual([rule(name)[0]?.action, rule(name)[0]?.errnoRet], ["SCMP_ACT_ERRNO", 38]);
  }
});
