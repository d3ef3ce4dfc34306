import { useState } from "react";
import { query, root, type Call, type Report, type Session } from "../shared/api";
import { counted, integer, percent, usd } from "../shared/format";
import { go, Link, useFilter, useRoute } from "../shared/route";
import { useAsked } from "../shared/use";
import { asked, callsAt, usualSince, type Filters } from "../shared/window";
import { Icon } from "../ui/icons";
import { Button, Card, Choice, Empty, FilterSheet, Page } from "../ui/kit";
import { Table, type Column } from "../ui/table";
import { AppContext, type App } from "../views/app";
import { dimensions, Figures, type Reader } from "../views/figures";
import { columnsOf, Details, filtersIn, optionsWith, Range } from "../views/usage";
import { call } from "./api";

export type AnyCall = Call & { organization_id: string; organization_name: string };

const read: Reader = (q) => call("GET", "/report" + query(q as Parameters<typeof query>[0]));

const groups: [string, string][] = [["organization", "Organization"], ...dimensions];

/** What the views of calls know elsewhere of the session; here names come with the calls. */
const nobody: App = { session: { name: "", scopes: [] } as unknown as Session, base: "", can: () => false, nameOf: () => undefined, suspended: () => false, named: true };

/** CallFigures are the figures of calls of all organizations that match filters. */
export function CallFigures({ title, filters }: { title: string; filters: Filters }) {
  return <Figures title={title} id={"operator:" + JSON.stringify(filters)} query={asked(filters)} filters={filters} groups={filters.organization ? dimensions : groups} read={read} />;
}

/** Sums are what calls come to by a dimension, the largest first; each row opens its calls. */
export function Sums({ by, title, filters }: { by: "organization" | "provider" | "model"; title: string; filters: Filters }) {
  const sums = useAsked<Report>(`operator:sums:${by}:${JSON.stringify(filters)}`, () => read({ ...asked(filters), group_by: [by], interval: "none", top: 20 }));
  const to = (row: Report["rows"][number]) => (row.other ? undefined : callsAt({ ...filters, [by]: row.group[0] }));
  const name = (row: Report["rows"][number]) => (row.other ? "All others" : row.label[0] || row.group[0] || "(none)");
  return (
    <Card flush title={title}>
      <Table
        label={title} rows={sums.data?.rows} failure={sums.failure} again={sums.again} id={(r) => r.group[0] ?? "others"} bones={4} page={0} empty={<Empty icon="chart" title="No calls yet" />}
        onOpen={(r) => { const there = to(r); if (there) go(there); }}
        columns={[
          { title: by[0]!.toUpperCase() + by.slice(1), cell: (r) => (by === "organization" && !r.other ? <Link className="cut" to={"/organizations/" + r.group[0]}>{name(r)}</Link> : <span className="cut">{name(r)}</span>) },
          { title: "Spend", end: true, cell: (r) => usd(r.cost_usd) },
          { title: "Calls", end: true, hide: "narrow", cell: (r) => { const there = to(r); return there ? <Link to={there} title="Calls">{integer(r.requests)}</Link> : integer(r.requests); } },
          { title: "Failed", end: true, hide: "narrow", cell: (r) => (r.errors ? <Link to={callsAt({ ...filters, [by]: r.group[0], status: "failed" })} title="Failed calls">{integer(r.errors)}</Link> : "0") },
          { title: "Error rate", end: true, cell: (r) => percent(r.errors / Math.max(1, r.requests)) },
        ]}
      />
    </Card>
  );
}

const most = 500; // calls that are listed

export function Calls({ names }: { names: Map<string, string> }) {
  const { params } = useRoute();
  const filters = filtersIn(params);
  const [open, setOpen] = useFilter("row");
  const [texts, setTexts] = useState({ model: filters.model ?? "", provider: filters.provider ?? "", id: filters.id ?? "" });
  const q = { ...asked(filters), ...(filters.sort && { sort: filters.sort }) };
  const calls = useAsked<AnyCall[]>("operator:calls:" + JSON.stringify(filters), () => call("GET", "/calls" + query({ ...q, limit: most } as Parameters<typeof query>[0])));
  const set = (changes: Filters) => {
    const next = { ...filters, ...changes };
    go("/calls" + query({ ...next, since: next.since === usualSince ? undefined : next.since, ...Object.fromEntries(["view", "metric", "by", "then", "sum"].map((n) => [n, params.get(n) ?? undefined])) }), "replace");
  };
  const filtered = Object.entries(filters).some(([name, value]) => value && name !== "sort" && !(name === "since" && value === usualSince));
  const columns: Column<AnyCall>[] = columnsOf(nobody).filter((c) => c.title !== "Attribution" && c.title !== "Books") as Column<AnyCall>[];
  columns.splice(2, 0, { title: "Organization", cell: (r) => <Link className="cut brief" to={"/organizations/" + r.organization_id}>{r.organization_name}</Link> });
  const clear = () => {
    setTexts({ model: "", provider: "", id: "" });
    go("/calls", "replace");
  };
  return (
    <AppContext value={nobody}>
      <Page title="Calls" note="Of all organizations, the newest first." actions={<a className="button" href={root + "/v1/calls" + query({ ...q, format: "csv" } as Parameters<typeof query>[0])} download><Icon name="download" />CSV</a>}>
        {!filters.id && <CallFigures title="Over time" filters={{ ...filters, sort: undefined }} />}
        <Card flush>
          <FilterSheet active={filtered}>
            <form className="filters" role="search" aria-label="Filter calls" onSubmit={(e) => { e.preventDefault(); set({ model: texts.model.trim() || undefined, provider: texts.provider.trim() || undefined, id: texts.id.trim() || undefined }); }}>
              <Range filters={filters} set={set} />
              <Choice aria-label="Organization" style={{ width: 180 }} value={filters.organization ?? ""} onChange={(organization) => set({ organization: organization || undefined })} options={optionsWith([["", "Any organization"], ...names], filters.organization)} />
              <Choice aria-label="Status" value={filters.status ?? ""} onChange={(status) => set({ status: status || undefined })} options={optionsWith([["", "Any status"], ["ok", "Served"], ["failed", "Failed"], ["4xx", "4xx"], ["429", "429"], ["5xx", "5xx"]], filters.status)} />
              {(["model", "provider", "id"] as const).map((name) => {
                const title = { model: "Model", provider: "Provider", id: "Request id" }[name];
                return <span className="find" key={name} style={{ maxWidth: 190 }}><Icon name="search" /><input aria-label={title} placeholder={title} value={texts[name]} onChange={(e) => setTexts({ ...texts, [name]: e.target.value })} /></span>;
              })}
              <Button type="submit">Filter</Button>
              {(["key", "author", "customer", "door", "kind", "tag"] as const).map((name) => filters[name] && <Button key={name} icon="close" aria-label={`Without ${name} ${filters[name]}`} onClick={() => set({ [name]: undefined })}>{name}: <span className="cut brief">{filters[name]}</span></Button>)}
              {filtered && <Button look="quiet" onClick={clear}>Clear</Button>}
            </form>
          </FilterSheet>
          <Table
            label="Calls" columns={[...columns, { title: "Details", quiet: true, tight: true, cell: (r) => <Button look="quiet" icon="right" aria-label={`Details of call ${r.id}`} onClick={() => setOpen(r.id)} /> }]}
            rows={calls.data} failure={calls.failure} again={calls.again} id={(r) => r.id} bones={10} onOpen={(r) => setOpen(r.id)}
            empty={<Empty icon="usage" title={filtered ? "No call matches" : "No calls in the last 7 days"} action={filtered && <Button onClick={clear}>Clear filters</Button>} />}
            foot={calls.data && <span className="note" role="status">{calls.data.length === most ? `The first ${most} calls; the file has all of them` : counted(calls.data.length, "call")}</span>}
          />
        </Card>
        {open && calls.data && <Details id={open} row={calls.data.find((r) => r.id === open)} onClose={() => setOpen("")} />}
      </Page>
    </AppContext>
  );
}
