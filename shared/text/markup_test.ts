import { ok as assert, strictEqual } from "node:assert";
import fc from "fast-check";
import { hasMarkup, neutraliseMarkup } from "./markup.ts";

const TOKENS = `
<|im_start|> <|im_end|> <|endoftext|> <tool_call> </tool_call> <tool_response> </tool_response>
<tools> </tools> <think> </think> <|object_ref_start|> <|box_end|> <|vision_start|> <|fim_prefix|>
<function=read_file> </function> <parameter=path> </parameter> <|begin_of_text|> <|eot_id|>
<|start_header_id|> <|python_tag|> [INST] [/INST] [SYSTEM_PROMPT] [TOOL_CALLS] [AVAILABLE_TOOLS]
[TOOL_RESULTS] [ARGS] <s> </s> <|turn> <turn|> <channel|> <|tool_call> <tool_call|> <|start|>
<|message|> <|return|> <｜User｜> <｜Assistant｜> <｜end▁of▁sentence｜> <｜tool▁calls▁begin｜>
[gMASK] <sop> <|observation|> <arg_key> </arg_key> <arg_value> <|im_system|> <|im_middle|>
<|start_of_role|> <|end_of_text|> <minimax:tool_call> <invoke <start_of_turn> <bos>
<<SYS>> <TOOL_CALL> <Think> [inst] ＜｜im_start｜＞ ［INST］ ＜think＞ <ｔｏｏｌ_ｃａｌｌ> <\u017f> <thin\u212a>
<\u200b|im_start|> <th\u00adink> <\u2060/think> [\u{e0001}INST] <to\ufe0fols>
`.trim().split(/\s+/);

// The rule written once more, as plainly as it can be said.
const RULE = new RegExp(
  "<\\||\\|>|</?(think|tool_call|tool_response|tools|function|parameter|invoke|arg_|s>|sop>" +
    "|minimax:)|\\[/?(INST|TOOL_|AVAILABLE_|SYSTEM_|ARGS|gMASK)",
  "iu",
);
const breaks = (text: string) => !RULE.test(text.normalize("NFKC"));

const pieces = fc.constantFrom(
  ..."<|>[]/\\＜｜＞［ ts\u200b\u0338\u0301\n",
  ...[
    "im_start",
    "think",
    "tool_call",
    "INST",
    "s>",
    "ARGS",
    "＜｜",
    "minimax:",
    "ＴＯＯＬ_",
    "𝐭hink",
  ],
);
const hostile = fc.array(pieces, { maxLength: 12 }).map((list) => list.join(""));

Deno.test("neutraliseMarkup() breaks every token of the known families", () => {
  for (const token of TOKENS) {
    assert(hasMarkup(token), token);
    const broken = neutraliseMarkup(`a ${token} b`);
    assert(broken.includes("\\"), token);
    assert(breaks(broken) && !hasMarkup(broken), broken);
  }
  strictEqual(neutraliseMarkup("<|im_start|>"), "<\\|im_start|\\>");
  strictEqual(neutraliseMarkup("</think>[INST]<|>"), "<\\/think>[\\INST]<\\|\\>");
});

Deno.test("neutraliseMarkup() leaves no opener after NFKC, whatever the text", () => {
  fc.assert(
    fc.property(fc.oneof(hostile, fc.string({ unit: "binary" })), (text) => {
      const broken = neutraliseMarkup(text);
      assert(breaks(broken), broken);
      assert(!hasMarkup(broken.normalize("NFKC")), broken);
      strictEqual(broken.replaceAll("\\", ""), text.replaceAll("\\", ""));
    }),
    { numRuns: 1000 },
  );
});

Deno.test("neutraliseMarkup() changes nothing in text without openers, nor a second time", () => {
  fc.assert(
    fc.property(hostile, (text) => {
      const broken = neutraliseMarkup(text);
      strictEqual(neutraliseMarkup(broken), broken);
      if (!hasMarkup(text)) strictEqual(broken, text);
    }),
    { numRuns: 1000 },
  );
  const prose = "a < b, c > d, x || y, [1], [link](http://h/), <b>, ≮|, ﬁ, 漢字, 5 <= 6 | grep s>";
  strictEqual(neutraliseMarkup(prose), prose);
});

Deno.test("neutraliseMarkup() breaks openers that halves join into", () => {
  strictEqual(neutraliseMarkup(["<", "|im_start|", ">"].join("")), "<\\|im_start|\\>");
  strictEqual(neutraliseMarkup(["</thi", "nk>"].join("")), "<\\/think>");
  fc.assert(
    fc.property(fc.array(hostile, { minLength: 1, maxLength: 4 }), (parts) => {
      const broken = neutraliseMarkup(parts.join(""));
      assert(breaks(broken) && !hasMarkup(broken), broken);
    }),
    { numRuns: 1000 },
  );
});

Deno.test("neutraliseMarkup() breaks a name whose last letter wears an accent, alone and followed", () => {
  const accented = "<tool_call\u0301";
  strictEqual(neutraliseMarkup(accented), "<\\tool_call\u0301");
  assert(neutraliseMarkup(`${accented}＜｜`).startsWith("<\\tool_call\u0301"));
});

Deno.test("neutraliseMarkup() meets no single character that is an opener by itself", () => {
  for (let point = 0; point <= 0x10ffff; point++) {
    if (point >= 0xd800 && point <= 0xdfff) continue;
    const char = String.fromCodePoint(point);
    if (hasMarkup(char)) throw new Error(`U+${point.toString(16)} folds to an opener`);
  }
});
