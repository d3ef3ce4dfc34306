import { useState } from "react";
import { query, type Budget } from "../shared/api";
import { ago, momentUTC, percent, usd } from "../shared/format";
import { Link, useFilter } from "../shared/route";
import { refresh, useAction, useAsked } from "../shared/use";
import { callsAt } from "../shared/window";
import { Badge, Button, Card, Choice, Confirm, Dialog, Empty, Field, Menu, Meter, Page, Segments, Text, Trouble } from "../ui/kit";
import { Table } from "../ui/table";
import { call, may, type Operator } from "./api";

interface Job {
  id: string;
  task_id: string;
  organization_id: string;
  provider: string;
  model: string;
  status: string;
  provisional_cost_usd: number;
  final_cost_usd: number;
  created_at: string;
  finalized_at: string | null;
}

interface Event {
  usage_record_id: string;
  organization_id: string;
  status: string;
  attempts: number;
  amount_usd: number;
  created_at: string;
  last_error: string | null;
}

const when = (at: string) => <span title={momentUTC(at)}>{ago(at)}</span>;

const stateTone = (status: string) => (status === "succeeded" || status === "sent" ? "good" : status === "pending" ? "plain" : "bad");

const any = (values: string[]): [string, string][] => [["", "All"], ...values.map((v) => [v, v[0]!.toUpperCase() + v.slice(1)] as [string, string])];

export function Jobs({ me, names }: { me: Operator; names: Map<string, string> }) {
  const [status, setStatus] = useFilter("status", "pending");
  const jobs = useAsked<Job[]>("jobs:" + status, () => call("GET", "/jobs" + query({ status, limit: 200 })));
  const action = useAction();
  const poll = (j: Job) => action.run(async () => {
    await call("POST", `/jobs/${j.organization_id}/${encodeURIComponent(j.provider)}/${encodeURIComponent(j.task_id)}/poll`);
    refresh("jobs");
  });
  return (
    <Page title="Jobs" note="Asynchronous jobs of all organizations, the newest first.">
      <Card flush>
        <div className="filters"><Segments label="Jobs to show" value={status} onChange={setStatus} options={[["pending", "Pending"], ["succeeded", "Succeeded"], ["failed", "Failed"], ["expired", "Expired"], ["", "All"]]} /></div>
        {action.failure && <div className="pad"><Trouble failure={action.failure} /></div>}
        <Table
          label="Jobs" rows={jobs.data} failure={jobs.failure} again={jobs.again} id={(j) => j.id} bones={3}
          empty={<Empty icon="jobs" title={status ? `No job is ${status}` : "There was no job yet"} action={status && <Button onClick={() => setStatus("")}>Show all</Button>} />}
          columns={[
            { title: "Job", cell: (j) => <span className="two"><Link className="cut" to={callsAt({ id: j.id })}>{j.model}</Link><small className="cut">{j.provider} · {j.task_id}</small></span> },
            { title: "Status", tight: true, cell: (j) => <Badge tone={stateTone(j.status)}>{j.status}</Badge> },
            { title: "Organization", cell: (j) => <Link className="cut brief" to={"/organizations/" + j.organization_id}>{names.get(j.organization_id) ?? j.organization_id}</Link> },
            { title: "Cost", end: true, hide: "narrow", cell: (j) => usd(j.finalized_at ? j.final_cost_usd : j.provisional_cost_usd) },
            { title: "Began", hide: "narrow", cell: (j) => when(j.created_at) },
            { title: "Actions", quiet: true, tight: true, cell: (j) => may(me, "support") && j.status === "pending" && <Button aria-label={`Ask for job ${j.task_id} now`} busy={action.busy} onClick={() => void poll(j)}>Ask now</Button> },
          ]}
        />
      </Card>
    </Page>
  );
}

export function Events({ me, names }: { me: Operator; names: Map<string, string> }) {
  const [status, setStatus] = useFilter("status");
  const events = useAsked<Event[]>("events:" + status, () => call("GET", "/events" + query({ status, limit: 200 })));
  const [sending, setSending] = useState<Event>();
  const action = useAction();
  const send = (accept: boolean) => action.run(async () => {
    await call("POST", `/events/${sending!.usage_record_id}/resend`, accept ? { accept_double_billing: true } : {});
    refresh("events", "audit");
    setSending(undefined);
  });
  const doubted = action.failure?.status === 409;
  return (
    <Page title="Billing events" note="What is sent to payment processors, the newest first.">
      <Card flush>
        <div className="filters"><Segments label="Events to show" value={status} onChange={setStatus} options={any(["pending", "sent", "failed"])} /></div>
        <Table
          label="Billing events" rows={events.data} failure={events.failure} again={events.again} id={(e) => e.usage_record_id} bones={3}
          empty={<Empty icon="billing" title={status ? `No event is ${status}` : "There was no billing event yet"} action={status && <Button onClick={() => setStatus("")}>Show all</Button>} />}
          columns={[
            { title: "Call", cell: (e) => <Link className="cut brief" to={callsAt({ id: e.usage_record_id })}>{e.usage_record_id}</Link> },
            { title: "Status", tight: true, cell: (e) => <span title={e.last_error ?? undefined}><Badge tone={stateTone(e.status)}>{e.status}</Badge></span> },
            { title: "Organization", cell: (e) => <Link className="cut brief" to={"/organizations/" + e.organization_id}>{names.get(e.organization_id) ?? e.organization_id}</Link> },
            { title: "Amount", end: true, cell: (e) => usd(e.amount_usd) },
            { title: "Attempts", end: true, hide: "narrow", cell: (e) => e.attempts },
            { title: "Made", hide: "narrow", cell: (e) => when(e.created_at) },
            { title: "Actions", quiet: true, tight: true, cell: (e) => may(me, "finance") && e.status === "failed" && <Menu label={`Actions for event ${e.usage_record_id}`} items={[{ label: "Send again…", run: () => { action.clear(); setSending(e); } }]} /> },
          ]}
        />
      </Card>
      {sending && (
        <Confirm title="Send this event again?" action={doubted ? "Send it, even twice" : "Send again"} busy={action.busy} failure={action.failure} onYes={() => void send(doubted)} onClose={() => setSending(undefined)}>
          <p>{usd(sending.amount_usd)} are reported to the processor again. {doubted ? "It may have counted the event already: then the customer is billed twice." : "An event that may have been counted already is not sent without asking once more."}</p>
        </Confirm>
      )}
    </Page>
  );
}

type OperatorBudget = Budget & { held_usd: number };

/** Budgets are those of an organization, of all owners; the operator's own are changed here. */
export function Budgets({ id, me }: { id: string; me: Operator }) {
  const path = `/organizations/${id}/budgets`;
  const list = useAsked<OperatorBudget[]>(path, () => call("GET", path));
  const [setting, setSetting] = useState(false);
  const [amount, setAmount] = useState("");
  const [every, setEvery] = useState("month");
  const action = useAction();
  const set = () => action.run(async () => {
    await call("PUT", path, { scope: "client", limit_usd: Number(amount), ...(every === "week" || every === "total" ? { window: every } : { period: every }) });
    refresh(path, "audit");
    setSetting(false);
  });
  const remove = (b: OperatorBudget) => action.run(async () => {
    await call("DELETE", path + query({ scope: b.scope, id: b.id, ...(b.window ? { window: b.window } : { period: b.period }), match: b.match }));
    refresh(path, "audit");
  });
  const mine = (b: OperatorBudget) => b.owner === "operator";
  return (
    <Card flush title="Budgets" actions={may(me, "finance") && <Button icon="plus" onClick={() => { action.clear(); setSetting(true); }}>Set budget</Button>}>
      {action.failure && !setting && <div className="pad"><Trouble failure={action.failure} /></div>}
      <Table
        label="Budgets" rows={list.data} failure={list.failure} again={list.again} id={(b) => [b.scope, b.id, b.window ?? b.period, b.match, b.owner].join(" ")} bones={2} page={10} empty={<Empty icon="budgets" title="None: it may spend without a bound" />}
        columns={[
          { title: "Of", cell: (b) => <span className="two"><span>{b.scope === "client" ? "the organization" : b.scope === "key" ? "a key" : "a sub-account"}, {b.window ?? b.period}</span><small className="cut">{b.match ?? b.id ?? ""}</small></span> },
          { title: "Set by", hide: "narrow", cell: (b) => (mine(b) ? "the operator" : "the organization") },
          { title: "Spent", end: true, cell: (b) => usd(b.spend_usd) },
          { title: "Limit", end: true, cell: (b) => usd(b.limit_usd) },
          { title: "Held", end: true, hide: "middle", cell: (b) => usd(b.held_usd) },
          { title: "Used", hide: "narrow", cell: (b) => <span className="row"><span className="grow" style={{ minWidth: 60 }}><Meter value={b.spend_usd} limit={b.limit_usd} label="Used" /></span><span className="note num">{percent(b.limit_usd > 0 ? b.spend_usd / b.limit_usd : 1)}</span></span> },
          { title: "Actions", quiet: true, tight: true, cell: (b) => may(me, "finance") && mine(b) && <Menu label={`Actions for the budget by ${b.window ?? b.period}`} items={[{ label: "Remove", danger: true, run: () => void remove(b) }]} /> },
        ]}
      />
      {setting && (
        <Dialog title="Set a budget of the organization" onClose={() => setSetting(false)}>
          <form className="stack" onSubmit={(e) => { e.preventDefault(); void set(); }}>
            <Field label="Each">{(ids) => <Choice {...ids} value={every} onChange={setEvery} options={[["month", "Month"], ["week", "Week"], ["day", "Day"], ["total", "Altogether"]]} />}</Field>
            <Text label="Limit" lead="$" inputMode="decimal" value={amount} onChange={setAmount} required pattern="[0-9]+(\.[0-9]{1,9})?" />
            {action.failure && <Trouble failure={action.failure} />}
            <div className="row end"><Button onClick={() => setSetting(false)}>Cancel</Button><Button type="submit" look="primary" busy={action.busy} disabled={!(Number(amount) > 0)}>Save</Button></div>
          </form>
        </Dialog>
      )}
    </Card>
  );
}
