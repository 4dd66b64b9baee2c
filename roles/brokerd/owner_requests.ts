// What the owner may ask of brokerd through bxctl.
import { ok, type Result } from "../../shared/results/result.ts";
import { err } from "../../shared/results/result.ts";
import { VERSION } from "../../shared/version/version.ts";
import {
  APPROVAL_ANSWER,
  APPROVAL_SHOW,
  APPROVALS_LIST,
  BROKER_STATUS,
  GRANTS_CHECK,
  GRANTS_EXPLAIN,
  RESUME,
  SECRET_SET,
  STOP,
} from "../../shared/wire/broker_owner.ts";
import { decodeUtf8, encodeUtf8 } from "../../shared/wire/codec.ts";
import type { BodyOf } from "../../shared/wire/exchange.ts";
import { on, type Route } from "../../shared/wire/listen.ts";
import { summaryOf } from "./approvals.ts";
import { auditRoutes } from "./audit_requests.ts";
import { explain } from "./explain.ts";
import type { House } from "./house.ts";
import { keepSecret } from "./kept_secrets.ts";
import { answeredReply } from "./peer_requests.ts";

type Status = BodyOf<(typeof BROKER_STATUS)["replies"][number]>;

export function ownerRoutes(house: House): Route[] {
  return [
    ...questionRoutes(house),
    ...switchRoutes(house),
    ...auditRoutes(house.audit),
    ...grantRoutes(house),
    secretRoute(house),
  ];
}

function questionRoutes({ approvals, render }: House): Route[] {
  return [
    on(APPROVALS_LIST, ({ include_answered, limit }) => {
      const items = approvals.list(include_answered ? "all" : "pending").slice(0, limit);
      return ok({ kind: "approvals", body: { items: items.map(summaryOf) } });
    }),
    on(APPROVAL_SHOW, async ({ approval: id }, io) => {
      const approval = approvals.find(id);
      if (approval === null) return err("not-found", `There is no question ${id}`);
      await io.chunk(encodeUtf8(render(approval).join("\n") + "\n"));
      return ok({ kind: "approval", body: { summary: summaryOf(approval), code: approval.code } });
    }),
    on(
      APPROVAL_ANSWER,
      ({ code, answer }) => answeredReply(approvals.answer(code, answer, "owner", null)),
    ),
  ];
}

function switchRoutes(house: House): Route[] {
  const state = (was_stopped: boolean, ended: Result<number>) =>
    ended.ok
      ? ok({
        kind: "stop_state" as const,
        body: { is_stopped: house.stop.isStopped(), was_stopped, ended: ended.value },
      })
      : ended;
  return [
    on(STOP, ({ why }) => state(house.stop.isStopped(), house.halt("owner", why, null))),
    on(RESUME, () => {
      const was = house.stop.isStopped();
      const resumed = house.resume();
      return state(was, resumed.ok ? ok(0) : resumed);
    }),
    on(BROKER_STATUS, async () => ok({ kind: "broker_status", body: await statusOf(house) })),
  ];
}

function grantRoutes(house: House): Route[] {
  return [
    on(GRANTS_CHECK, () => {
      const items = [...house.grants.current().summaries];
      return ok({ kind: "grants", body: { items } });
    }),
    on(GRANTS_EXPLAIN, (asked, io) => {
      const args = decodeUtf8(io.upload);
      if (!args.ok) return args;
      const { verdict, code, lines } = explain(house, asked, args.value);
      return ok({ kind: "grants_explained", body: { verdict, code, lines: [...lines] } });
    }),
  ];
}

/** That a secret is set is on record before it is; nothing of it is. */
function secretRoute({ ports, audit }: House): Route {
  const { disk, home, config } = ports;
  return on(SECRET_SET, ({ name }, io) => {
    const record = (name: string) => audit.append({ kind: "secret", name });
    const kept = keepSecret({ disk, home, secrets: config.secrets, record }, name, io.upload);
    return kept.ok ? ok({ kind: "secret_kept", body: { was_there: kept.value } }) : kept;
  });
}

async function statusOf(house: House): Promise<Status> {
  const { stop, grants, approvals, calls, tools, audit, runtime } = house;
  const loaded = grants.current();
  const state = runtime.status();
  const egress = await house.ports.egressStatus();
  const problems = [
    ...(loaded.problems > 0
      ? [{ code: "grants-invalid", detail: `${loaded.problems} problems in grant files` }]
      : []),
    ...(tools.problem === null ? [] : [tools.problem]),
    ...(state.state === "refusing" && state.code !== tools.problem?.code
      ? [{ code: state.code, detail: state.detail }]
      : []),
    ...(stop.isStopped() && stop.witness() !== null
      ? [{ code: "audit-broken", detail: stop.why() }]
      : []),
  ];
  const runtimeText = state.state === "ready"
    ? `${state.facts.podman}, ${state.facts.runtime}, ${state.facts.limits} limits`
    : state.state === "starting"
    ? "testing"
    : `${state.code}: ${state.detail}`;
  return {
    version: VERSION,
    started_unix_ms: house.ports.startedUnixMs,
    summary: stop.isStopped() ? `Stopped: ${stop.why()}`.slice(0, 1_000) : "Deciding",
    problems: problems.map(({ code, detail }) => ({ code, detail: detail.slice(0, 1_000) })),
    is_stopped: stop.isStopped(),
    grants: loaded.set.grants.length,
    grant_problems: loaded.problems,
    approvals_pending: approvals.list("pending").length,
    calls_running: calls.running(),
    runtime: {
      is_ready: state.state === "ready",
      detail: runtimeText.slice(0, 1_000),
      image: tools.image?.digest ?? null,
      catalog: tools.image?.catalog ?? null,
    },
    egress: {
      is_reachable: egress.ok,
      detail: egress.ok ? egress.value : egress.detail.slice(0, 1_000),
    },
    audit: audit.head(),
  };
}
