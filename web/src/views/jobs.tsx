import { useState } from "react";
import { api, body, portal, type Job, type JobPage } from "../shared/api";
import { ago, counted, moment, momentUTC, usd, usdExact } from "../shared/format";
import { Link, useFilter } from "../shared/route";
import { useAction, useAsked } from "../shared/use";
import { Badge, Button, Card, Choice, Copy, Dialog, Empty, Page, Trouble } from "../ui/kit";
import { Download, Table, type Column } from "../ui/table";
import { useApp } from "./app";
import { NoScope } from "./gate";

const tones = { pending: "calm", succeeded: "good", failed: "bad", cancelled: "plain", expired: "warn" } as const;

const price = (j: Job) => (j.status === "pending" ? j.provisional_cost_usd : j.final_cost_usd);

const columns: Column<Job>[] = [
  { title: "Created (UTC)", tight: true, hide: "narrow", cell: (j) => moment(j.created_at), text: (j) => j.created_at },
  { title: "Job", cell: (j) => <span className="two"><code className="cut">{j.task_id}</code><small className="slim">{moment(j.created_at)}</small></span>, text: (j) => j.task_id },
  { title: "Model", hide: "narrow", cell: (j) => <span className="two"><span className="cut">{j.model}</span><small>{j.provider}</small></span>, text: (j) => j.model },
  { title: "Kind", hide: "middle", cell: (j) => j.kind, text: (j) => j.kind },
  { title: "Status", tight: true, cell: (j) => <Badge tone={tones[j.status] ?? "plain"}>{j.status}</Badge>, text: (j) => j.status },
  { title: portal ? "Billed" : "Cost", end: true, cell: (j) => <span title={j.status === "pending" ? "An estimate until the job ends" : undefined}>{j.status === "pending" ? "≈ " : ""}{usd(price(j))}</span>, text: price },
  { title: "Ended", hide: "middle", cell: (j) => (j.finalized_at ? <span title={momentUTC(j.finalized_at)}>{ago(j.finalized_at)}</span> : <span className="note">not yet</span>), text: (j) => j.finalized_at },
];

export function Jobs() {
  const app = useApp();
  const readable = app.can("stats:read");
  const [scope, setScope] = useFilter("scope", "client");
  const [status, setStatus] = useFilter("status");
  const [kind, setKind] = useFilter("kind");
  const key = `async:${scope}:${status}:${kind}`;
  const filters = { scope: scope as "key" | "client", status, kind };
  const first = useAsked<JobPage>(readable ? key : undefined, () => body(api.GET("/gw/async", { params: { query: { ...filters, limit: 100 } } })));
  const [rest, setRest] = useState<{ key: string; rows: Job[]; next: string }>();
  const [open, setOpen] = useState<Job>();
  const more = useAction();
  if (!readable) return <Page title="Jobs"><NoScope scope="stats:read" what="jobs" /></Page>;
  const tail = rest?.key === key ? rest : undefined;
  const rows = first.data && [...first.data.data, ...(tail?.rows ?? [])];
  const next = tail ? tail.next : first.data?.next_cursor;
  const load = () =>
    more.run(async () => {
      const data = await body(api.GET("/gw/async", { params: { query: { ...filters, limit: 200, cursor: next } } }));
      setRest({ key, rows: [...(tail?.rows ?? []), ...data.data], next: data.next_cursor });
    });
  const filtered = status || kind || scope !== "client";
  return (
    <Page title="Jobs" note="Videos and other work that takes a while: asked for in one call, fetched in another." actions={<><Button icon="refresh" busy={first.busy && !!first.data} onClick={first.again}>Refresh</Button><Download name="jobs" columns={columns} rows={rows} /></>}>
      <Card flush>
        <div className="filters">
          <Choice aria-label="Whose jobs" value={scope} onChange={setScope} options={[["client", portal ? "All of the account" : "All of the organization"], ["key", "Of this key"]]} />
          <Choice aria-label="Status" value={status} onChange={setStatus} options={[["", "Any status"], ...Object.keys(tones).map((s) => [s, s] as [string, string])]} />
          <Choice aria-label="Kind" value={kind} onChange={setKind} options={[["", "Any kind"], ["video", "video"], ["image", "image"], ["3d", "3d"], ["audio", "audio"]]} />
        </div>
        <Table
          label="Jobs" columns={[...columns, { title: "Details", quiet: true, tight: true, cell: (j) => <Button look="quiet" icon="right" aria-label={`Details of job ${j.task_id}`} onClick={() => setOpen(j)} /> }]}
          rows={rows} failure={first.failure} again={first.again} id={(j) => j.provider + j.task_id} page={0} bones={8} onOpen={setOpen}
          empty={<Empty icon="jobs" title={filtered ? "No job matches" : "No jobs yet"} action={!filtered && <Link className="button" to="/models?kind=video">Models that make videos</Link>}>{filtered ? "Another filter may show some." : <>Ask for a video with <code>POST /v1/videos</code>; the job and its price appear here.</>}</Empty>}
          foot={rows && <>{more.failure && <Trouble failure={more.failure} />}<span className="note" role="status">{counted(rows.length, "job")}</span>{next && <Button busy={more.busy} onClick={load}>Load more</Button>}</>}
        />
      </Card>
      {open && (
        <Dialog title="Job" onClose={() => setOpen(undefined)}>
          <dl className="facts">
            <dt>Job</dt><dd className="row"><code>{open.task_id}</code><Copy text={open.task_id} label="" look="quiet" /></dd>
            <dt>Status</dt><dd><Badge tone={tones[open.status] ?? "plain"}>{open.status}</Badge>{open.expiration_reason && <span className="note"> {open.expiration_reason}</span>}</dd>
            <dt>Model</dt><dd>{open.model}</dd>
            <dt>Author</dt><dd>{open.provider}</dd>
            <dt>Kind</dt><dd>{open.kind}</dd>
            <dt>Estimate</dt><dd>{usdExact(open.provisional_cost_usd)}</dd>
            <dt>{portal ? "Billed" : "Cost"}</dt><dd>{open.status === "pending" ? "not known yet" : usdExact(open.final_cost_usd)}</dd>
            <dt>Created</dt><dd>{momentUTC(open.created_at)}</dd>
            <dt>Ended</dt><dd>{open.finalized_at ? momentUTC(open.finalized_at) : "not yet"}</dd>
            {Object.entries(open.attribution).map(([k, v]) => [<dt key={k}><code>{k}</code></dt>, <dd key={k + "="}>{k === "sub_account_id" ? (app.nameOf(v) ?? v) : v}</dd>])}
          </dl>
        </Dialog>
      )}
    </Page>
  );
}
