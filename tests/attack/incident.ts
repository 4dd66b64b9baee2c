// What the tests of incident classes share: a test of a class names what is proved elsewhere too, and
// fails when that is no longer there.
import { ok } from "node:assert";
import type { House } from "../../roles/brokerd/house.ts";
import { grantToml, type TestHouse, withHouse } from "../doubles/broker_house.ts";

export const SOURCE = decodeURIComponent(new URL("../../", import.meta.url).pathname);

/**
 * A test of a class: the attack itself, and what is proved elsewhere, by file and name. `missing`:
 * what this machine lacks for the attack.
 */
export function incident(
  name: string,
  elsewhere: readonly (readonly [file: string, name: string])[],
  here: () => Promise<void> | void,
  missing: string | null = null,
): void {
  const why = missing === null ? "" : ` (skipped: ${missing})`;
  const attack = async () => {
    for (const [file, beginning] of elsewhere) {
      const text = Deno.readTextFileSync(`${SOURCE}${file}`);
      ok(['"', "`", "'"].some((mark) => text.includes(mark + beginning)), `${file}: ${beginning}`);
    }
    await here();
  };
  Deno.test({ name: `incident: ${name}${why}`, ignore: missing !== null, fn: attack });
}

/** Every listing asks the owner. */
export const ASK = { "list.toml": grantToml("list_dir", "ask") };

/** A house with these grants, for as long as `body` runs. */
export const inHouse = (
  grants: Readonly<Record<string, string>>,
  body: (house: House, test: TestHouse) => Promise<void> | void,
): Promise<void> => withHouse({ grants }, body);
