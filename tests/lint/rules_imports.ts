// Rules on what a file may load: edges between rooms, packages, and code that flags cannot refuse.
import { BANNED_NODE, isProduct, mayImport, mayUsePackage, SOURCE } from "./rooms.ts";

type Ctx = Deno.lint.RuleContext;
type Node = Deno.lint.Node;

/** Why `specifier` may not be imported by `path`, or undefined when it may. */
export function importProblem(path: string, specifier: string): string | undefined {
  if (/^\.{1,2}\//.test(specifier)) {
    const to = new URL(specifier, `file://${SOURCE}${path}`).pathname;
    if (!to.startsWith(SOURCE)) return `${specifier} lies outside the source folder`;
    const target = to.slice(SOURCE.length);
    return mayImport(path, target) ? undefined : `${path} may not import ${target}`;
  }
  if (specifier.startsWith("node:")) return undefined;
  if (/^[a-z]+:/.test(specifier)) return `imports are files, packages of deno.json, or node:`;
  return mayUsePackage(path, specifier) ? undefined : `${path} may not use package ${specifier}`;
}

function check(ctx: Ctx, path: string, node: Node, specifier: unknown): void {
  const problem = typeof specifier === "string"
    ? importProblem(path, specifier)
    : "an import must be one literal string";
  if (problem !== undefined) ctx.report({ node, message: problem });
}

/** Edges between rooms and packages; imports must be literal. */
export function roleBoundary(ctx: Ctx, path: string): Deno.lint.LintVisitor {
  return {
    ImportDeclaration: (node) => check(ctx, path, node, node.source.value),
    ExportNamedDeclaration(node) {
      if (node.source !== null) check(ctx, path, node, node.source.value);
    },
    ExportAllDeclaration: (node) => check(ctx, path, node, node.source.value),
    ImportExpression(node) {
      const literal = node.source.type === "Literal" ? node.source.value : undefined;
      check(ctx, path, node, literal);
    },
    TSImportType(node) {
      const text = ctx.sourceCode.getText(node).match(/import\(\s*["']([^"']*)["']/);
      check(ctx, path, node, text?.[1]);
    },
  };
}

/** Runtime modules that would step around the ports or the flags. */
export function bannedModule(ctx: Ctx, path: string): Deno.lint.LintVisitor {
  return {
    ImportDeclaration(node) {
      const banned = BANNED_NODE.includes(node.source.value);
      if (banned && (isProduct(path) || node.source.value === "node:vm")) {
        ctx.report({ node, message: `${node.source.value} is not used here` });
      }
    },
  };
}

/** An import for its side effect runs code nobody named. */
export function sideEffectImport(ctx: Ctx): Deno.lint.LintVisitor {
  return {
    ImportDeclaration(node) {
      if (node.specifiers.length === 0) {
        ctx.report({ node, message: "import names, not side effects" });
      }
    },
  };
}

/** Workers escape the import graph, so one literal file alone may be started, from a listed place. */
export function newWorker(ctx: Ctx): Deno.lint.LintVisitor {
  return {
    NewExpression(node) {
      if (node.callee.type === "Identifier" && node.callee.name === "Worker") {
        ctx.report({ node, message: "a Worker is started only in the listed place" });
      }
    },
  };
}

/** Even where a Worker is allowed, its module is one literal file beside the caller. */
export function literalWorker(ctx: Ctx): Deno.lint.LintVisitor {
  const form = /^new Worker\(\s*new URL\("\.\/[a-z_]+\.ts", import\.meta\.url\)/;
  return {
    NewExpression(node) {
      const isWorker = node.callee.type === "Identifier" && node.callee.name === "Worker";
      if (isWorker && !form.test(ctx.sourceCode.getText(node))) {
        ctx.report({ node, message: 'write new Worker(new URL("./file.ts", import.meta.url), …)' });
      }
    },
  };
}

/** `import.meta.resolve` computes specifiers that no table sees. */
export function metaResolve(ctx: Ctx): Deno.lint.LintVisitor {
  return {
    MemberExpression(node) {
      if (ctx.sourceCode.getText(node).replace(/\s/g, "") === "import.meta.resolve") {
        ctx.report({ node, message: "import.meta.resolve is not used" });
      }
    },
  };
}

/** Code made from text or bytes is not held by the import table. */
export function madeCode(ctx: Ctx): Deno.lint.LintVisitor {
  const names = ["eval", "Function", "WebAssembly"];
  const report = (node: Node) =>
    ctx.report({ node, message: "no code is made from text, bytes or data: URLs" });
  return {
    CallExpression(node) {
      if (node.callee.type === "Identifier" && names.includes(node.callee.name)) report(node);
    },
    NewExpression(node) {
      if (node.callee.type === "Identifier" && names.includes(node.callee.name)) report(node);
    },
    MemberExpression(node) {
      if (node.object.type === "Identifier" && node.object.name === "WebAssembly") report(node);
      const text = ctx.sourceCode.getText(node);
      if (/^(?:globalThis|self)\.(?:eval|Function|WebAssembly)$/.test(text)) report(node);
      if (text === "URL.createObjectURL") report(node);
    },
    Literal(node) {
      if (typeof node.value === "string" && /^(?:data|blob):/.test(node.value)) report(node);
    },
    TemplateElement(node) {
      if (/^(?:data|blob):/.test(node.raw)) report(node);
    },
  };
}
