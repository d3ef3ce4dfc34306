import { useState } from "react";
import { get, portal, query, type Span, type StatsBucket } from "../shared/api";
import { count, duration, hourOfDay, integer, percent, shortDay, usd, usdAlike, usdShort } from "../shared/format";
import { Link, useFilter } from "../shared/route";
import { useAsked } from "../shared/use";
import { ChartCard, Spark, type Series } from "../ui/chart";
import { Badge, Bones, Button, Card, Choice, Code, Empty, Page, Segments, Text, Trouble } from "../ui/kit";
import { Download, Table, type Column } from "../ui/table";
import { useApp } from "./app";
import { NoScope } from "./gate";

const periods: [string, string][] = [["24h", "24 h"], ["7d", "7 days"], ["30d", "30 days"], ["90d", "90 days"]];
const hours: Record<string, number> = { "24h": 24, "7d": 7 * 24, "30d": 30 * 24, "90d": 90 * 24 };

const groups: [string, string][] = portal
  ? [["model_slug", "Model"], ["author", "Author"], ["key_id", "Key"]]
  : [["model_slug", "Model"], ["author", "Author"], ["provider", "Provider"], ["sub_account_id", "Customer"], ["key_id", "Key"], ["region", "Region"]];

type Metric = "spend" | "requests" | "tokens" | "errors" | "latency";

interface Filled extends Span {
  label: string;
  name: string;
}

/** fill puts the spans without calls back, so that time runs evenly. */
function fill(spans: Span[], period: string, now: number): { before: Filled[]; during: Filled[] } {
  const length = period === "24h" ? 3_600_000 : 86_400_000;
  const n = period === "24h" ? 24 : (hours[period] ?? 24) / 24;
  const last = Math.floor(now / length) * length;
  const found = new Map(spans.map((s) => [new Date(s.at).getTime(), s]));
  const all: Filled[] = [];
  for (let i = 2 * n - 1; i >= 0; i--) {
    const at = last - i * length;
    const date = new Date(at);
    const span = found.get(at) ?? { at: date.toISOString(), requests: 0, errors: 0, total_tokens: 0, total_cost_usd: 0, latency_ms: { mean: 0, p50: 0, p95: 0 } };
    const label = period === "24h" ? hourOfDay(date) : shortDay(date);
    all.push({ ...span, label, name: period === "24h" ? `${shortDay(date)}, ${hourOfDay(date)} UTC` : `${shortDay(date)} (UTC)` });
  }
  return { before: all.slice(0, n), during: all.slice(n) };
}

const sum = (spans: Span[], of: (s: Span) => number) => spans.reduce((total, s) => total + of(s), 0);
const worst = (spans: Span[]) => {
  const called = spans.filter((s) => s.requests > 0);
  return called.length ? sum(called, (s) => s.latency_ms.p95 * s.requests) / sum(called, (s) => s.requests) : 0;
};

interface Tile {
  metric: Metric;
  title: string;
  value: (s: Span[]) => number;
  show: (v: number) => string;
  each: (s: Span) => number;
  less?: boolean; // less is better
}

const tiles: Tile[] = [
  { metric: "spend", title: portal ? "Billed" : "Spend", value: (s) => sum(s, (x) => x.total_cost_usd), show: usd, each: (s) => s.total_cost_usd },
  { metric: "requests", title: "Requests", value: (s) => sum(s, (x) => x.requests), show: count, each: (s) => s.requests },
  { metric: "tokens", title: "Tokens", value: (s) => sum(s, (x) => x.total_tokens), show: count, each: (s) => s.total_tokens },
  { metric: "errors", title: "Error rate", value: (s) => sum(s, (x) => x.errors) / Math.max(1, sum(s, (x) => x.requests)), show: percent, each: (s) => s.errors / Math.max(1, s.requests), less: true },
  { metric: "latency", title: "Latency, p95", value: worst, show: duration, each: (s) => s.latency_ms.p95, less: true },
];

function chartOf(metric: Metric, spans: Filled[]): { kind: "bars" | "lines"; series: Series[]; format: (v: number) => string; axis: (v: number) => string } {
  switch (metric) {
    case "spend":
      return { kind: "bars", series: [{ name: portal ? "Billed" : "Spend", values: spans.map((s) => s.total_cost_usd) }], format: usd, axis: usdShort };
    case "requests":
      return { kind: "bars", series: [{ name: "Succeeded", values: spans.map((s) => s.requests - s.errors) }, { name: "Failed", values: spans.map((s) => s.errors) }], format: integer, axis: count };
    case "tokens":
      return { kind: "bars", series: [{ name: "Tokens", values: spans.map((s) => s.total_tokens) }], format: integer, axis: count };
    case "errors":
      return { kind: "lines", series: [{ name: "Error rate", values: spans.map((s) => s.errors / Math.max(1, s.requests)) }], format: percent, axis: percent };
    case "latency":
      return { kind: "lines", series: [{ name: "p95", values: spans.map((s) => s.latency_ms.p95) }, { name: "p50", values: spans.map((s) => s.latency_ms.p50) }, { name: "mean", values: spans.map((s) => s.latency_ms.mean) }], format: duration, axis: duration };
  }
}

export function Overview() {
  const app = useApp();
  const [period, setPeriod] = useFilter("period", "7d");
  const [metric, setMetric] = useFilter("metric", "spend");
  const now = Date.now();
  const readable = app.can("stats:read");
  const interval = period === "24h" ? "hour" : "day";
  const series = useAsked<Span[]>(readable ? "series:" + period : undefined, () => get(`/gw/series${query({ since: 2 * (hours[period] ?? 24) + "h", interval })}`));
  if (!readable) return <Page title="Overview"><NoScope scope="stats:read" what="usage and spend" /></Page>;
  const split = series.data && fill(series.data, period, now);
  const chosen = tiles.find((t) => t.metric === metric) ?? tiles[0]!;
  const unused = split && sum(split.during, (s) => s.requests) + sum(split.before, (s) => s.requests) === 0;
  return (
    <Page title="Overview" note={portal ? `What ${app.session.name} has used and what it is billed.` : undefined} actions={<Segments label="Period" value={period} options={periods} onChange={setPeriod} />}>
      {series.failure ? (
        <Trouble failure={series.failure} again={series.again} />
      ) : (
        <>
          <div className="tiles" role="group" aria-label="Figures of the period">
            {tiles.map((t) => (
              <Figure key={t.metric} tile={t} split={split} period={period} pressed={t === chosen} onPress={() => setMetric(t.metric)} />
            ))}
          </div>
          {unused && <FirstCall />}
          <ChartCard
            title={chosen.title} first={period === "24h" ? "Hour" : "Day"} file={`${chosen.metric}-${period}`} label={`${chosen.title} over the last ${periods.find(([v]) => v === period)?.[1] ?? period}`}
            empty="No calls in this period" ticks={split?.during.map((s) => s.label) ?? []} names={split?.during.map((s) => s.name) ?? []}
            {...(split ? chartOf(chosen.metric, split.during) : { kind: "bars" as const, series: undefined, format: String, axis: String })}
          />
        </>
      )}
      <Breakdown period={period} />
    </Page>
  );
}

function Figure({ tile, split, period, pressed, onPress }: { tile: Tile; split: { before: Filled[]; during: Filled[] } | undefined; period: string; pressed: boolean; onPress: () => void }) {
  const value = split && tile.value(split.during);
  const before = split && tile.value(split.before);
  const change = value !== undefined && before ? value / before - 1 : undefined;
  const tone = change === undefined || Math.abs(change) < 0.005 ? "plain" : tile.less ? (change < 0 ? "good" : "bad") : "plain";
  return (
    <button type="button" className="tile" aria-pressed={pressed} onClick={onPress}>
      <span className="note">{tile.title}</span>
      <span className="figure">{value === undefined ? <Bones height={24} width={90} /> : tile.show(value)}</span>
      <span className="note num">
        {change === undefined ? (
          split ? "no calls before" : <Bones height={14} width={120} />
        ) : (
          <span title={`Compared with the ${periods.find(([v]) => v === period)?.[1]} before`}><Badge tone={tone}>{change > 0 ? "+" : ""}{percent(change)}</Badge> vs. before</span>
        )}
      </span>
      {split ? <Spark values={split.during.map(tile.each)} /> : <span />}
    </button>
  );
}

function FirstCall() {
  const app = useApp();
  return (
    <Card title="Make the first call" note="Figures appear here within seconds of it.">
      <div className="stack">
        <Code label="A first call" text={`curl ${app.base}/v1/chat/completions \\\n  -H "Authorization: Bearer $GATEWAY_KEY" \\\n  -H "Content-Type: application/json" \\\n  -d '{"model":"<author/model>","messages":[{"role":"user","content":"Hello"}]}'`} />
        <div className="row">
          <Link to="/models" className="button">Browse models</Link>
          {app.can("keys:manage") && <Link to="/keys" className="button">Keys</Link>}
        </div>
      </div>
    </Card>
  );
}

/** Breakdown says where the period's spend went. */
function Breakdown({ period }: { period: string }) {
  const app = useApp();
  const [group, setGroup] = useFilter("group", "model_slug");
  const [own, setOwn] = useState("");
  const known = groups.some(([v]) => v === group);
  const stats = useAsked<StatsBucket[]>(`stats:${group}:${period}`, () => get(`/gw/stats${query({ group_by: group, since: hours[period] + "h" })}`));
  const total = stats.data?.reduce((t, b) => t + b.total_cost_usd, 0) ?? 0;
  const calls = stats.data?.reduce((t, b) => t + b.requests, 0) ?? 0;
  const money = usdAlike(stats.data?.map((b) => b.total_cost_usd) ?? []);
  const label = (key: string) => (key === "" ? "(none)" : group === "sub_account_id" ? (app.nameOf(key) ?? key) : key);
  const columns: Column<StatsBucket>[] = [
    {
      title: groups.find(([v]) => v === group)?.[1] ?? group,
      cell: (b) => (group === "sub_account_id" && b.key ? <Link to={"/customers/" + b.key} className="cut">{label(b.key)}</Link> : <span className={"cut" + (group === "key_id" ? " mono" : "")}>{label(b.key)}</span>),
      text: (b) => label(b.key),
    },
    { title: "Requests", end: true, hide: "narrow", cell: (b) => integer(b.requests), text: (b) => b.requests },
    { title: "Tokens", end: true, hide: "narrow", cell: (b) => count(b.total_tokens), text: (b) => b.total_tokens },
    { title: portal ? "Billed" : "Spend", end: true, cell: (b) => money(b.total_cost_usd), text: (b) => b.total_cost_usd },
    {
      title: "Share", hide: "narrow",
      cell: (b) => {
        const share = total > 0 ? b.total_cost_usd / total : calls > 0 ? b.requests / calls : 0;
        return <span className="row"><span className="share grow"><i style={{ width: `${share * 100}%` }} /></span><span className="note num">{percent(share)}</span></span>;
      },
    },
  ];
  return (
    <Card
      flush title="Breakdown"
      actions={
        <>
          <label className="note" htmlFor="group">By</label>
          <Choice id="group" value={known ? group : "*"} options={[...groups, ["*", "Attribution…"]]} onChange={(v) => setGroup(v === "*" ? own || "team" : v)} />
          <Download name={`breakdown-${group}-${period}`} columns={columns} rows={stats.data} />
        </>
      }
    >
      {!known && (
        <form className="filters" onSubmit={(e) => { e.preventDefault(); if (own.trim()) setGroup(own.trim()); }}>
          <div className="row" style={{ alignItems: "end" }}>
            <Text label="Attribution key" value={own} placeholder={group} onChange={setOwn} />
            <Button type="submit">Show</Button>
          </div>
        </form>
      )}
      <Table
        label="Breakdown" columns={columns} rows={stats.data} failure={stats.failure} again={stats.again} id={(b) => b.key} page={20} bones={5}
        empty={<Empty icon="overview" title="No calls in this period">Choose a longer period, or make a call.</Empty>}
      />
    </Card>
  );
}
