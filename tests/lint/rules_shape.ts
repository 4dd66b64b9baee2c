// Rules on the shape of the text: sizes, names, types and exports.
import { isTest } from "./rooms.ts";

type Ctx = Deno.lint.RuleContext;
type Node = Deno.lint.Node;
type Visitor = Deno.lint.LintVisitor;

const MAX_FILE_LINES = 500;
const MAX_FUNCTION_LINES = 80;
const BANNED_NAME =
  /(?:^|_)(?:utils?|helpers?|common|misc|types|manager)\.ts$|[0-9]\.ts$|^mod\.ts$/;

function linesOf(text: string): number {
  return text.split("\n").length - (text.endsWith("\n") ? 1 : 0);
}

export function fileLength(ctx: Ctx): Visitor {
  return {
    Program(node) {
      const lines = linesOf(ctx.sourceCode.text);
      if (lines > MAX_FILE_LINES) {
        ctx.report({ node, message: `${lines} lines; at most ${MAX_FILE_LINES}` });
      }
    },
  };
}

export function functionLength(ctx: Ctx): Visitor {
  const check = (node: Node) => {
    const lines = linesOf(ctx.sourceCode.getText(node));
    if (lines > MAX_FUNCTION_LINES) {
      ctx.report({ node, message: `${lines} lines; at most ${MAX_FUNCTION_LINES} in a function` });
    }
  };
  return {
    FunctionDeclaration: check,
    FunctionExpression: check,
    ArrowFunctionExpression: check,
  };
}

export function fileName(ctx: Ctx, path: string): Visitor {
  return {
    Program(node) {
      const name = path.split("/").at(-1) ?? "";
      if (!/^[a-z][a-z0-9_]*\.ts$/.test(name)) {
        ctx.report({ node, message: `${name}: file names are snake_case.ts` });
      }
      if (BANNED_NAME.test(name)) {
        ctx.report({ node, message: `${name}: name the file for a noun of the domain` });
      }
    },
  };
}

/** A module opens by saying its one job. */
export function moduleHeader(ctx: Ctx, path: string): Visitor {
  return {
    Program(node) {
      if (!isTest(path) && !/^(?:\/\/ |\/\*\*)/.test(ctx.sourceCode.text)) {
        ctx.report({ node, message: "open the file with a comment that says its one job" });
      }
    },
  };
}

export function noAny(ctx: Ctx): Visitor {
  return { TSAnyKeyword: (node) => ctx.report({ node, message: "write unknown, then parse it" }) };
}

/** `as const` alone asserts nothing. */
export function noAs(ctx: Ctx): Visitor {
  const message = "a cast asserts what nobody checked; parse the value";
  return {
    TSAsExpression(node) {
      if (!/\bas\s+const$/.test(ctx.sourceCode.getText(node))) ctx.report({ node, message });
    },
    TSTypeAssertion: (node) => ctx.report({ node, message }),
  };
}

export function noNonNull(ctx: Ctx): Visitor {
  return {
    TSNonNullExpression: (node) => ctx.report({ node, message: "handle the missing value" }),
  };
}

export function exportStar(ctx: Ctx): Visitor {
  return {
    ExportAllDeclaration: (node) => ctx.report({ node, message: "export names, not everything" }),
  };
}

export function defaultExport(ctx: Ctx): Visitor {
  return {
    ExportDefaultDeclaration: (node) => ctx.report({ node, message: "export a name" }),
  };
}

/** A class is for an error or for authority kept in #private state. */
export function classShape(ctx: Ctx): Visitor {
  const check = (node: Deno.lint.ClassDeclaration | Deno.lint.ClassExpression) => {
    if (node.superClass !== null) {
      const name = node.superClass.type === "Identifier" ? node.superClass.name : "";
      if (name !== "Error") ctx.report({ node, message: "a class extends Error or nothing" });
      return;
    }
    if (!/\n\s*(?:static\s+|readonly\s+)*#/.test(ctx.sourceCode.getText(node))) {
      ctx.report({ node, message: "use a function and a plain record" });
    }
  };
  return { ClassDeclaration: check, ClassExpression: check };
}

function isBoolean(parameter: Node): boolean {
  if (parameter.type === "AssignmentPattern") {
    return parameter.right.type === "Literal" && typeof parameter.right.value === "boolean";
  }
  return parameter.type === "Identifier" &&
    parameter.typeAnnotation?.typeAnnotation.type === "TSBooleanKeyword";
}

/** A bare true at a call says nothing; take a named option or two functions. */
export function booleanParameter(ctx: Ctx): Visitor {
  return {
    ExportNamedDeclaration(node) {
      if (node.declaration?.type !== "FunctionDeclaration") return;
      for (const parameter of node.declaration.params) {
        if (parameter.type === "TSParameterProperty" || !isBoolean(parameter)) continue;
        ctx.report({ node: parameter, message: "no boolean parameter in a public function" });
      }
    },
  };
}

/** Denial is the default branch, so there must be one. */
export function switchDefault(ctx: Ctx): Visitor {
  return {
    SwitchStatement(node) {
      if (!node.cases.some((one) => one.test === null)) {
        ctx.report({ node, message: "end the switch with a default branch" });
      }
    },
  };
}
