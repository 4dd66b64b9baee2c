// Guards docs/permissions.md: a flag cannot change without the page, and so its reader, seeing it.
import { strictEqual } from "node:assert";
import { permissionsPage } from "./permissions_doc.ts";

Deno.test("permissionsPage() docs/permissions.md shows the flags that are really computed", () => {
  const page = Deno.readTextFileSync(new URL("../docs/permissions.md", import.meta.url));
  strictEqual(page, permissionsPage(), "run deno task permissions");
});
