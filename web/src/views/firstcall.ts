import { get, type Model, type ModelPrices } from "../shared/api";
import { useAsked } from "../shared/use";

/** useFirstModel is the slug of a language model that may be called, for samples; of one with a price if there is one. */
export function useFirstModel(): string {
  const models = useAsked<{ models: Model[] }>("models", () => get("/gw/models"));
  const prices = useAsked<ModelPrices[]>("prices", () => get("/gw/prices"));
  const priced = new Set(prices.data?.filter((p) => p.prices.length > 0).map((p) => p.slug));
  const callable = models.data?.models.filter((m) => m.allowed && m.kind === "llm") ?? [];
  return (callable.find((m) => priced.has(m.slug)) ?? callable[0])?.slug ?? "author/model";
}

/** firstCall is a call to paste into a terminal. */
export function firstCall(base: string, model: string, key: string): string {
  return `curl ${base}/v1/chat/completions \\\n  -H "Authorization: Bearer ${key}" \\\n  -H "Content-Type: application/json" \\\n  -d '{"model":"${model}","messages":[{"role":"user","content":"Hello"}]}'`;
}
