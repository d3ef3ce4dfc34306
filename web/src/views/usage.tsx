import { useEffect, useState } from "react";
import { api, portal, query as queryOf, root, type Call, type CallsQuery } from "../shared/api";
import { clockUTC, count, counted, duration, integer, moment, momentUTC, usdColumn, usdExact } from "../shared/format";
import { go, Link, useFilter, useRoute } from "../shared/route";
import { useAction, useAsked, usePoll } from "../shared/use";
import { asked, callsAt, everything, filterNames, usualSince, type Filters } from "../shared/window";
import { Icon } from "../ui/icons";
import { Badge, Bones, Button, Card, Choice, Copy, Dialog, Empty, FilterSheet, Page, Trouble } from "../ui/kit";
import { Table, type Column } from "../ui/table";
import { useApp, type App } from "./app";
import { Figures } from "./figures";
import { NoScope, seesKeys } from "./gate";
import { nameOfKey, useKeys } from "./keys";

export function Status({ code }: { code: number }) {
  return <Badge tone={code >= 500 ? "bad" : code >= 400 ? "warn" : "good"}>{code}</Badge>;
}

export const sure: Record<string, string> = {
  ok: "Usage was read and priced exactly.",
  partial: "Something was estimated, or no price is known.",
  unknown: "No usage could be read.",
  provisional: "An estimate until the job ends.",
  failed: "The job failed.",
  cancelled: "The job was cancelled.",
  expired: "The job came to no end in time.",
};

export const columnsOf = (app: App): Column<Call>[] => [
  { title: "Time (UTC)", tight: true, hide: "narrow", cell: (r) => moment(r.created_at), text: (r) => r.created_at },
  {
    title: "Model",
    cell: (r) => (
      <span className="two">
        <span className="cut">{r.model_slug ?? r.model}</span>
        <small className="cut wide">{r.model_slug && !portal ? `${r.provider} · ${r.model}` : r.provider}</small>
        <small className="slim">{moment(r.created_at)}</small>
      </span>
    ),
    text: (r) => r.model_slug ?? r.model,
  },
  { title: "Status", tight: true, cell: (r) => <Status code={r.status_code} />, text: (r) => r.status_code },
  { title: "Books", hide: "middle", tight: true, cell: (r) => <span title={sure[r.parse_status]}><Badge tone={r.parse_status === "ok" ? "plain" : "warn"}>{r.parse_status}</Badge></span>, text: (r) => r.parse_status },
  { title: "Tokens", end: true, hide: "narrow", cell: (r) => <span className="two" title={kindsOf(r)}><span>{integer(r.total_tokens)}</span>{r.total_tokens > 0 && <small>{count(r.total_tokens - r.tokens.output - r.tokens.audio_output)} in, {count(r.tokens.output + r.tokens.audio_output)} out</small>}</span>, text: (r) => r.total_tokens },
  { title: "Latency", end: true, hide: "narrow", cell: (r) => <span className="two"><span>{duration(r.latency_ms)}</span>{r.first_byte_ms !== null && <small>first {duration(r.first_byte_ms)}</small>}</span>, text: (r) => r.latency_ms },
  { title: portal ? "Billed" : "Cost", end: true, cell: (r) => <span className="two"><span>{usdColumn(r.cost_usd)}</span>{!portal && r.margin_usd != null && <small>margin {usdColumn(r.margin_usd)}</small>}</span>, text: (r) => r.cost_usd },
  { title: "Key", hide: "middle", cell: (r) => <span className="cut brief">{r.key_name ?? ""}</span>, text: (r) => r.key_name ?? r.attribution.key_id ?? "" },
  ...(portal || !app.can("keys:manage") ? [] : [{ title: "Customer", hide: "middle", cell: (r: Call) => <span className="cut brief">{customerOf(app, r)}</span>, text: (r: Call) => customerOf(app, r) } as Column<Call>]),
  { title: "Attribution", hide: "middle", cell: (r) => <Attribution pairs={r.attribution} />, text: (r) => Object.entries(r.attribution).map(([k, v]) => `${k}=${v}`).join(" ") },
];

function customerOf(app: App, r: Call): string {
  const id = r.attribution.sub_account_id;
  return id ? (app.nameOf(id) ?? id) : "";
}

function Attribution({ pairs }: { pairs: Record<string, string> }) {
  const shown = Object.entries(pairs).filter(([k]) => k !== "key_id" && k !== "sub_account_id");
  return <span className="badges">{shown.slice(0, 2).map(([k, v]) => <Badge key={k}>{k}={v.length > 18 ? v.slice(0, 17) + "…" : v}</Badge>)}{shown.length > 2 && <Badge>+{shown.length - 2}</Badge>}</span>;
}

/** NewestCalls are the newest calls that match filters, and the way to all of them. */
export function NewestCalls({ filters }: { filters: Filters }) {
  const app = useApp();
  const calls = useAsked(`usage:newest:${JSON.stringify(filters)}`, async () => (await page({ ...asked(filters), limit: 10 }))?.data ?? []);
  const open = (r: Call) => callsAt({ ...filters, row: r.id } as Filters);
  return (
    <Card flush title="Calls" note="The newest of the last 30 days." actions={<Link className="button" to={callsAt(filters)}>All calls</Link>}>
      <Table
        label="Newest calls" columns={columnsOf(app).filter((c) => c.title !== "Customer" && c.title !== "Attribution")} rows={calls.data} failure={calls.failure} again={calls.again} id={(r) => r.id} bones={3} page={0}
        onOpen={(r) => go(open(r))} empty={<Empty icon="usage" title="No calls in the last 30 days" />}
      />
    </Card>
  );
}

/** page reads a page of calls, its tag, and the cursor of the next one, "" on the last; nothing where the tag is still right. */
async function page(query: CallsQuery, tag?: string) {
  const header = tag ? { "If-None-Match": tag } : undefined;
  const { data, response } = await api.GET("/gw/calls", { params: { query, header } });
  if (data === undefined) return undefined;
  return { data: data as Call[], next: response.headers.get("X-Next-Cursor") ?? "", tag: response.headers.get("ETag") ?? "" };
}

export const ranges: [string, string][] = [
  ["1h", "Last hour"], ["24h", "Last 24 hours"], ["7d", "Last 7 days"], ["30d", "Last 30 days"], ["90d", "Last 90 days"], ["month", "This month"], ["last-month", "Last month"], ["all", "All time"],
];

const sorts: [string, string][] = [["", "Newest"], ["created_at", "Oldest"], ["-cost_usd", portal ? "Highest billed" : "Highest cost"], ["-total_tokens", "Most tokens"], ["-latency_ms", "Slowest"], ["-first_byte_ms", "Slowest first byte"]];

/** The filters that are typed, and those that only a link sets, which are shown where they are set. */
const typed = ["model", "provider", "id"] as const;
const linked: [name: "author" | "customer" | "door" | "kind" | "tag", title: string][] = [["author", "Author"], ["customer", "Customer"], ["door", "Door"], ["kind", "Kind"], ["tag", "Tag"]];

/** filtersIn are those of an address. */
export function filtersIn(params: URLSearchParams): Filters {
  return Object.fromEntries([...Object.keys(filterNames), "since", "from", "to", "sort"].map((name) => [name, params.get(name) ?? undefined]));
}

export function Usage() {
  const app = useApp();
  const { params } = useRoute();
  const filters = filtersIn(params);
  const set = (changes: Filters) => {
    const next = { ...filters, ...changes };
    const kept = Object.fromEntries(["view", "metric", "by", "then", "sum"].map((name) => [name, params.get(name) ?? undefined]));
    go("/usage" + queryOf({ ...next, since: next.since === usualSince ? undefined : next.since, ...kept }), "replace");
  };
  const entered = Object.fromEntries(typed.map((name) => [name, filters[name] ?? ""])) as Record<(typeof typed)[number], string>;
  const [texts, setTexts] = useState(entered);
  const key = "usage:" + JSON.stringify(filters);
  const keys = useKeys(seesKeys(app));
  const readable = app.can("stats:read");
  const query = { ...asked(filters), ...(filters.sort && { sort: filters.sort as NonNullable<CallsQuery>["sort"] }) };
  const first = useAsked(readable ? key : undefined, () => page({ ...query, limit: 100 }));
  const [rest, setRest] = useState<{ key: string; rows: Call[]; next: string }>();
  const more = useAction();
  const [open, setOpen] = useFilter("row");
  useEffect(() => setTexts(entered), [entered.model, entered.provider, entered.id]);
  const stale = usePoll(first.data && rest?.key !== key ? async () => void ((await page({ ...query, limit: 100 }, first.data?.tag)) && first.again()) : undefined);
  if (!readable) return <Page title="Usage"><NoScope scope="stats:read" what="usage" /></Page>;

  const tail = rest?.key === key ? rest : undefined;
  const rows = first.data && app.named ? [...first.data.data, ...(tail?.rows ?? [])] : undefined;
  const columns = columnsOf(app);
  const next = tail ? tail.next : first.data?.next;
  const load = () =>
    more.run(async () => {
      const answer = await page({ ...query, limit: 200, cursor: next });
      if (answer) setRest({ key, rows: [...(tail?.rows ?? []), ...answer.data], next: answer.next });
    });
  const filtered = Object.entries(filters).some(([name, value]) => value && name !== "sort" && !(name === "since" && value === usualSince));
  const file = root + "/gw/calls" + queryOf({ ...query, format: "csv" });
  return (
    <Page
      title="Usage" note={stale ? <span role="status">As of {clockUTC(stale)} UTC: the gateway does not answer.</span> : `Every call${portal ? ", at the price it is billed" : ""}.`}
      actions={<><Copy text={location.href} label="Copy link" /><a className="button" href={file} download><Icon name="download" />CSV</a></>}
    >
      {!filters.id && <Figures title="Over time" id={key} query={asked({ ...filters, sort: undefined })} filters={{ ...filters, sort: undefined }} />}
      <Card flush>
        <FilterSheet active={filtered}>
          <form
            className="filters" role="search" aria-label="Filter calls"
            onSubmit={(e) => {
              e.preventDefault();
              set(Object.fromEntries(typed.map((name) => [name, texts[name].trim() || undefined])));
            }}
          >
            <Range filters={filters} set={set} />
            <Choice aria-label="Status" value={filters.status ?? ""} onChange={(status) => set({ status })} options={optionsWith([["", "Any status"], ["ok", "Served"], ["failed", "Failed"], ["4xx", "4xx"], ["429", "429"], ["5xx", "5xx"]], filters.status)} />
            <Choice aria-label="State of the books" value={filters.books ?? ""} onChange={(books) => set({ books })} options={[["", "Any books"], ...Object.keys(sure).map((s) => [s, s] as [string, string])]} />
            {seesKeys(app) && (
              <Choice aria-label="Key" style={{ width: 150 }} value={filters.key ?? ""} onChange={(key) => set({ key })} options={[["", "Any key"], ...(keys.data ?? []).map((k) => [k.id, nameOfKey(k)] as [string, string])]} />
            )}
            {typed.map((name) => (
              <span className="find" key={name} style={name === "id" ? undefined : { maxWidth: 190 }}>
                <Icon name="search" />
                <input aria-label={titleOf[name]} placeholder={titleOf[name]} value={texts[name]} onChange={(e) => setTexts({ ...texts, [name]: e.target.value })} />
              </span>
            ))}
            <Button type="submit">Filter</Button>
            <Choice aria-label="Sort" value={filters.sort ?? ""} onChange={(sort) => set({ sort })} options={sorts} />
            {linked.map(([name, title]) => filters[name] && (
              <Button key={name} icon="close" aria-label={`Without ${title.toLowerCase()} ${filters[name]}`} onClick={() => set({ [name]: undefined })}>
                {title}: {name === "customer" ? (filters.customer === "none" ? "the organization itself" : (app.nameOf(filters.customer!) ?? filters.customer)) : filters[name]}
              </Button>
            ))}
            {filtered && <Button look="quiet" onClick={() => go("/usage", "replace")}>Clear</Button>}
          </form>
        </FilterSheet>
        <Table
          label="Calls" columns={[...columns, { title: "Details", quiet: true, tight: true, cell: (r) => <Button look="quiet" icon="right" aria-label={`Details of the call at ${moment(r.created_at)}`} onClick={() => setOpen(r.id)} /> }]}
          rows={rows} failure={first.failure} again={first.again} id={(r) => r.id} page={0} bones={10} onOpen={(r) => setOpen(r.id)}
          empty={
            <Empty
              icon="usage" title={filtered ? "No call matches" : "No calls in the last 7 days"}
              action={
                <>
                  {filtered && <Button onClick={() => go("/usage", "replace")}>Clear filters</Button>}
                  <Button onClick={() => go("/usage?since=all", "replace")}>Show all calls</Button>
                  {!filtered && <Link className="button" to={portal ? "/start" : "/models"}>{portal ? "Quick start" : "Try a model"}</Link>}
                </>
              }
            >
              {filtered ? "Another filter or a longer period may show some." : "Calls appear here within seconds of their end."}
            </Empty>
          }
          foot={
            rows && (
              <>
                {more.failure && <Trouble failure={more.failure} />}
                <span className="note" role="status">{counted(rows.length, "call")}{next ? "" : ", all of them"}</span>
                {next && <Button busy={more.busy} onClick={load}>Load more</Button>}
              </>
            )
          }
        />
      </Card>
      {open && <Details id={open} row={rows?.find((r) => r.id === open)} onClose={() => setOpen("")} />}
    </Page>
  );
}

const titleOf = { model: "Model", provider: portal ? "Author" : "Provider", id: "Request id" };

/** optionsWith are options and a value that a link has set. */
export function optionsWith(options: [string, string][], value: string | undefined): [string, string][] {
  return !value || options.some(([v]) => v === value) ? options : [...options, [value, value]];
}

/** Range chooses a window: one of those that move with time, or any two days. */
export function Range({ filters, set }: { filters: Filters; set: (changes: Filters) => void }) {
  const own = !!(filters.from || filters.to);
  const date = (name: "from" | "to", label: string) => (
    <input type="date" aria-label={label} value={filters[name]?.slice(0, 10) ?? ""} onChange={(e) => set({ since: undefined, [name]: e.target.value ? e.target.value + "T00:00:00Z" : undefined })} />
  );
  return (
    <>
      <Choice
        aria-label="Period" value={own ? "own" : (filters.since ?? usualSince)} options={[...optionsWith(ranges, own ? undefined : filters.since), ["own", "From … to"]]}
        onChange={(since) => set(since === "own" ? { since: undefined, from: new Date(Math.floor(Date.now() / 86_400_000) * 86_400_000).toISOString() } : { since, from: undefined, to: undefined })}
      />
      {own && <>{date("from", "From (UTC)")}{date("to", "Until (UTC)")}</>}
    </>
  );
}

/** Details are all that is known of a call. */
export function Details({ id, row, onClose }: { id: string; row: Call | undefined; onClose: () => void }) {
  const app = useApp();
  const found = useAsked<Call[]>(row ? undefined : "usagerow:" + id, async () => (await page({ id: [id], from: everything }))?.data ?? []);
  const r = row ?? found.data?.[0];
  return (
    <Dialog title="Call" onClose={onClose}>
      {found.failure ? (
        <Trouble failure={found.failure} again={found.again} />
      ) : !r ? (
        found.busy ? <Bones height={220} /> : <Empty icon="usage" title="There is no such call" />
      ) : (
        <dl className="facts">
          <dt>Request</dt><dd className="row"><code>{r.id}</code><Copy text={r.id} label="" look="quiet" /></dd>
          <dt>Time</dt><dd>{momentUTC(r.created_at)}</dd>
          <dt>Model</dt><dd>{r.model_slug ?? r.model}</dd>
          {!portal && <><dt>Ran as</dt><dd>{r.provider} · <code>{r.model}</code></dd></>}
          {r.author && <><dt>Author</dt><dd>{r.author}</dd></>}
          <dt>Status</dt><dd><Status code={r.status_code} /></dd>
          <dt>{portal ? "Billed" : "Cost"}</dt><dd>{usdExact(r.cost_usd)}</dd>
          {!portal && r.billed_usd !== null && <><dt>Billed</dt><dd>{usdExact(r.billed_usd)}{r.margin_usd != null && <> <span className="note">margin {usdExact(r.margin_usd)}</span></>}</dd></>}
          <dt>Tokens</dt><dd>{integer(r.total_tokens)}{r.total_tokens > 0 && <> <span className="note">{kindsOf(r)}</span></>}</dd>
          <dt>Latency</dt><dd>{duration(r.latency_ms)}{r.first_byte_ms !== null && <> <span className="note">first byte after {duration(r.first_byte_ms)}</span></>}</dd>
          {r.key_name && <><dt>Key</dt><dd>{r.key_name}</dd></>}
          <dt>Books</dt><dd><Badge tone={r.parse_status === "ok" ? "good" : "warn"}>{r.parse_status}</Badge> <span className="note">{sure[r.parse_status]}</span></dd>
          <dt>Client</dt><dd>{r.via_sdk ? "An official SDK, by its own account" : "Not an official SDK"}</dd>
          {Object.entries(r.attribution).map(([k, v]) => (
            <FactPair key={k} name={k} value={k === "sub_account_id" ? (app.nameOf(v) ?? v) : v} />
          ))}
        </dl>
      )}
    </Dialog>
  );
}

const kinds: [keyof Call["tokens"], string][] = [
  ["input", "input"], ["cached_input", "cached"], ["cache_write", "cache written"], ["output", "output"], ["audio_input", "audio in"], ["audio_output", "audio out"],
];

/** kindsOf names the kinds of tokens of a call. */
function kindsOf(r: Call): string {
  return kinds.filter(([k]) => r.tokens[k] > 0).map(([k, name]) => `${integer(r.tokens[k])} ${name}`).join(", ");
}

function FactPair({ name, value }: { name: string; value: string }) {
  return <><dt><code>{name}</code></dt><dd>{value}</dd></>;
}
