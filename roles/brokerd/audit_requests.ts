// What the owner may ask of the audit log: look, verify, and declare a repair. The last two are also
// all that is served when the log is damaged and the house cannot be opened.
import { type Err, err, ok, type Result } from "../../shared/results/result.ts";
import {
  AUDIT_REPAIR,
  AUDIT_TAIL,
  AUDIT_VERIFY,
  BROKER_STATUS,
} from "../../shared/wire/broker_owner.ts";
import type { BodyOf } from "../../shared/wire/exchange.ts";
import { encodeUtf8 } from "../../shared/wire/codec.ts";
import { on, type Route } from "../../shared/wire/listen.ts";
import type { Audit, AuditPorts } from "./audit.ts";
import { repairClosed, verifyClosed } from "./audit.ts";
import type { Progress, Verified } from "./audit_verify.ts";
import type { Head } from "../../shared/chain/chain_record.ts";

type Repaired = BodyOf<(typeof AUDIT_REPAIR)["replies"][number]>;

export function auditRoutes(audit: Audit): Route[] {
  // What one repair has found is not repaired again by another that looked at the same time.
  let isRepairing = false;
  return [
    on(AUDIT_TAIL, async ({ count, end }, io) => {
      const lines = audit.tail(count, end);
      if (!lines.ok) return lines;
      await io.chunk(encodeUtf8(lines.value.map((line) => `${line}\n`).join("")));
      return ok({
        kind: "audit_tail_end",
        body: { head: audit.head(), lines: lines.value.length },
      });
    }),
    verifyRoute(audit.verify),
    on(AUDIT_REPAIR, async ({ finding }) => {
      if (isRepairing) return err("request-invalid", "The log is being looked at already");
      isRepairing = true;
      const verified = await audit.verify(null, () => {}).finally(() => isRepairing = false);
      if (!verified.ok) return verified;
      const { broken, finding: found } = verified.value;
      if (broken === null) return err("not-found", `Nothing is to be repaired: ${found}`);
      return repaired(found, finding, () => audit.repair(broken, found));
    }),
  ];
}

/** For a log that brokerd cannot go on from, `failure` saying why. `onRepaired` starts anew. */
export function brokenLogRoutes(
  ports: AuditPorts,
  folder: string,
  failure: Err,
  onRepaired: () => void,
): Route[] {
  return [
    on(BROKER_STATUS, () => failure),
    verifyRoute((against, onProgress) => verifyClosed(ports, folder, failure, against, onProgress)),
    on(AUDIT_REPAIR, ({ finding }) => {
      const said = repaired(failure.detail, finding, () => repairClosed(ports, folder, failure));
      if (said.ok && said.value.body.is_done) onRepaired();
      return said;
    }),
  ];
}

function verifyRoute(
  verify: (against: Head | null, onProgress: Progress) => Promise<Result<Verified>>,
): Route {
  return on(AUDIT_VERIFY, async ({ against }, io) => {
    const verified = await verify(against, (records, bytes, total_bytes) => {
      io.event({ kind: "verify_progress", body: { records, bytes, total_bytes } });
    });
    if (!verified.ok) return verified;
    const { broken: _broken, ...body } = verified.value;
    return ok({ kind: "audit_verified", body });
  });
}

/** Only what the owner was shown is declared. */
function repaired(
  found: string,
  declared: string | null,
  repair: () => Result<Head>,
): Result<{ kind: "audit_repaired"; body: Repaired }> {
  const finding = found.slice(0, 1_000);
  const tell = (is_done: boolean, head: Head | null) =>
    ok({ kind: "audit_repaired" as const, body: { is_done, finding, head } });
  if (declared !== finding) return tell(false, null);
  const done = repair();
  return done.ok ? tell(true, done.value) : done;
}
