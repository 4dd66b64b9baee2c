// What the model server says of itself, looked at without ever waking or loading a model.
import { z } from "zod";
import { ok, type Result } from "../../shared/results/result.ts";
import { sha256Hex } from "../../shared/tool/digest.ts";
import { encodeUtf8 } from "../../shared/wire/codec.ts";
import type { Model } from "./model.ts";

const Props = z.object({
  build_info: z.string().nullish(),
  model_alias: z.string().nullish(),
  chat_template: z.string().nullish(),
  total_slots: z.int().min(0).nullish(),
  default_generation_settings: z.object({ n_ctx: z.int().min(0).nullish() }).nullish(),
}).transform((props) => ({
  build: props.build_info?.slice(0, 200) ?? null,
  model: props.model_alias?.slice(0, 200) ?? null,
  templateSha256: props.chat_template ? sha256Hex(encodeUtf8(props.chat_template)) : null,
  /** Whether the template asks for the date, which would change the prefix by itself. */
  printsDate: /strftime_now|date_string|datetime/.test(props.chat_template ?? ""),
  nCtx: props.default_generation_settings?.n_ctx ?? null,
  slots: props.total_slots ?? null,
}));
/** What the server does not tell is null. */
export type ModelFacts = z.output<typeof Props>;

const Models = z.object({
  data: z.array(z.object({
    id: z.string(),
    aliases: z.array(z.string()).nullish(),
    status: z.object({ value: z.string(), failed: z.boolean().nullish() }).nullish(),
  })),
});

/** A model that sleeps, or is in a state that is not known, is `unloaded`. */
export type ModelState = "loaded" | "loading" | "failed" | "unloaded";

/** `loaded` also for a server of one model, which has no other state. */
export async function modelState(
  model: Pick<Model, "look">,
  name: string,
): Promise<Result<ModelState>> {
  const seen = await model.look("/models");
  if (!seen.ok) return seen;
  const parsed = Models.safeParse(seen.value);
  if (!parsed.success) return ok("unloaded");
  const listed = parsed.data.data.filter((one) => one.status !== null && one.status !== undefined);
  if (listed.length === 0) return ok("loaded");
  const own = listed.find((one) => one.id === name || one.aliases?.includes(name));
  const status = own?.status;
  if (status?.value === "loaded" || status?.value === "loading") return ok(status.value);
  return ok(status?.failed ? "failed" : "unloaded");
}

const Slots = z.array(z.object({
  id: z.int(),
  is_processing: z.boolean(),
  n_prompt_tokens: z.int().nullish(),
}));

/** The server's slots; null when it does not tell, or holds no model: to look then would wake one. */
export async function slotsOf(model: Pick<Model, "look">, name: string) {
  const state = await modelState(model, name);
  if (!state.ok || state.value !== "loaded") return null;
  const query = new URLSearchParams({ model: name, autoload: "false" });
  const seen = await model.look(`/slots?${query}`);
  const parsed = Slots.safeParse(seen.ok ? seen.value : null);
  return parsed.success ? parsed.data : null;
}

/** The properties of the loaded model. */
export async function modelFacts(model: Model, name: string): Promise<Result<ModelFacts>> {
  const query = new URLSearchParams({ model: name, autoload: "false" });
  const seen = await model.look(`/props?${query}`);
  return seen.ok ? ok(Props.safeParse(seen.value).data ?? Props.parse({})) : seen;
}
