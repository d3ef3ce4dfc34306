import { api, body, portal, type CallsQuery, type Report, type ReportRow } from "../shared/api";
import { count, duration, hourOfDay, integer, percent, shortDay, usd, usdShort } from "../shared/format";
import { useFilter } from "../shared/route";
import { useAsked } from "../shared/use";
import { callsAt, everything, groupFilter, intervalOf, next, spansOf, type Filters } from "../shared/window";
import { ChartCard, type Series } from "../ui/chart";
import { Check, Choice, Card, Trouble } from "../ui/kit";

type Numbers = Omit<ReportRow, "at" | "group" | "label" | "other">;

interface Metric {
  name: string;
  title: string;
  of: (f: Numbers) => number | null | undefined;
  show: (v: number) => string;
  axis: (v: number) => string;
  order: "cost" | "requests" | "tokens" | "errors" | "p95";
  line?: boolean; // a rate or a duration: no sum
}

const metrics: Metric[] = [
  { name: "cost", title: portal ? "Billed" : "Spend", of: (f) => f.cost_usd, show: usd, axis: usdShort, order: "cost" },
  ...(portal
    ? []
    : [
        { name: "billed", title: "Billed", of: (f: Numbers) => f.billed_usd, show: usd, axis: usdShort, order: "cost" as const },
        { name: "margin", title: "Margin", of: (f: Numbers) => f.margin_usd, show: usd, axis: usdShort, order: "cost" as const },
      ]),
  { name: "requests", title: "Requests", of: (f) => f.requests, show: integer, axis: count, order: "requests" },
  { name: "tokens", title: "Tokens", of: (f) => f.total_tokens, show: integer, axis: count, order: "tokens" },
  { name: "errors", title: "Errors", of: (f) => f.errors, show: integer, axis: count, order: "errors" },
  { name: "rate", title: "Error rate", of: (f) => f.errors / Math.max(1, f.requests), show: percent, axis: percent, order: "errors", line: true },
  { name: "p95", title: "Latency, p95", of: (f) => f.latency_ms.p95, show: duration, axis: duration, order: "p95", line: true },
  { name: "first", title: "First byte, p95", of: (f) => f.first_byte_ms.p95, show: duration, axis: duration, order: "p95", line: true },
];

export const dimensions: [string, string][] = portal
  ? [["model", "Model"], ["author", "Author"], ["key_id", "Key"], ["status", "Status"]]
  : [["model", "Model"], ["author", "Author"], ["provider", "Provider"], ["sub_account_id", "Customer"], ["key_id", "Key"], ["status", "Status"], ["door", "Door"], ["region", "Region"]];

export type ReportQuery = NonNullable<CallsQuery> & { group_by?: string[]; interval?: "none" | "hour" | "day" | "month"; order?: Metric["order"]; top?: number };

/** What a report is read with; the operator's console has another. */
export type Reader = (query: ReportQuery) => Promise<Report>;

const own: Reader = (query) => body(api.GET("/gw/report", { params: { query } })) as Promise<Report>;

interface FiguresProps {
  title: string;
  id: string; // of what is asked, to keep the answer by
  query: NonNullable<CallsQuery>;
  /** The same as the address has them: the calls of a mark have these filters and its own. */
  filters: Filters;
  groups?: [string, string][];
  read?: Reader;
}

/** labelOf is what people call a group. */
function labelOf(row: ReportRow): string {
  return row.other ? "All others" : row.label.map((l) => l || "(none)").join(" · ");
}

/** Figures are the sums of calls over time; the address holds how they are shown. */
export function Figures({ title, id, query, filters, groups = dimensions, read = own }: FiguresProps) {
  const [chosen, setChosen] = useFilter("metric", "cost");
  const [by, setBy] = useFilter("by");
  const [then, setThen] = useFilter("then");
  const [running, setRunning] = useFilter("sum");
  const metric = metrics.find((m) => m.name === chosen) ?? metrics[0]!;
  const dims = [by, by && then !== by ? then : ""].filter((d) => d !== "");
  const interval = intervalOf(query);
  const asked = useAsked<Report>(`report:${id}:${dims}:${metric.order}`, () => read({ ...query, group_by: dims, interval, order: metric.order }));
  const tools = (
    <>
      <Choice aria-label="Figure" value={metric.name} onChange={setChosen} options={metrics.map((m) => [m.name, m.title])} />
      <Choice aria-label="Group by" value={by} onChange={setBy} options={[["", "All calls"], ...groups]} />
      {by && <Choice aria-label="Then by" value={then} onChange={setThen} options={[["", "and nothing else"], ...groups.filter(([d]) => d !== by)]} />}
      {!metric.line && <Check label="Cumulative" checked={running === "1"} onChange={(on) => setRunning(on ? "1" : "")} />}
    </>
  );
  if (asked.failure) return <Card title={title} actions={tools}><Trouble failure={asked.failure} again={asked.again} /></Card>;
  const range = asked.data;
  const rows = range?.rows;
  // All of the time is shown from its first call on.
  const first = rows?.reduce((least, r) => (r.at && r.at < least ? r.at : least), range!.to);
  const spans = range ? spansOf(query.from === everything ? first! : range.from, range.to, interval) : [];
  const drawn = rows && seriesOf(rows, spans, metric, running === "1" && !metric.line);
  const open = (i: number | undefined, j: number | undefined) => {
    const group = j === undefined ? undefined : drawn?.groups[j];
    if (group?.other) return undefined;
    const own = group?.group.map((value, k) => groupFilter(dims[k]!, value)) ?? [];
    if (own.some((f) => !f)) return undefined;
    const at = i === undefined ? undefined : spans[i];
    const window = at === undefined ? {} : { since: undefined, from: new Date(Math.max(at, Date.parse(range!.from))).toISOString(), to: new Date(Math.min(next(at, interval), Date.parse(range!.to))).toISOString() };
    return callsAt(Object.assign({}, filters, window, metric.name === "errors" || metric.name === "rate" ? { status: "failed" } : {}, ...own));
  };
  const name = (at: number) => (interval === "hour" ? `${shortDay(new Date(at))}, ${hourOfDay(new Date(at))} UTC` : interval === "month" ? new Date(at).toISOString().slice(0, 7) : `${shortDay(new Date(at))} (UTC)`);
  return (
    <ChartCard
      title={title} actions={tools} kind={metric.line ? "lines" : "bars"} series={drawn?.series} format={metric.show} axis={metric.axis} open={open} height={200}
      note={<span className="num sum">{range ? summary(range) : "\u00a0"}</span>}
      first={interval === "hour" ? "Hour" : interval === "month" ? "Month" : "Day"} file={`${metric.name}${dims.map((d) => "-" + d).join("")}`} label={`${title}: ${metric.title}`} empty={range?.totals.requests ? `${metric.title}: nothing but 0` : "No calls match"}
      ticks={spans.map((at) => (interval === "hour" ? hourOfDay(new Date(at)) : interval === "month" ? name(at) : shortDay(new Date(at))))} names={spans.map(name)}
    />
  );
}

/** summary says what all the calls come to. */
function summary({ totals: t }: Report): string {
  const parts = [`${integer(t.requests)} ${t.requests === 1 ? "call" : "calls"}`, `${integer(t.errors)} failed`, usd(t.cost_usd)];
  if (t.billed_usd !== null && !portal) parts.push(`${usd(t.billed_usd)} billed`, `${usd(t.margin_usd ?? 0)} margin`);
  if (t.latency_ms.p95 !== null) parts.push(`p95 ${duration(t.latency_ms.p95)}`);
  return parts.join(" · ");
}

/** seriesOf draws rows: the groups that have most below, what is left on top. */
function seriesOf(rows: ReportRow[], spans: number[], metric: Metric, running: boolean): { series: Series[]; groups: ReportRow[] } {
  const place = new Map(spans.map((at, i) => [at, i]));
  const found = new Map<string, { row: ReportRow; values: number[] }>();
  for (const row of rows) {
    const key = row.other ? "" : "=" + row.group.join("\0");
    let group = found.get(key);
    if (!group) found.set(key, (group = { row, values: spans.map(() => 0) }));
    const i = row.at === null ? undefined : place.get(Date.parse(row.at));
    if (i !== undefined) group.values[i] = metric.of(row) ?? 0;
  }
  const sum = (values: number[]) => values.reduce((a, b) => a + b, 0);
  const sorted = [...found.values()].sort((a, b) => Number(a.row.other) - Number(b.row.other) || sum(b.values) - sum(a.values));
  if (sorted.length === 0) sorted.push({ row: { other: true, group: [], label: [] } as unknown as ReportRow, values: spans.map(() => 0) });
  if (running) for (const g of sorted) for (let i = 1; i < g.values.length; i++) g.values[i]! += g.values[i - 1]!;
  return {
    groups: sorted.map((g) => g.row),
    series: sorted.map((g) => ({ name: g.row.group?.length === 0 && !g.row.other ? metric.title : labelOf(g.row), values: g.values, ...(g.row.other && { color: 7 }) })),
  };
}
