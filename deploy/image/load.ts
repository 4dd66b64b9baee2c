// Puts a built image into Podman's store as the user who runs this, under the same configuration that
// brokerd uses, and drops the oldest of its images. Loading what is there already does nothing.
import { z } from "zod";
import { parseJson } from "../../shared/wire/codec.ts";
import { IMAGE_REPOSITORY } from "../../shared/tool/image_files.ts";
import {
  INTERRUPTED,
  podmanEnvironment,
  podmanFiles,
  REPAIR,
} from "../../shared/podman/podman_env.ts";

/** The image in use, and some before it for a house that has not been restarted yet. */
const KEPT_IMAGES = 4;

export interface LoadPlan {
  readonly image: string;
  readonly digest: string;
  readonly podman: string;
  readonly store: string;
  readonly run: string;
  /** What becomes of an image of this digest that is stored already; kept unless said. */
  readonly present?: "keep" | "replace";
}

/** Loads the image of folder `image`. Throws with Podman's own words when it cannot. */
export async function loadImage(plan: LoadPlan): Promise<"loaded" | "present"> {
  if (Deno.uid() === 0) throw new Error("Podman's store belongs to an ordinary user, not to root");
  const folders = { store: plan.store, run: plan.run };
  for (const folder of [plan.store, plan.run]) {
    await Deno.mkdir(folder, { recursive: true, mode: 0o700 });
  }
  for (const { path, text } of podmanFiles(folders)) await Deno.writeTextFile(path, text);
  const reference = `${IMAGE_REPOSITORY}@sha256:${plan.digest}`;
  let present = await podman(plan, ["image", "exists", reference]);
  if (INTERRUPTED.test(present.text)) {
    await podman(plan, REPAIR);
    present = await podman(plan, ["image", "exists", reference]);
  }
  if (present.code === 0 && plan.present !== "replace") return "present";
  if (present.code === 0) await podman(plan, ["rmi", "--force", reference]);
  const pulled = await podman(plan, ["load", "--quiet", `--input=${plan.image}/oci.tar`]);
  if (pulled.code !== 0) throw new Error(`Podman cannot load the image: ${pulled.text}`);
  const found = await podman(plan, ["image", "exists", reference]);
  if (found.code !== 0) {
    throw new Error(`Podman stored the image under another digest than ${plan.digest}`);
  }
  await dropOld(plan);
  return "loaded";
}

const StoredImages = z.array(z.object({
  id: z.string(),
  "names-history": z.array(z.string()).optional(),
}));

/**
 * Drops all but the newest images of the house, each of which takes 300 MB with its copies. The store
 * lists images in the order in which they came; one that a container uses stays.
 */
async function dropOld(plan: LoadPlan): Promise<void> {
  const list = await Deno.readTextFile(`${plan.store}/storage/overlay-images/images.json`);
  const value = parseJson(list);
  const images = StoredImages.safeParse(value.ok ? value.value : null);
  if (!images.success) return;
  const ours = images.data.filter((image) =>
    image["names-history"]?.some((name) => name.startsWith(`${IMAGE_REPOSITORY}:`))
  );
  for (const { id } of ours.slice(0, -KEPT_IMAGES)) await podman(plan, ["rmi", id]);
}

async function podman(plan: LoadPlan, args: readonly string[]) {
  const { code, stderr } = await new Deno.Command(plan.podman, {
    args: ["--log-level=error", ...args],
    clearEnv: true,
    env: podmanEnvironment({ store: plan.store, run: plan.run }),
    cwd: plan.store,
    stdin: "null",
    stdout: "null",
    stderr: "piped",
  }).output();
  return { code, text: new TextDecoder().decode(stderr).trim() };
}
