import { useEffect, useRef, useState } from "react";
import { api, body, Failure, failureOf, root, unreachable, type Model, type ModelPrices, type UsageRow } from "../shared/api";
import { duration, integer, usdExact } from "../shared/format";
import { refresh } from "../shared/use";
import { Button, Field, Trouble } from "../ui/kit";
import { useApp } from "./app";
import { chat, messages, responses, spoken } from "./firstcall";
import { NoScope } from "./gate";

/** Line is a model with its prices, and the path where it is called, "" for none under /v1. */
export type Line = Model & { prices: ModelPrices["prices"]; varies: boolean; door: string };

interface Result {
  text: string;
  image?: string;
  sound?: string;
}

const starts: Record<string, string> = { llm: "Say hello in three languages.", embedding: "A kite over the sea", image: "A kite over the sea", audio: "Hello from the gateway.", rerank: "kites" };

/** TryIt calls a model from the page: a real call, with real costs. */
export function TryIt({ model }: { model: Line }) {
  const app = useApp();
  const [prompt, setPrompt] = useState(starts[model.kind] ?? "");
  const [result, setResult] = useState<Result>();
  const [failure, setFailure] = useState<Failure>();
  const [id, setID] = useState("");
  const [booked, setBooked] = useState<UsageRow>();
  const [busy, setBusy] = useState<AbortController>();
  const [firstMS, setFirst] = useState<number>();
  const running = useRef<AbortController>(undefined);
  useEffect(() => () => running.current?.abort(), []);
  if (!app.can("inference:use")) return <NoScope scope="inference:use" what="models at work" />;
  if (!(model.kind in starts) || !model.door || (model.kind === "audio" && !spoken(model))) return <p className="note">This model is called from code.</p>;

  const run = async () => {
    const stop = new AbortController();
    running.current = stop;
    setBusy(stop);
    setResult({ text: "" });
    setFailure(undefined);
    setBooked(undefined);
    setFirst(undefined);
    setID("");
    const began = performance.now();
    try {
      let text = "";
      const answer = await ask(model, prompt, stop.signal, setID, (piece) => {
        if (!text) setFirst(performance.now() - began);
        text += piece;
        setResult({ text });
      });
      if (answer.result) setResult(answer.result);
      setBooked((await body(api.GET("/gw/usage", { params: { query: { id: answer.id } } })).catch((): UsageRow[] => []))[0]);
      refresh("series", "stats", "usage");
    } catch (error) {
      if (!stop.signal.aborted) setFailure(error instanceof Failure ? error : unreachable());
    } finally {
      setBusy(undefined);
    }
  };
  return (
    <div className="talk">
      <h3>Try it</h3>
      <form className="stack" onSubmit={(e) => { e.preventDefault(); if (!busy) void run(); }}>
        <Field label={model.kind === "rerank" ? "Query" : "Prompt"} note="A real call: it is booked and billed like any other.">
          {(ids) => <textarea {...ids} rows={2} value={prompt} onChange={(e) => setPrompt(e.target.value)} onKeyDown={(e) => { if (e.key === "Enter" && (e.metaKey || e.ctrlKey)) e.currentTarget.form?.requestSubmit(); }} />}
        </Field>
        <div className="row">
          {busy ? <Button icon="stop" onClick={() => busy.abort()}>Stop</Button> : <Button type="submit" look="primary" icon="play" disabled={!prompt.trim() || !model.allowed}>Run</Button>}
          <span className="note num" role="status">
            {busy && !firstMS && "Waiting for the model…"}
            {firstMS !== undefined && `First words after ${duration(firstMS)}`}
            {booked && ` · ${integer(booked.total_tokens)} tokens · ${usdExact(booked.cost_usd)} · ${duration(booked.latency_ms)}`}
          </span>
        </div>
      </form>
      {failure && <Trouble failure={failure} />}
      {result && !failure && (
        <div className="said" tabIndex={0} role="region" aria-label="Answer" aria-busy={!!busy}>
          {result.image ? <img src={result.image} alt={prompt} /> : result.sound ? <audio controls src={result.sound} /> : result.text}
        </div>
      )}
      {id && !failure && <p className="note">Request <code>{id}</code></p>}
    </div>
  );
}

async function post(path: string, body: unknown, signal: AbortSignal): Promise<Response> {
  const response = await fetch(root + path, {
    method: "POST", credentials: "same-origin", signal, body: JSON.stringify(body),
    headers: { "Content-Type": "application/json", "X-Gateway-Attribution": "source=dashboard" },
  });
  if (!response.ok) throw await failureOf(response);
  return response;
}

async function ask(model: Line, prompt: string, signal: AbortSignal, began: (id: string) => void, piece: (text: string) => void): Promise<{ id: string; result?: Result }> {
  const slug = model.slug;
  const send = async (path: string, body: unknown) => {
    const response = await post(path, body, signal);
    began(response.headers.get("X-Gateway-Request-Id") ?? "");
    return response;
  };
  const idOf = (r: Response) => r.headers.get("X-Gateway-Request-Id") ?? "";
  switch (model.kind) {
    case "llm": {
      const said = [{ role: "user", content: prompt }];
      const bodies: Record<string, object> = {
        [chat]: { messages: said }, [messages]: { messages: said, max_tokens: 1024 }, [responses]: { input: prompt }, "/v1/completions": { prompt },
      };
      const response = await send(model.door, { model: slug, ...bodies[model.door], stream: true });
      await stream(response, piece);
      return { id: idOf(response) };
    }
    case "embedding": {
      const response = await send("/v1/embeddings", { model: slug, input: prompt });
      const body = (await response.json()) as { data: { embedding: number[] }[] };
      const vector = body.data[0]?.embedding ?? [];
      const shown = Array.isArray(vector) ? `${vector.length} dimensions\n[${vector.slice(0, 8).map((v) => v.toFixed(4)).join(", ")}${vector.length > 8 ? ", …" : ""}]` : String(vector);
      return { id: idOf(response), result: { text: shown } };
    }
    case "image": {
      const response = await send("/v1/images/generations", { model: slug, prompt });
      const body = (await response.json()) as { data: { b64_json?: string; url?: string }[] };
      const picture = body.data[0];
      return { id: idOf(response), result: picture?.b64_json ? { text: "", image: "data:image/png;base64," + picture.b64_json } : { text: picture?.url ?? "No picture came back." } };
    }
    case "audio": {
      const response = await send("/v1/audio/speech", { model: slug, input: prompt, voice: "alloy" });
      return { id: idOf(response), result: { text: "", sound: URL.createObjectURL(await response.blob()) } };
    }
    default: {
      const response = await send("/v1/reranks", { model: slug, query: prompt, documents: ["a kite over the sea", "a stone in the field", "how to fly a kite"] });
      return { id: idOf(response), result: { text: JSON.stringify(await response.json(), null, 2) } };
    }
  }
}

/** stream reads the events of any of the formats and hands out the words in them. */
async function stream(response: Response, piece: (text: string) => void): Promise<void> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  if (!reader) return;
  let waiting = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (waiting + value).split("\n");
    waiting = lines.pop() ?? "";
    for (const line of lines) {
      if (!line.startsWith("data:")) continue;
      const text = line.slice(5).trim();
      if (text === "[DONE]") return;
      const event = JSON.parse(text) as { type?: string; choices?: { delta?: { content?: string }; text?: string }[]; delta?: string | { text?: string }; error?: { message?: string } };
      if (event.error) throw new Failure(200, "provider", event.error.message ?? "The provider broke off.", response.headers.get("X-Gateway-Request-Id") ?? "");
      const words = wordsOf(event);
      if (words) piece(words);
    }
  }
}

function wordsOf(e: { type?: string; choices?: { delta?: { content?: string }; text?: string }[]; delta?: string | { text?: string } }): string | undefined {
  if (typeof e.delta === "string") return e.type === "response.output_text.delta" ? e.delta : undefined;
  return e.choices?.[0]?.delta?.content ?? e.choices?.[0]?.text ?? e.delta?.text;
}
