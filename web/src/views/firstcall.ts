import { api, body, type Model, type ModelPrices } from "../shared/api";
import { useAsked } from "../shared/use";

/** Callable is a model and the path where it is called, "" for none under /v1. */
export interface Callable {
  slug: string;
  door: string;
}

export const chat = "/v1/chat/completions";
export const messages = "/v1/messages";
export const responses = "/v1/responses";

/** useFirstModel is a language model to show a call of: the one that is named, or one that may be called, if possible where clients of OpenAI's format call and at a known price. */
export function useFirstModel(named?: string): Callable {
  const models = useAsked<{ models: Model[] }>("models", () => body(api.GET("/gw/models")));
  const prices = useAsked<ModelPrices[]>("prices", () => body(api.GET("/gw/prices")));
  const by = new Map(prices.data?.map((p) => [p.slug, p]));
  if (named) return { slug: named, door: by.get(named)?.door ?? chat };
  const rank = (m: Model) => (by.get(m.slug)?.door === chat ? 2 : 0) + (by.get(m.slug)?.prices.length ? 1 : 0);
  const callable = models.data?.models.filter((m) => m.allowed && m.kind === "llm" && by.get(m.slug)?.door !== "") ?? [];
  const best = callable.sort((a, b) => rank(b) - rank(a))[0];
  return { slug: best?.slug ?? "author/model", door: by.get(best?.slug ?? "")?.door ?? chat };
}

/** bodies are what a call needs at least, by where it goes. */
const bodies: Record<string, (slug: string) => object> = {
  [chat]: (model) => ({ model, messages: [{ role: "user", content: "Hello" }] }),
  [messages]: (model) => ({ model, max_tokens: 256, messages: [{ role: "user", content: "Hello" }] }),
  [responses]: (model) => ({ model, input: "Hello" }),
  "/v1/completions": (model) => ({ model, prompt: "Hello" }),
  "/v1/embeddings": (model) => ({ model, input: "Hello" }),
  "/v1/images/generations": (model) => ({ model, prompt: "A kite over the sea" }),
  "/v1/videos": (model) => ({ model, prompt: "A kite over the sea" }),
  "/v1/reranks": (model) => ({ model, query: "kites", documents: ["a kite", "a stone"] }),
  "/v1/audio/speech": (model) => ({ model, input: "Hello", voice: "alloy" }),
};

// Of audio, one door speaks and another listens; which a model does, its name tells.
const listens = /whisper|transcri|speech-to-text|stt|asr/i;

/** firstCall is a call to paste into a terminal, "" where there is none under /v1. */
export function firstCall(base: string, m: Callable, key: string): string {
  const head = (path: string) => `curl ${base}${path} \\\n  -H "Authorization: Bearer ${key}" \\\n  `;
  if (m.door.startsWith("/v1/audio/") && (listens.test(m.slug) || !bodies[m.door])) return `${head("/v1/audio/transcriptions")}-F model=${m.slug} -F file=@speech.mp3`;
  if (m.door === "/v1/images/edits") return `${head(m.door)}-F model=${m.slug} -F prompt="A kite over the sea" -F image=@sea.png`;
  const body = bodies[m.door]?.(m.slug);
  return body ? `${head(m.door)}-H "Content-Type: application/json" \\\n  -d '${JSON.stringify(body)}'` : "";
}

/** spoken says whether the try-it panel can let an audio model speak. */
export function spoken(m: Callable): boolean {
  return m.door === "/v1/audio/speech" && !listens.test(m.slug);
}
