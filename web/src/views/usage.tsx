import { useEffect, useState } from "react";
import { api, portal, query as queryOf, root, type Call, type CallsQuery } from "../shared/api";
import { counted, duration, integer, moment, momentUTC, usdColumn, usdExact } from "../shared/format";
import { go, Link, useFilter } from "../shared/route";
import { useAction, useAsked, usePoll } from "../shared/use";
import { Icon } from "../ui/icons";
import { Badge, Bones, Button, Card, Choice, Copy, Dialog, Empty, Page, Trouble } from "../ui/kit";
import { Table, type Column } from "../ui/table";
import { useApp, type App } from "./app";
import { NoScope, seesKeys } from "./gate";
import { nameOfKey, useKeys } from "./keys";

export function Status({ code }: { code: number }) {
  return <Badge tone={code >= 500 ? "bad" : code >= 400 ? "warn" : "good"}>{code}</Badge>;
}

const sure: Record<string, string> = {
  ok: "Usage was read and priced exactly.",
  partial: "Something was estimated, or no price is known.",
  unknown: "No usage could be read.",
  provisional: "An estimate until the job ends.",
  failed: "The job failed.",
  cancelled: "The job was cancelled.",
  expired: "The job came to no end in time.",
};

const columnsOf = (app: App): Column<Call>[] => [
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
  { title: "Tokens", end: true, hide: "narrow", cell: (r) => integer(r.total_tokens), text: (r) => r.total_tokens },
  { title: "Latency", end: true, hide: "narrow", cell: (r) => duration(r.latency_ms), text: (r) => r.latency_ms },
  { title: portal ? "Billed" : "Cost", end: true, cell: (r) => usdColumn(r.cost_usd), text: (r) => r.cost_usd },
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

/** page reads a page of calls, its tag, and the cursor of the next one, "" on the last; nothing where the tag is still right. */
async function page(query: CallsQuery, tag?: string) {
  const header = tag ? { "If-None-Match": tag } : undefined;
  const { data, response } = await api.GET("/gw/calls", { params: { query, header } });
  if (data === undefined) return undefined;
  return { data: data as Call[], next: response.headers.get("X-Next-Cursor") ?? "", tag: response.headers.get("ETag") ?? "" };
}

/** everything is a window without a beginning. */
const everything = "1970-01-01T00:00:00Z";

export function Usage() {
  const app = useApp();
  const [since, setSince] = useFilter("since", "7d");
  const [provider, setProvider] = useFilter("provider");
  const [model, setModel] = useFilter("model");
  const [keyID, setKeyID] = useFilter("key");
  const [status, setStatus] = useFilter("status");
  const [books, setBooks] = useFilter("books");
  const [id, setID] = useFilter("id");
  const [asked, setAsked] = useState({ provider, model, id });
  const key = `usage:${since}:${provider}:${model}:${keyID}:${status}:${books}:${id}`;
  const keys = useKeys(seesKeys(app));
  const readable = app.can("stats:read");
  const one = (value: string) => (value ? [value] : undefined);
  const filters: CallsQuery = id
    ? { id: [id], from: everything }
    : {
        ...(since === "all" ? { from: everything } : { since }),
        provider: one(provider), model: one(model), key_id: one(keyID), status: one(status), parse_status: one(books),
      };
  const first = useAsked(readable ? key : undefined, () => page({ ...filters, limit: 100 }));
  const [rest, setRest] = useState<{ key: string; rows: Call[]; next: string }>();
  const more = useAction();
  const [open, setOpen] = useFilter("row");
  useEffect(() => setAsked({ provider, model, id }), [provider, model, id]);
  usePoll(first.data && rest?.key !== key ? async () => void ((await page({ ...filters, limit: 100 }, first.data?.tag)) && first.again()) : undefined);
  if (!readable) return <Page title="Usage"><NoScope scope="stats:read" what="usage" /></Page>;

  const tail = rest?.key === key ? rest : undefined;
  const rows = first.data && app.named ? [...first.data.data, ...(tail?.rows ?? [])] : undefined;
  const columns = columnsOf(app);
  const next = tail ? tail.next : first.data?.next;
  const load = () =>
    more.run(async () => {
      const answer = await page({ ...filters, limit: 200, cursor: next });
      if (answer) setRest({ key, rows: [...(tail?.rows ?? []), ...answer.data], next: answer.next });
    });
  const filtered = provider || model || keyID || status || books || id || since !== "7d";
  const file = root + "/gw/calls" + queryOf({ ...flat(filters), format: "csv" });
  return (
    <Page title="Usage" note={`Every call, newest first${portal ? ", at the price it is billed" : ""}.`} actions={<a className="button" href={file} download><Icon name="download" />CSV</a>}>
      <Card flush>
        <form
          className="filters" role="search" aria-label="Filter calls"
          onSubmit={(e) => {
            e.preventDefault();
            setProvider(asked.provider.trim());
            setModel(asked.model.trim());
            setID(asked.id.trim());
          }}
        >
          <Choice aria-label="Period" value={since} onChange={setSince} options={[["1h", "Last hour"], ["24h", "Last 24 hours"], ["7d", "Last 7 days"], ["30d", "Last 30 days"], ["90d", "Last 90 days"], ["all", "All time"]]} />
          <Choice aria-label="Status" value={status} onChange={setStatus} options={[["", "Any status"], ["ok", "Served"], ["4xx", "4xx"], ["429", "429"], ["5xx", "5xx"]]} />
          <Choice aria-label="State of the books" value={books} onChange={setBooks} options={[["", "Any books"], ...Object.keys(sure).map((s) => [s, s] as [string, string])]} />
          {seesKeys(app) && (
            <Choice aria-label="Key" style={{ width: 150 }} value={keyID} onChange={setKeyID} options={[["", "Any key"], ...(keys.data ?? []).map((k) => [k.id, nameOfKey(k)] as [string, string])]} />
          )}
          <span className="find" style={{ maxWidth: 190 }}>
            <Icon name="search" />
            <input aria-label="Model" placeholder="Model" value={asked.model} onChange={(e) => setAsked({ ...asked, model: e.target.value })} />
          </span>
          <span className="find" style={{ maxWidth: 190 }}>
            <Icon name="search" />
            <input aria-label={portal ? "Author" : "Provider"} placeholder={portal ? "Author" : "Provider"} value={asked.provider} onChange={(e) => setAsked({ ...asked, provider: e.target.value })} />
          </span>
          <span className="find">
            <Icon name="search" />
            <input aria-label="Request id" placeholder="Request id" value={asked.id} onChange={(e) => setAsked({ ...asked, id: e.target.value })} />
          </span>
          <Button type="submit">Filter</Button>
          {filtered && <Button look="quiet" onClick={() => go("/usage", "replace")}>Clear</Button>}
        </form>
        <Table
          label="Calls" columns={[...columns, { title: "Details", quiet: true, tight: true, cell: (r) => <Button look="quiet" icon="right" aria-label={`Details of the call at ${moment(r.created_at)}`} onClick={() => setOpen(r.id)} /> }]}
          rows={rows} failure={first.failure} again={first.again} id={(r) => r.id} page={0} bones={10} onOpen={(r) => setOpen(r.id)}
          empty={
            <Empty
              icon="usage" title={filtered ? "No call matches" : "No calls in the last 7 days"}
              action={
                <>
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

/** flat is the values of filters, of which each has one. */
function flat(filters: CallsQuery): Record<string, string | undefined> {
  return Object.fromEntries(Object.entries(filters ?? {}).map(([name, value]) => [name, Array.isArray(value) ? value[0] : value === undefined ? undefined : String(value)]));
}

function Details({ id, row, onClose }: { id: string; row: Call | undefined; onClose: () => void }) {
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
