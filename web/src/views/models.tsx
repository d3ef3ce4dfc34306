import { useState } from "react";
import { api, body, portal, type Model, type ModelPrices } from "../shared/api";
import { integer, unitName, unitPrice, usdExact } from "../shared/format";
import { go, useFilter } from "../shared/route";
import { useAsked } from "../shared/use";
import { Icon } from "../ui/icons";
import { Badge, Button, Card, Check, Choice, Code, Copy, Dialog, Empty, Page } from "../ui/kit";
import { Download, Table, type Column } from "../ui/table";
import { useApp } from "./app";
import { firstCall } from "./firstcall";
import { TryIt, type Line } from "./tryit";

/** first is the price that is compared first: of input and output, or of the piece. */
function rate(m: Line, ...units: string[]) {
  return m.prices.find((p) => units.includes(p.unit));
}

const columns: Column<Line>[] = [
  { title: "Model", cell: (m) => <span className="two"><span className="cut">{m.display_name || m.slug}</span><small className="mono cut">{m.slug}</small></span>, text: (m) => m.slug },
  { title: "Kind", hide: "narrow", tight: true, cell: (m) => <Badge>{m.kind}</Badge>, text: (m) => m.kind },
  { title: "Context", end: true, hide: "middle", cell: (m) => (m.context_length ? integer(m.context_length) : <span className="note">–</span>), text: (m) => m.context_length },
  { title: "Input / 1M", end: true, hide: "narrow", cell: (m) => one(rate(m, "input")), text: (m) => rate(m, "input")?.usd },
  { title: "Output / 1M", end: true, hide: "narrow", cell: (m) => one(rate(m, "output")), text: (m) => rate(m, "output")?.usd },
  { title: "Other", hide: "middle", cell: (m) => { const p = m.prices.find((x) => !["input", "output", "cached_input", "cache_write", "cache_write_1h"].includes(x.unit)); return p ? unitPrice(p) : <span className="note">–</span>; }, text: (m) => m.prices.filter((p) => !["input", "output"].includes(p.unit)).map((p) => `${p.unit} ${p.usd}/${p.per}`).join("; ") },
  { title: "Allowed", tight: true, cell: (m) => (m.allowed ? <Badge tone="good">allowed</Badge> : <Badge>not allowed</Badge>), text: (m) => String(m.allowed) },
];

function one(p: { usd: number } | undefined) {
  return p ? usdExact(p.usd) : <span className="note">–</span>;
}

export function Models() {
  const models = useAsked<{ models: Model[] }>("models", () => body(api.GET("/gw/models")));
  const prices = useAsked<ModelPrices[]>("prices", () => body(api.GET("/gw/prices")));
  const [kind, setKind] = useFilter("kind");
  const [only, setOnly] = useFilter("allowed", "1");
  const [open, setOpen] = useFilter("model");
  const [text, setText] = useState("");
  const by = new Map(prices.data?.map((p) => [p.slug, p]));
  const complete = prices.data || prices.failure; // both at once: rows do not jump
  const all = (complete ? models.data : undefined)?.models.map((m): Line => ({ ...m, prices: by.get(m.slug)?.prices ?? [], varies: by.get(m.slug)?.varies ?? false, door: by.get(m.slug)?.door ?? "" }));
  const want = text.trim().toLowerCase();
  const rows = all?.filter((m) => (!kind || m.kind === kind) && (only !== "1" || m.allowed) && (!want || m.slug.toLowerCase().includes(want) || m.display_name.toLowerCase().includes(want)));
  const kinds = [...new Set(all?.map((m) => m.kind))].sort();
  const chosen = all?.find((m) => m.slug === open);
  return (
    <Page title="Models" note={portal ? "What you can call, at the prices you are billed." : "The catalog, with what each model costs on the route that it has first."} actions={<Download name="models" columns={columns} rows={rows} />}>
      <Card flush>
        <div className="filters">
          <span className="find"><Icon name="search" /><input aria-label="Find a model" placeholder="Find a model" value={text} onChange={(e) => setText(e.target.value)} /></span>
          <Choice aria-label="Kind" value={kind} onChange={setKind} options={[["", "Any kind"], ...kinds.map((k) => [k, k] as [string, string])]} />
          <Check label="Allowed only" checked={only === "1"} onChange={(on) => setOnly(on ? "1" : "0")} />
        </div>
        <Table
          label="Models" columns={[...columns, { title: "Details", quiet: true, tight: true, cell: (m) => <Button look="quiet" icon="right" aria-label={`Details of ${m.slug}`} onClick={() => setOpen(m.slug)} /> }]}
          rows={rows} failure={models.failure ?? prices.failure} again={models.failure ? models.again : prices.again} id={(m) => m.slug} bones={10} page={50} onOpen={(m) => setOpen(m.slug)}
          empty={<Empty icon="models" title={all?.length ? "No model matches" : "The catalog is empty"} action={!!all?.length && <Button onClick={() => { setText(""); go("/models?allowed=0", "replace"); }}>Clear filters</Button>}>{all?.length ? "Try another name or kind, or show those that are not allowed too." : "The operator adds models to the configuration of the gateway."}</Empty>}
        />
      </Card>
      {chosen && <Details model={chosen} onClose={() => setOpen("")} />}
    </Page>
  );
}

function Details({ model: m, onClose }: { model: Line; onClose: () => void }) {
  const app = useApp();
  return (
    <Dialog wide title={m.display_name || m.slug} onClose={onClose}>
      <div className="stack">
        <div className="row"><code>{m.slug}</code><Copy text={m.slug} label="" look="quiet" /><Badge>{m.kind}</Badge>{m.allowed ? <Badge tone="good">allowed</Badge> : <Badge>not allowed</Badge>}</div>
        <div className="halves">
          <div className="stack">
            <h3>Prices</h3>
            {m.prices.length ? (
              <dl className="facts">{m.prices.map((p) => [<dt key={p.unit}>{unitName(p.unit)}</dt>, <dd key={p.unit + "="}>{unitPrice(p)}</dd>])}</dl>
            ) : (
              <p className="note">No price is known. Calls are recorded at no cost, and refused where a budget applies.</p>
            )}
            {m.varies && <p className="note">Calls can cost more or less: by the length of the prompt, the time of day, or what the reply says it was.</p>}
            {m.context_length && <p className="note">Context: {integer(m.context_length)} tokens</p>}
          </div>
          <div className="stack">
            <h3>Call it</h3>
            {m.door ? <Code label={`A call of ${m.slug}`} text={firstCall(app.base, m, "$GATEWAY_KEY")} /> : <p className="note">Not served under <code>/v1</code>: it is called on the paths of its provider.</p>}
          </div>
        </div>
        {!portal && <TryIt model={m} />}
      </div>
    </Dialog>
  );
}
