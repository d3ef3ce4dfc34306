import { useId, useState, type KeyboardEvent, type MouseEvent, type ReactNode } from "react";
import { csv, save } from "../shared/format";
import { go, Link, useFilter } from "../shared/route";
import { useWidth } from "../shared/use";
import { Bones, Button, Card, Empty, Segments } from "./kit";

export interface Series {
  name: string;
  values: number[];
  /** Of the eight colours; without it the one of its place. */
  color?: number;
}

/** tone is the class that has a series' colour. */
function tone(s: Series, place: number): string {
  return `s${s.color ?? place % 8}`;
}

interface ChartProps {
  label: string;
  kind: "bars" | "lines";
  series: Series[];
  /** What stands under the axis, and in full where there is room. */
  ticks: string[];
  names: string[];
  format: (value: number) => string;
  axis: (value: number) => string;
  height?: number;
  /** Where the calls are of a span, of a series, or of both; undefined where they have no page. */
  open?: (span: number | undefined, series: number | undefined) => string | undefined;
}

/** scale finds a round figure above the highest value, and the lines below it. */
function scale(highest: number): number[] {
  if (!(highest > 0)) return [0, 1];
  const step = 10 ** Math.floor(Math.log10(highest / 3));
  const nice = [1, 2, 2.5, 5, 10].map((n) => n * step).find((n) => Math.ceil(highest / n) <= 4) ?? step * 10;
  return Array.from({ length: Math.ceil(highest / nice - 1e-9) + 1 }, (_, i) => i * nice);
}

const left = 56;
const bottom = 24;
const top = 10;

/** Chart draws figures over time: bars on top of each other, or lines. */
export function Chart({ label, kind, series, ticks, names, format, axis, height = 240, open }: ChartProps) {
  const [box, width] = useWidth<HTMLDivElement>();
  const [at, setAt] = useState<number>();
  const about = useId();
  const n = ticks.length;
  const sums = ticks.map((_, i) => (kind === "bars" ? series.reduce((sum, s) => sum + (s.values[i] ?? 0), 0) : Math.max(0, ...series.map((s) => s.values[i] ?? 0))));
  const lines = scale(Math.max(0, ...sums));
  const highest = lines[lines.length - 1] ?? 1;
  const inner = { w: Math.max(0, width - left - 8), h: height - top - bottom };
  const slot = n ? inner.w / n : 0;
  const x = (i: number) => left + slot * (i + 0.5);
  const y = (v: number) => top + inner.h * (1 - v / highest);
  const every = Math.max(1, Math.ceil((n * 62) / Math.max(1, inner.w)));

  const follow = (span: number | undefined, of?: number) => {
    const to = span === undefined ? undefined : (open?.(span, of) ?? open?.(span, undefined));
    if (to) go(to);
  };
  const click = (e: MouseEvent<SVGSVGElement>) => {
    const i = Math.floor((e.clientX - e.currentTarget.getBoundingClientRect().left - left) / slot);
    const of = (e.target as SVGElement).dataset.series;
    if (i >= 0 && i < n) follow(i, of === undefined ? undefined : Number(of));
  };
  const keys = (e: KeyboardEvent) => {
    if (e.key === "Enter") follow(at);
    const next = { ArrowRight: Math.min(n - 1, (at ?? -1) + 1), ArrowLeft: Math.max(0, (at ?? n) - 1), Home: 0, End: n - 1 }[e.key];
    if (e.key === "Escape") setAt(undefined);
    if (next === undefined) return;
    e.preventDefault();
    setAt(next);
  };
  const said = at === undefined ? "" : `${names[at]}: ${series.map((s) => `${series.length > 1 ? s.name + " " : ""}${format(s.values[at] ?? 0)}`).join(", ")}`;
  const total = series.length > 1 && kind === "bars";

  return (
    <div className={open ? "chart opens" : "chart"} ref={box} style={{ height }}>
      {width > 0 && (
        <svg
          width={width} height={height} role="img" tabIndex={0} aria-label={`${label}. Use the arrow keys to read the values${open ? ", Enter for their calls" : ""}.`} aria-describedby={about}
          onKeyDown={keys} onClick={open && click} onBlur={() => setAt(undefined)} onPointerLeave={() => setAt(undefined)}
          onPointerMove={(e) => {
            const i = Math.floor((e.clientX - e.currentTarget.getBoundingClientRect().left - left) / slot);
            setAt(i >= 0 && i < n ? i : undefined);
          }}
        >
          {lines.map((v) => (
            <g key={v}>
              <line className="grid" x1={left} x2={width - 8} y1={y(v)} y2={y(v)} />
              <text className="axis" x={left - 8} y={y(v) + 4} textAnchor="end">{axis(v)}</text>
            </g>
          ))}
          {ticks.map((t, i) => (i % every === 0 && (i === 0 || i + every / 2 < n || every === 1) ? <text key={i} className="axis" x={x(i)} y={height - 6} textAnchor="middle">{t}</text> : null))}
          {at !== undefined && <rect className="hover" x={left + slot * at} y={top} width={slot} height={inner.h} />}
          {kind === "bars" ? <Bars series={series} n={n} x={x} y={y} slot={slot} /> : <Lines series={series} x={x} y={y} />}
          {at !== undefined && kind === "lines" && series.map((s, j) => <circle key={j} data-series={j} className={`dot ${tone(s, j)}`} cx={x(at)} cy={y(s.values[at] ?? 0)} r={4} />)}
        </svg>
      )}
      <span id={about} className="hidden" role="status">{said}</span>
      {at !== undefined && (
        <div className="tip" style={{ left: Math.max(90, Math.min(width - 90, x(at))), top: Math.max(8, y(sums[at] ?? 0) - 14) }} aria-hidden="true">
          <b>{names[at]}</b>
          {series.map((s, j) => (s.values[at] || series.length <= 3) && <span key={j}><i className={tone(s, j)} />{series.length > 1 && <em>{s.name}</em>}{format(s.values[at] ?? 0)}</span>)}
          {total && <span className="sum"><em>Total</em>{format(sums[at] ?? 0)}</span>}
        </div>
      )}
    </div>
  );
}

function Bars({ series, n, x, y, slot }: { series: Series[]; n: number; x: (i: number) => number; y: (v: number) => number; slot: number }) {
  const wide = Math.max(1, Math.min(34, slot - (slot > 8 ? 3 : 1)));
  const floor = y(0);
  return Array.from({ length: n }, (_, i) => {
    let base = 0;
    return (
      <g key={i}>
        {series.map((s, j) => {
          const v = s.values[i] ?? 0;
          if (!v) return null;
          const from = y(base);
          base += v;
          const to = Math.min(y(base), floor - (base === v ? 1.5 : 0)); // the smallest value can be seen
          return <rect key={j} data-series={j} className={`bar ${tone(s, j)}`} x={x(i) - wide / 2} width={wide} y={to} height={Math.max(0, from - to)} rx={base === v && series.length === 1 ? Math.min(3, wide / 3) : 0} />;
        })}
      </g>
    );
  });
}

function Lines({ series, x, y }: { series: Series[]; x: (i: number) => number; y: (v: number) => number }) {
  return series.map((s, j) => {
    const points = s.values.map((v, i) => `${x(i).toFixed(1)},${y(v).toFixed(1)}`);
    return (
      <g key={j}>
        {series.length === 1 && <polygon className={`area ${tone(s, j)}`} points={`${x(0)},${y(0)} ${points.join(" ")} ${x(s.values.length - 1)},${y(0)}`} />}
        <polyline className={`line ${tone(s, j)}`} points={points.join(" ")} />
      </g>
    );
  });
}

/** Spark is a small line without words, beside a figure that says the same. */
export function Spark({ values }: { values: number[] }) {
  const highest = Math.max(...values, 0);
  const points = values.map((v, i) => `${((i / Math.max(1, values.length - 1)) * 100).toFixed(1)},${(27 - (highest > 0 ? v / highest : 0) * 24).toFixed(1)}`).join(" ");
  return (
    <svg className="spark" viewBox="0 0 100 30" preserveAspectRatio="none" aria-hidden="true">
      {values.length > 1 && <polygon points={`0,30 ${points} 100,30`} />}
      {values.length > 1 && <polyline points={points} vectorEffect="non-scaling-stroke" />}
    </svg>
  );
}

interface ChartCardProps extends Omit<ChartProps, "series"> {
  title: string;
  note?: ReactNode;
  file: string;
  first: string; // title of the first column
  series: Series[] | undefined;
  actions?: ReactNode;
  empty: string;
}

/** ChartCard is a chart that can also be read as a table and saved. */
export function ChartCard({ title, note, file, first, series, actions, empty, ...chart }: ChartCardProps) {
  const [view, setView] = useFilter("view", "chart");
  const { open } = chart;
  const marked = (text: ReactNode, span: number | undefined, of: number | undefined) => {
    const to = open?.(span, of);
    return to ? <Link to={to} title="Calls">{text}</Link> : text;
  };
  const height = chart.height ?? 240;
  const nothing = series && series.every((s) => s.values.every((v) => !v));
  const download = () => save(file + ".csv", csv([[first, ...(series ?? []).map((s) => s.name)], ...chart.names.map((name, i) => [name, ...(series ?? []).map((s) => s.values[i] ?? 0)])]));
  return (
    <Card
      title={title}
      note={note}
      actions={
        <>
          {actions}
          <Segments label={`Show ${title} as`} value={view} options={[["chart", "Chart"], ["table", "Table"]]} onChange={setView} />
          <Button icon="download" disabled={!series || nothing} onClick={download}>CSV</Button>
        </>
      }
    >
      {!series ? (
        <Bones height={height + 54} />
      ) : nothing ? (
        <div className="chart none" style={{ height: height + 54 }}><Empty icon="chart" title={empty} /></div>
      ) : view === "chart" ? (
        <>
          <Chart {...chart} series={series} />
          <ul className="legend">{series.map((s, j) => <li key={j}><i className={tone(s, j)} /><span className="cut">{marked(s.name, undefined, j)}</span></li>)}</ul>
        </>
      ) : (
        <div className="scroll tall" style={{ maxHeight: Math.max(height, 320) }} tabIndex={0} role="region" aria-label={title}>
          <table>
            <caption className="hidden">{title}</caption>
            <thead><tr><th scope="col">{first}</th>{series.map((s, j) => <th key={j} scope="col" className="end">{marked(s.name, undefined, j)}</th>)}</tr></thead>
            <tbody>
              {chart.names.map((name, i) => (
                <tr key={i}><th scope="row">{marked(name, i, undefined)}</th>{series.map((s, j) => <td key={j} className="end">{s.values[i] ? marked(chart.format(s.values[i]), i, j) : chart.format(0)}</td>)}</tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Card>
  );
}
