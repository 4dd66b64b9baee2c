// `egress`: every address that anything of the house may reach. What roles may reach is in their
// flags, which the launcher hands over as words; what calls may reach is in the grants, of which
// brokerd tells.
import { ROLES } from "../../shared/wire/sockets.ts";
import { GRANTS_CHECK } from "../../shared/wire/broker_owner.ts";
import { err } from "../../shared/results/result.ts";
import { ask, type Command, fail, form, print, WORD } from "./context.ts";
import { table } from "./terminal.ts";

type Row = { readonly who: string; readonly address: string; readonly why: string };

const WHY: Readonly<Record<string, string>> = {
  inferproxy: "the model server",
  gatewayd: "the Mattermost server",
};

const reach = { ...WORD, multiple: true } as const;
const list = form("egress", [0, 0], { reach }, async (context, { values: { reach: told } }) => {
  if (told === undefined) {
    return fail(context, err("usage", "Start it as deno task bxctl egress: the launcher knows"));
  }
  const roles = told.map((word): Row => {
    const [who = "", ...rest] = word.split(" ");
    const address = rest.join(" ");
    if (address !== "*") return { who, address, why: WHY[who] ?? "not foreseen" };
    return { who, address: "any, of these", why: "the hosts of a grant, during a call" };
  });
  const reply = await ask(context, "owner-broker/admin", GRANTS_CHECK, {});
  if (!reply.ok) return fail(context, reply);
  const calls = reply.value.body.items.filter((grant) => grant.problems.length === 0)
    .flatMap((grant) =>
      (grant.hosts ?? []).map((address): Row => ({
        who: `  ${grant.tool}`,
        address,
        why: `${grant.mode} by ${grant.name}`,
      }))
    );
  const silent = ROLES.filter((role) => roles.every((row) => row.who !== role));
  const rows = [...roles, ...calls].map(({ who, address, why }) => [who, address, why]);
  const text = `${table(rows)}no address: ${silent.join(", ")}, and the containers of calls\n` +
    "a name among these is looked up at this machine's resolver\n";
  return print(context, { roles, calls, none: silent }, text);
});

export const EGRESS: Command = {
  summary: "every address that anything of the house may reach",
  forms: { "": list },
};
