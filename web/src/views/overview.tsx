import { api, body, portal, type Span, type StatsBucket } from "../shared/api";
import { count, duration, hourOfDay, integer, percent, shortDay, usd, usdShort } from "../shared/format";
import { beganOf, hoursOf, lengthOf, withinOf } from "../shared/period";
import { Link, useFilter } from "../shared/route";
import { useAsked } from "../shared/use";
import { callsAt, groupFilter, type Filters } from "../shared/window";
import { ChartCard, Spark, type Series } from "../ui/chart";
import { Icon } from "../ui/icons";
import { Badge, Bones, Card, Code, Page, Segments, Trouble } from "../ui/kit";
import { useApp } from "./app";
import { Breakdown } from "./breakdown";
import { firstCall, useFirstModel } from "./firstcall";
import { NoScope, seesKeys } from "./gate";
import { GroupSwitch, useGroup, type Group } from "./group";

const periods: [string, string][] = [["24h", "24 h"], ["7d", "7 days"], ["30d", "30 days"], ["90d", "90 days"]];

type Metric = "spend" | "requests" | "tokens" | "errors" | "latency";

interface Filled extends Span {
  label: string;
  name: string;
}

/** fill puts the spans without calls back, so that time runs evenly. */
function fill(spans: Span[], period: string, now: number): { before: Filled[]; during: Filled[] } {
  const [length, n] = lengthOf(period);
  const last = Math.floor(now / length) * length;
  const found = new Map(spans.map((s) => [new Date(s.at).getTime(), s]));
  const all: Filled[] = [];
  for (let i = 2 * n - 1; i >= 0; i--) {
    const at = last - i * length;
    const date = new Date(at);
    const span = found.get(at) ?? { at: date.toISOString(), requests: 0, errors: 0, total_tokens: 0, total_cost_usd: 0, latency_ms: { mean: 0, p50: 0, p95: 0, counts: {} } };
    const label = period === "24h" ? hourOfDay(date) : shortDay(date);
    all.push({ ...span, label, name: period === "24h" ? `${shortDay(date)}, ${hourOfDay(date)} UTC` : `${shortDay(date)} (UTC)` });
  }
  return { before: all.slice(0, n), during: all.slice(n) };
}

const sum = (spans: Span[], of: (s: Span) => number) => spans.reduce((total, s) => total + of(s), 0);

/** slowest is what 95 of 100 calls of all the spans took at most. */
function slowest(spans: Span[]): number {
  const counts = new Map<number, number>();
  for (const s of spans) for (const [about, n] of Object.entries(s.latency_ms.counts)) counts.set(Number(about), (counts.get(Number(about)) ?? 0) + n);
  let rank = Math.ceil(0.95 * sum(spans, (s) => s.requests));
  for (const [about, n] of [...counts].sort(([a], [b]) => a - b)) if ((rank -= n) <= 0) return about;
  return 0;
}

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
  { metric: "latency", title: "Latency, p95", value: slowest, show: duration, each: (s) => s.latency_ms.p95, less: true },
];

interface Drawn {
  kind: "bars" | "lines";
  series: Series[] | undefined;
  format: (v: number) => string;
  axis: (v: number) => string;
  /** The filter for the calls of each series; one without has none. */
  filters?: (Filters | undefined)[];
}

/** chartOf draws a metric of all calls. */
function chartOf(metric: Metric, spans: Filled[]): Drawn {
  switch (metric) {
    case "spend":
      return { kind: "bars", series: [{ name: portal ? "Billed" : "Spend", values: spans.map((s) => s.total_cost_usd) }], format: usd, axis: usdShort };
    case "requests":
      return { kind: "bars", series: [{ name: "Succeeded", values: spans.map((s) => s.requests - s.errors) }, { name: "Failed", values: spans.map((s) => s.errors), color: 4 }], format: integer, axis: count, filters: [{ status: "ok" }, { status: "failed" }] };
    case "tokens":
      return { kind: "bars", series: [{ name: "Tokens", values: spans.map((s) => s.total_tokens) }], format: integer, axis: count };
    case "errors":
      return { kind: "lines", series: [{ name: "Error rate", values: spans.map((s) => s.errors / Math.max(1, s.requests)) }], format: percent, axis: percent, filters: [{ status: "failed" }] };
    case "latency":
      return { kind: "lines", series: [{ name: "p95", values: spans.map((s) => s.latency_ms.p95) }, { name: "p50", values: spans.map((s) => s.latency_ms.p50) }, { name: "mean", values: spans.map((s) => s.latency_ms.mean) }], format: duration, axis: duration };
  }
}

const rest = "All others";

/** stackOf draws a metric by group: the largest below, what is left on top. */
function stackOf(metric: Metric, spans: Filled[], grouped: Span[] | undefined, { by, label }: Group): Drawn {
  const drawn = chartOf(metric, spans);
  if (!grouped) return { ...drawn, series: undefined };
  const of = (b: StatsBucket) => (metric === "spend" ? b.total_cost_usd : metric === "requests" ? b.requests : b.total_tokens);
  const totals = new Map<string, number>();
  const found = new Map(grouped.map((s) => [new Date(s.at).getTime(), new Map(s.groups?.map((b) => [b.key, of(b)]))]));
  for (const groups of found.values()) for (const [key, value] of groups) totals.set(key, (totals.get(key) ?? 0) + value);
  const keys = [...totals.keys()].sort((a, b) => totals.get(b)! - totals.get(a)! || a.localeCompare(b));
  const valueAt = (s: Filled, key: string) => found.get(new Date(s.at).getTime())?.get(key) ?? 0;
  const series: Series[] = keys.map((key) => ({ name: label(key), values: spans.map((s) => valueAt(s, key)) }));
  const all = tiles.find((t) => t.metric === metric)!.each;
  const left = spans.map((s) => all(s) - keys.reduce((total, key) => total + valueAt(s, key), 0)).map((v, i) => (v > 1e-6 * all(spans[i]!) ? v : 0));
  if (left.some((v) => v > 0)) series.push({ name: rest, values: left, color: 7 });
  return { ...drawn, series, filters: keys.map((key) => groupFilter(by, key)) };
}

export function Overview() {
  const app = useApp();
  const [period, setPeriod] = useFilter("period", "7d");
  const [metric, setMetric] = useFilter("metric", "spend");
  const group = useGroup();
  const now = Date.now();
  const readable = app.can("stats:read");
  const interval = period === "24h" ? "hour" : "day";
  const series = useAsked<Span[]>(readable ? "series:" + period : undefined, () => body(api.GET("/gw/series", { params: { query: { since: 2 * hoursOf(period) + "h", interval } } })));
  if (!readable) return <Page title="Overview"><NoScope scope="stats:read" what="usage and spend" /></Page>;
  const split = series.data && fill(series.data, period, now);
  const chosen = tiles.find((t) => t.metric === metric) ?? tiles[0]!;
  const unused = split && sum(split.during, (s) => s.requests) + sum(split.before, (s) => s.requests) === 0;
  return (
    <Page
      title="Overview" note={portal ? `What ${app.session.name} has used and what it is billed.` : undefined}
      actions={<><GroupSwitch group={group} /><Segments label="Period" value={period} options={periods} onChange={setPeriod} /></>}
    >
      {app.session.balance_usd !== undefined && <Balance left={app.session.balance_usd} />}
      {series.failure ? (
        <Trouble failure={series.failure} again={series.again} />
      ) : (
        <>
          <div className="tiles" role="group" aria-label="Figures of the period">
            {tiles.map((t) => (
              <Figure key={t.metric} tile={t} split={split} period={period} pressed={t === chosen} onPress={() => setMetric(t.metric)} />
            ))}
          </div>
          {unused ? <FirstCall /> : <OverTime tile={chosen} spans={split?.during} period={period} interval={interval} group={group} />}
        </>
      )}
      {!unused && <Breakdown period={period} since={beganOf(period, now)} group={group} />}
    </Page>
  );
}

/** Balance is what an organization that pays in advance has left. */
function Balance({ left }: { left: number }) {
  return (
    <div className={"hint" + (left > 0 ? "" : " warn")}>
      <Icon name="billing" />
      <div>{left > 0 ? <>Balance: <b className="num">{usd(left)}</b>.</> : <>Your balance is used up (<b className="num">{usd(left)}</b>): calls are refused.</>} <Link to="/billing">Top up</Link></div>
    </div>
  );
}

interface OverTimeProps {
  tile: Tile;
  spans: Filled[] | undefined;
  period: string;
  interval: "hour" | "day";
  group: Group;
}

/** OverTime is the chosen figure over the period: sums by group, rates of all calls. */
function OverTime({ tile, spans, period, interval, group }: OverTimeProps) {
  const { metric, title } = tile;
  const summed = metric !== "errors" && metric !== "latency";
  const stacked = summed && group.by !== "day";
  const grouped = useAsked<Span[]>(stacked ? `series:${period}:${group.by}:${metric}` : undefined, () => body(api.GET("/gw/series", { params: { query: { since: withinOf(period), interval, group_by: group.by, top_by: metric as "spend" | "requests" | "tokens" } } })));
  if (grouped.failure) return <Card title={title}><Trouble failure={grouped.failure} again={grouped.again} /></Card>;
  const drawn: Drawn = !spans ? { kind: "bars", series: undefined, format: String, axis: String } : stacked ? stackOf(metric, spans, group.named ? grouped.data : undefined, group) : chartOf(metric, spans);
  const length = interval === "hour" ? 3_600_000 : 86_400_000;
  const all = spans?.length ? { from: spans[0]!.at } : undefined;
  const open = (i: number | undefined, j: number | undefined) => {
    const filter = j === undefined || !drawn.filters ? {} : drawn.filters[j];
    const at = i === undefined ? undefined : spans?.[i]?.at;
    return filter && all && callsAt({ ...(at ? { from: at, to: new Date(Date.parse(at) + length).toISOString() } : all), ...filter });
  };
  return (
    <ChartCard
      actions={all && <Link className="button" to={callsAt({ ...all, ...(metric === "errors" && { status: "failed" }), ...(metric === "latency" && { sort: "-latency_ms" }) })}>Calls</Link>} open={open}
      title={title + (stacked ? ` by ${group.name}` : "")} note={summed || group.by === "day" ? undefined : "Of all calls together."}
      first={period === "24h" ? "Hour" : "Day"} file={`${metric}-${stacked ? group.by + "-" : ""}${period}`}
      label={`${title} over the last ${periods.find(([v]) => v === period)?.[1] ?? period}`}
      empty="No calls in this period" ticks={spans?.map((s) => s.label) ?? []} names={spans?.map((s) => s.name) ?? []} {...drawn}
    />
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
          split ? (sum(split.before, (s) => s.requests) > 0 ? "none before" : "no calls before") : <Bones height={14} width={120} />
        ) : (
          <span title={`Compared with the ${periods.find(([v]) => v === period)?.[1]} before, which are whole; ${period === "24h" ? "this hour" : "today"} is not over yet`}><Badge tone={tone}>{change > 0 ? "+" : ""}{percent(change)}</Badge> vs. before</span>
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
        <Code label="A first call" text={firstCall(app.base, useFirstModel(), "$GATEWAY_KEY")} />
        <div className="row">
          <Link to="/models" className="button">{portal ? "Models" : "Try a model here"}</Link>
          {seesKeys(app) && <Link to="/keys" className="button">Keys</Link>}
          {portal && <Link to="/start" className="button">Quick start</Link>}
        </div>
      </div>
    </Card>
  );
}
