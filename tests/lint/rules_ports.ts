// Rules on what product code may reach for directly: the runtime, the disk, time, chance, text codecs.
type Ctx = Deno.lint.RuleContext;
type Node = Deno.lint.Node;
type Visitor = Deno.lint.LintVisitor;

/** Reports a use of one of `names` as an object or a constructor. */
function usesOf(ctx: Ctx, names: readonly string[], message: string): Visitor {
  const check = (owner: Node, node: Node) => {
    if (owner.type === "Identifier" && names.includes(owner.name)) ctx.report({ node, message });
    if (owner.type === "MemberExpression") {
      const text = ctx.sourceCode.getText(owner);
      if (names.some((name) => text === `globalThis.${name}` || text === `self.${name}`)) {
        ctx.report({ node, message });
      }
    }
  };
  return {
    MemberExpression: (node) => check(node.object, node),
    NewExpression: (node) => check(node.callee, node),
    CallExpression: (node) => check(node.callee, node),
  };
}

export function codecOnly(ctx: Ctx): Visitor {
  const message = "bytes become values in shared/wire/codec.ts alone";
  const decoders = usesOf(ctx, ["TextDecoder", "TextDecoderStream"], message);
  return {
    ...decoders,
    MemberExpression(node) {
      decoders.MemberExpression?.(node);
      if (/^(?:globalThis\.)?JSON(?:\.parse|\[)/.test(ctx.sourceCode.getText(node))) {
        ctx.report({ node, message });
      }
    },
  };
}

export function denoPort(ctx: Ctx): Visitor {
  return {
    ...usesOf(ctx, ["Deno"], "Deno is used in main.ts and the listed ports alone"),
    VariableDeclarator(node) {
      if (node.init?.type === "Identifier" && node.init.name === "Deno") {
        ctx.report({ node, message: "Deno is used in main.ts and the listed ports alone" });
      }
    },
  };
}

/** Arguments, environment and exit belong to main.ts, whatever else is a port. */
export function mainOnly(ctx: Ctx): Visitor {
  return {
    MemberExpression(node) {
      if (/^Deno\.(?:env|args|exit)$/.test(ctx.sourceCode.getText(node))) {
        ctx.report({ node, message: "arguments, environment and exit belong to main.ts" });
      }
    },
  };
}

export function noConsole(ctx: Ctx): Visitor {
  return usesOf(ctx, ["console"], "write through the role's log or output port");
}

/** Stores that need no permission and are shared by every script with the same cache folder. */
export function noStorage(ctx: Ctx): Visitor {
  return usesOf(ctx, ["localStorage", "sessionStorage", "caches"], "no permission guards this");
}

export function abstractSocket(ctx: Ctx): Visitor {
  return {
    Property(node) {
      const key = ctx.sourceCode.getText(node.key);
      if (!/^"?(?:path|socketPath)"?$/.test(key)) return;
      if (/^["'`]\\(?:0|x00|u0000|u\{0+\})/.test(ctx.sourceCode.getText(node.value))) {
        ctx.report({ node, message: "abstract sockets have no file and so no owner" });
      }
    },
  };
}

const TIME = /^(?:Date\.now|performance\.now|Math\.random|crypto\.(?:randomUUID|getRandomValues))$/;

export function timeAndChance(ctx: Ctx): Visitor {
  const message = "take the clock or random port";
  return {
    MemberExpression(node) {
      if (TIME.test(ctx.sourceCode.getText(node))) ctx.report({ node, message });
    },
    NewExpression(node) {
      if (/^new Date(?:\(\))?$/.test(ctx.sourceCode.getText(node))) ctx.report({ node, message });
    },
  };
}

/** State at module level outlives every caller and hides from every test. */
export function moduleState(ctx: Ctx): Visitor {
  return {
    Program(node) {
      for (const statement of node.body) {
        const declared = statement.type === "ExportNamedDeclaration"
          ? statement.declaration
          : statement;
        if (declared?.type === "VariableDeclaration" && declared.kind !== "const") {
          ctx.report({ node: declared, message: "no mutable state at module level" });
        }
      }
    },
  };
}
