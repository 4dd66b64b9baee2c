// Measures how reliably the small real model calls a tool through call_tool, and whether each next
// request reuses exactly the tokens that the last one left behind. The prompt is the house's own:
// system text, starter memory, core tools, example exchanges.
//
//   deno run -A tests/bench/model_calls.ts [--port N] [--examples FILE] [--verbose]
//
// Without --port it starts its own server (see deploy/llama_server.sh). Exits 1 when a call is wrong.
import { startRealLlama } from "../doubles/real_llama.ts";
import { systemMessage } from "../../roles/loopd/baseline.ts";
import { toolsArray } from "../../roles/loopd/core_tools.ts";

type Call = { id: string; type: "function"; function: { name: string; arguments: string } };
type Message = { role: string; content: string; tool_calls?: Call[]; tool_call_id?: string };
type Timings = { cache_n: number; prompt_n: number; predicted_n: number };
type Answer = { message: Message; finish: string; timings: Timings; wallMs: number };

const TOOLS = toolsArray();

// Paths and contents that no example has.
const FILES: ReadonlyArray<readonly [path: string, content: string]> = [
  ["/srv/notes/plan.txt", "Meet Otto at noon by the river."],
  ["/srv/notes/shopping.md", "Eggs, flour and two lemons."],
  ["/home/owner/diary/monday.txt", "It rained all day and the cellar stayed dry."],
  ["/var/lib/boxmaker/share/readme.txt", "This folder belongs to the owner."],
  ["/data/projects/boat/keel.txt", "The keel is made of oak."],
  ["/tmp/x1.log", "Backup finished without errors."],
  ["/srv/recipes/soup.txt", "Boil the beans for forty minutes."],
  ["/opt/house/heating.cfg", "temperature = 19"],
  ["/home/owner/letters/2025-03-01.txt", "Dear Maria, thank you for the book."],
  ["/media/usb/photos/index.txt", "There are 48 photos of the harbour."],
  ["/srv/notes/phone.txt", "The plumber's number is 555 0148."],
  ["/home/owner/todo.txt", "Call the bank and water the plants."],
];

const CHAIN_LENGTH = 6;

// The two wordings that the examples use.
function question(path: string, at: number): Message {
  const content = at % 2 === 0
    ? `Read the file ${path} and tell me what it says.`
    : `What does this file say: ${path}`;
  return { role: "user", content };
}

async function ask(port: number, messages: readonly Message[]): Promise<Answer> {
  const startedAt = performance.now();
  const response = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
    method: "POST",
    body: JSON.stringify({
      model: "default",
      messages,
      tools: TOOLS,
      stream: true,
      stream_options: { include_usage: true },
      return_progress: true,
      cache_prompt: true,
      id_slot: 0,
      temperature: 0,
      max_tokens: 160,
    }),
  });
  if (!response.ok) throw new Error(await response.text());
  const answer: Answer = {
    message: { role: "assistant", content: "" },
    finish: "",
    timings: { cache_n: 0, prompt_n: 0, predicted_n: 0 },
    wallMs: 0,
  };
  for (const event of (await response.text()).split("\n\n")) {
    if (event.startsWith("data: {")) take(answer, JSON.parse(event.slice(6)));
  }
  answer.wallMs = performance.now() - startedAt;
  return answer;
}

type Chunk = {
  choices: ReadonlyArray<{
    finish_reason: string | null;
    delta: {
      content?: string | null;
      tool_calls?: ReadonlyArray<
        { index: number; id?: string; function: { name?: string; arguments: string } }
      >;
    };
  }>;
  timings?: Timings;
};

function take(answer: Answer, chunk: Chunk): void {
  if (chunk.timings) answer.timings = chunk.timings;
  const choice = chunk.choices[0];
  if (!choice) return;
  answer.finish = choice.finish_reason ?? answer.finish;
  answer.message.content += choice.delta.content ?? "";
  for (const part of choice.delta.tool_calls ?? []) {
    const calls = answer.message.tool_calls ??= [];
    const call = calls[part.index] ??= {
      id: part.id ?? "",
      type: "function",
      function: { name: part.function.name ?? "", arguments: "" },
    };
    call.function.arguments += part.function.arguments;
  }
}

/** Exactly one call, of call_tool, whose inner JSON is exactly read_file of this path. */
function isExactRead(answer: Answer, path: string): boolean {
  const calls = answer.message.tool_calls ?? [];
  const call = calls[0];
  if (calls.length !== 1 || !call || call.function.name !== "call_tool") return false;
  try {
    const outer = JSON.parse(call.function.arguments);
    const inner = JSON.parse(outer.arguments);
    return outer.name === "read_file" && inner.path === path &&
      Object.keys(inner).length === 1 && Object.keys(outer).length === 2;
  } catch {
    return false;
  }
}

function toolResult(answer: Answer, content: string): Message {
  return {
    role: "tool",
    tool_call_id: answer.message.tool_calls?.[0]?.id ?? "none",
    content: `Result of read_file (private):\n${content}\n`,
  };
}

/** Each question alone after the examples. Returns how many went wrong. */
async function measureFresh(
  port: number,
  start: readonly Message[],
  verbose: boolean,
): Promise<number> {
  let calls = 0, repeats = 0;
  for (const [at, [path, content]] of FILES.entries()) {
    const asked = [...start, question(path, at)];
    const call = await ask(port, asked);
    const exact = isExactRead(call, path);
    const answer = await ask(port, [...asked, call.message, toolResult(call, content)]);
    const repeated = !answer.message.tool_calls && answer.message.content.includes(content);
    calls += Number(exact);
    repeats += Number(repeated);
    if (verbose || !exact || !repeated) {
      console.log(path, JSON.stringify([call.message, answer.message, answer.finish]));
    }
    console.log(
      `${exact ? "exact " : "WRONG "} ${repeated ? "read back " : "NOT READ BACK "} ` +
        `prompt ${call.timings.cache_n + call.timings.prompt_n} tokens, ` +
        `turn ${Math.round(call.wallMs + answer.wallMs)} ms`,
    );
  }
  console.log(`fresh: calls ${calls}/${FILES.length}, read back ${repeats}/${FILES.length}`);
  return 2 * FILES.length - calls - repeats;
}

/** One conversation of several questions; prints reused against expected tokens per request. */
async function measureChain(port: number, start: readonly Message[]): Promise<number> {
  const messages = [...start];
  let expected: number | null = null;
  let wrong = 0;
  const step = async (): Promise<Answer> => {
    const answer = await ask(port, messages);
    const { cache_n, prompt_n, predicted_n } = answer.timings;
    const difference = expected === null ? 0 : cache_n - expected;
    if (difference !== 0) {
      wrong++;
      console.log(`  reuse off by ${difference}:`, JSON.stringify(messages.slice(-2)));
    }
    console.log(
      `  cache ${cache_n} (expected ${expected ?? "-"}), new ${prompt_n}, generated ` +
        `${predicted_n}, finish ${answer.finish}, ${Math.round(answer.wallMs)} ms`,
    );
    expected = cache_n + prompt_n + predicted_n - 1;
    messages.push(answer.message);
    return answer;
  };
  for (const [at, [path, content]] of FILES.slice(0, CHAIN_LENGTH).entries()) {
    messages.push(question(path, at));
    const call = await step();
    if (!isExactRead(call, path)) {
      wrong++;
      console.log(`  not the exact call: ${JSON.stringify(call.message)}`);
    }
    if (!call.message.tool_calls) continue;
    messages.push(toolResult(call, content));
    const answer = await step();
    if (!answer.message.content.includes(content)) {
      wrong++;
      console.log(`  not read back: ${JSON.stringify(answer.message)}`);
    }
  }
  console.log(`chain: ${wrong} deviations in ${messages.length - start.length} messages`);
  return wrong;
}

/** The starter memory as a new house shows it. */
function memoryBlock(soul: string): string {
  return `# soul.md\n${soul.trim()}\n\n# memory.md (0 of 2200)\n(empty)\n\n` +
    "# user.md (0 of 1375)\n(empty)";
}

function option(name: string): string | undefined {
  const at = Deno.args.indexOf(name);
  return at < 0 ? undefined : Deno.args[at + 1];
}

async function main(): Promise<void> {
  const given = option("--port");
  const server = given === undefined ? await startRealLlama() : null;
  const port = given === undefined ? server?.port : Number(given);
  if (port === undefined) {
    console.log("skipped: no real model server here: sh deploy/bootstrap.sh model");
    return;
  }
  const examples = option("--examples") ??
    decodeURIComponent(
      new URL("../../deploy/config/examples.smollm2.json", import.meta.url).pathname,
    );
  const soul = await Deno.readTextFile(new URL("../../memory/soul.md", import.meta.url));
  const start: Message[] = [
    { role: "system", content: systemMessage(memoryBlock(soul)) },
    ...JSON.parse(await Deno.readTextFile(examples)),
  ];
  try {
    const wrong = await measureFresh(port, start, Deno.args.includes("--verbose")) +
      await measureChain(port, start);
    if (wrong > 0) Deno.exitCode = 1;
  } finally {
    await server?.stop();
  }
}

if (import.meta.main) await main();
