// A model server double in a process of its own, so that its work and a client's do not wait for each
// other. It answers a message of the form `PACE COUNT` with so many words, each due PACE milliseconds
// after the one before it by the clock, so that a busy machine delays a word but not all that
// follow; 0 is as fast as it can. It prints its port, and before each answer the milliseconds that
// it took from the request's arrival until it had the first word.
import { startLlamaDouble } from "../doubles/llama/double.ts";
import { call, say, type Script, speak, waitFor } from "../doubles/llama/turn.ts";

const script: Script = (request) => {
  const last = request.messages.at(-1);
  if (last?.content.includes("Call the tool clock")) return speak(call("clock", {}));
  const [, pace, count] = /^(\d+) (\d+)$/.exec(last?.content ?? "") ?? [];
  if (count === undefined) return speak(say("It is noon."));
  const words = Array.from({ length: Number(count) }, (_, i) => ` word${i % 1_000}`);
  if (pace === "0") return speak(say(words));
  const due = (i: number) => new Promise((resolve) => setTimeout(resolve, i * Number(pace)));
  return speak(...words.flatMap((word, i) => [waitFor(due(i)), say([word])]));
};

async function serve(): Promise<void> {
  const double = await startLlamaDouble({
    nCtx: 4_000_000,
    template: "qwen2.5",
    script: async (request, state) => {
      const answer = await script(request, state);
      const asked = double.record.findLast((one) => one.path.includes("/chat/completions"));
      console.log(performance.now() - (asked?.arrivedMs ?? 0));
      return answer;
    },
  });
  console.log(double.port);
}

/** The double as a child process. */
export async function startModelProcess() {
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", decodeURIComponent(new URL(import.meta.url).pathname)],
    stdin: "null",
    stdout: "piped",
  }).spawn();
  const lines = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  let seen = "";
  const next = async (): Promise<number> => {
    while (!seen.includes("\n")) {
      const { value, done } = await lines.read();
      if (done) throw new Error("The model server's double has ended");
      seen += value;
    }
    const [line = "", ...rest] = seen.split("\n");
    seen = rest.join("\n");
    return Number(line);
  };
  const url = `http://127.0.0.1:${await next()}`;
  return {
    url,
    /** What the server took for the next answer that was not asked about yet. */
    ownMs: next,
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await lines.cancel();
      await child.status;
    },
  };
}

if (import.meta.main) await serve();
