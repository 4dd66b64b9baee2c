// What `http_fetch` says about itself: one page, read. Data only; the model sees name, description and parameters.
import { count, manifestOf, text } from "../../shared/tool/define.ts";

export const manifest = manifestOf({
  name: "http_fetch",
  description:
    "Gets a web page by GET and returns it as text: HTML as readable text with its links, other text as it is.",
  properties: {
    url: text("The whole address, https://name/path", 8_192),
    max_bytes: count("Bytes of text to return at most; 65536 when left out", 1, 1_000_000),
  },
  required: ["url"],
  effect: "outside",
  network: true,
  limits: { timeout_s: 60 },
  summarise: true,
});
