// The house's lint plugin: what the compiler and the permission flags cannot refuse. Each rule names
// where it holds; exceptions stand in allowed.ts with their reason and nowhere else.
import { ALLOWED } from "./allowed.ts";
import { isProduct, isTest, SOURCE } from "./rooms.ts";
import * as imports from "./rules_imports.ts";
import * as ports from "./rules_ports.ts";
import * as shape from "./rules_shape.ts";

type Create = (ctx: Deno.lint.RuleContext, path: string) => Deno.lint.LintVisitor;
type Where = (path: string) => boolean;
export type Allowed = Readonly<Record<string, Readonly<Record<string, string>>>>;

const everywhere: Where = () => true;
const product: Where = isProduct;
const productButMain: Where = (path) => isProduct(path) && !path.endsWith("/main.ts");
const roleButMain: Where = (path) => path.startsWith("roles/") && productButMain(path);

const RULES: Readonly<Record<string, readonly [Where, Create]>> = {
  "role-boundary": [everywhere, imports.roleBoundary],
  "banned-module": [everywhere, imports.bannedModule],
  "side-effect-import": [everywhere, imports.sideEffectImport],
  "new-worker": [product, imports.newWorker],
  "literal-worker": [product, imports.literalWorker],
  "meta-resolve": [product, imports.metaResolve],
  "made-code": [product, imports.madeCode],
  "file-length": [everywhere, shape.fileLength],
  "function-length": [everywhere, shape.functionLength],
  "file-name": [everywhere, shape.fileName],
  "module-header": [everywhere, shape.moduleHeader],
  "no-any": [everywhere, shape.noAny],
  "no-as": [everywhere, shape.noAs],
  "no-non-null": [everywhere, shape.noNonNull],
  "export-star": [everywhere, shape.exportStar],
  "default-export": [everywhere, shape.defaultExport],
  "class-shape": [(path) => !isTest(path), shape.classShape],
  "boolean-parameter": [product, shape.booleanParameter],
  "switch-default": [(path) => !isTest(path), shape.switchDefault],
  "codec-only": [product, ports.codecOnly],
  "deno-port": [productButMain, ports.denoPort],
  "main-only": [roleButMain, ports.mainOnly],
  "no-console": [product, ports.noConsole],
  "no-storage": [everywhere, ports.noStorage],
  "abstract-socket": [product, ports.abstractSocket],
  "time-and-chance": [productButMain, ports.timeAndChance],
  "module-state": [product, ports.moduleState],
};

/** The plugin with the given exceptions; tests pass none. */
export function plugin(allowed: Allowed): Deno.lint.Plugin {
  const rules: Record<string, Deno.lint.Rule> = {};
  for (const [name, [where, create]] of Object.entries(RULES)) {
    rules[name] = {
      create(ctx) {
        const path = relative(ctx.filename);
        const isAllowed = allowed[path]?.[name] !== undefined;
        return where(path) && !isAllowed ? create(ctx, path) : {};
      },
    };
  }
  return { name: "boxmaker", rules };
}

function relative(filename: string): string {
  const path = filename.replace(/^file:\/\//, "");
  return path.startsWith(SOURCE) ? path.slice(SOURCE.length) : path;
}

export default plugin(ALLOWED);
