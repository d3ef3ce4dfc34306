import { useState } from "react";
import { api, body, session as ask, type ExportStatus, type ProcessorConfig, type ProcessorEvent, type ProcessorEvents, type Session, type SubAccount } from "../shared/api";
import { ago, integer, moment, momentUTC, usd, usdExact } from "../shared/format";
import { useFilter } from "../shared/route";
import { refresh, useAction, useAsked } from "../shared/use";
import { Badge, Bones, Button, Card, Check, Dialog, Empty, Menu, Page, Segments, Text, Trouble } from "../ui/kit";
import { Download, Table, type Column } from "../ui/table";
import { useApp } from "./app";
import { useCustomers } from "./lists";
import { NoScope } from "./gate";
import { Pay } from "./pay";
import { PaymentWebhook, usePaymentWebhook } from "./wallet";

export function Billing() {
  const app = useApp();
  const reads = app.can("stats:read");
  const config = useAsked<ProcessorConfig>(reads ? "processor:config" : undefined, () => body(api.GET("/gw/processor/config")));
  const hook = usePaymentWebhook(reads);
  const customers = useCustomers(app.can("keys:manage"));
  return (
    <Page title="Billing" note="Usage of your customers, sent to your payment processor as it is booked.">
      {app.session.billing === "manual" && app.can("keys:manage") && <TopUp />}
      {!reads ? (
        <NoScope scope="stats:read" what="billing export" />
      ) : config.failure ? (
        <Trouble failure={config.failure} again={config.again} />
      ) : config.data && (customers.data || !customers.busy) && (hook.data || hook.failure) ? (
        <>
          <Export config={config.data} />
          <PaymentWebhook hook={hook} />
          <Mappings config={config.data} />
          <Events />
        </>
      ) : (
        <Bones height={480} /> // all at once: nothing jumps
      )}
    </Page>
  );
}

function TopUp() {
  const app = useApp();
  const session = useAsked<Session>("session", () => ask("GET"));
  return (
    <Card title="Balance" note="Calls are paid from it. It is credited when a payment has come in." actions={<span className="figure num">{usd((session.data ?? app.session).balance_usd ?? 0)}</span>}>
      <Pay label="Top up by" first={50} least={5} most={10_000} begin={(amount_usd) => body(api.POST("/gw/billing/checkout", { body: { amount_usd } }))} />
    </Card>
  );
}

function Export({ config }: { config: ProcessorConfig }) {
  const app = useApp();
  const may = app.can("keys:manage");
  const [keying, setKeying] = useState(false);
  const action = useAction();
  const toggle = (enabled: boolean) =>
    action.run(async () => {
      await api.PUT("/gw/processor/config", { body: { enabled } });
      refresh("processor");
    });
  return (
    <Card
      title={<span className="row">Export <Badge tone={config.enabled ? "good" : "plain"}>{config.enabled ? "on" : "off"}</Badge></span>}
      note={config.configured ? "The processor's API key is stored, sealed; it is never shown again." : "Store the API key of your payment processor to begin."}
      actions={may && <><Button onClick={() => setKeying(true)}>{config.configured ? "Replace API key" : "Store API key"}</Button>{config.configured && <Button look={config.enabled ? "plain" : "primary"} busy={action.busy} onClick={() => toggle(!config.enabled)}>{config.enabled ? "Switch off" : "Switch on"}</Button>}</>}
    >
      {action.failure && <Trouble failure={action.failure} />}
      <p className="note">Each final usage row of a mapped customer becomes one event with its billed price. Duplicates are recognised by the row's id, so none is billed twice.</p>
      {keying && <StoreKey enabled={config.enabled} onClose={() => setKeying(false)} />}
    </Card>
  );
}

function StoreKey({ enabled, onClose }: { enabled: boolean; onClose: () => void }) {
  const [key, setKey] = useState("");
  const [on, setOn] = useState(true);
  const action = useAction();
  const submit = async () => {
    const done = await action.run(async () => void (await api.PUT("/gw/processor/config", { body: { enabled: enabled || on, api_key: key.trim() } })));
    if (done) {
      refresh("processor");
      onClose();
    }
  };
  return (
    <Dialog title="API key of the processor" onClose={onClose}>
      <form className="stack" onSubmit={(e) => { e.preventDefault(); void submit(); }}>
        <Text label="API key" type="password" autoComplete="off" value={key} required onChange={setKey} note="It is sealed under the gateway's master key and never shown again, in whole or part." />
        {!enabled && <Check label="Switch the export on" checked={on} onChange={setOn} />}
        {action.failure && <Trouble failure={action.failure} />}
        <div className="row end"><Button onClick={onClose}>Cancel</Button><Button type="submit" look="primary" busy={action.busy} disabled={!key.trim()}>Store</Button></div>
      </form>
    </Dialog>
  );
}

interface Mapping {
  customer: SubAccount;
  external: string | undefined;
}

function Mappings({ config }: { config: ProcessorConfig | undefined }) {
  const app = useApp();
  const may = app.can("keys:manage");
  const customers = useCustomers(may);
  const [mapping, setMapping] = useState<Mapping>();
  const action = useAction();
  if (!may) return null;
  const by = new Map(config?.mappings.map((m) => [m.sub_account_id, m.stripe_customer_id]));
  const rows = config && customers.data?.map((c): Mapping => ({ customer: c, external: by.get(c.id) }));
  const change = (request: () => Promise<unknown>) =>
    action.run(async () => {
      await request();
      refresh("processor");
    });
  const columns: Column<Mapping>[] = [
    { title: "Customer", cell: (m) => <span className="cut">{m.customer.name}</span>, text: (m) => m.customer.name },
    { title: "Customer at the processor", cell: (m) => (m.external ? <code>{m.external}</code> : <span className="note">not mapped: nothing is sent</span>), text: (m) => m.external },
  ];
  return (
    <Card flush title="Mappings" note="Which customer of the processor pays for which of yours." actions={<Download name="mappings" columns={columns} rows={rows} />}>
      {action.failure && <div className="pad"><Trouble failure={action.failure} /></div>}
      <Table
        label="Mappings" rows={rows} failure={customers.failure} again={customers.again} id={(m) => m.customer.id} page={10} bones={3}
        columns={[
          ...columns,
          {
            title: "Actions", quiet: true, tight: true,
            cell: (m) => (
              <Menu
                label={`Actions for ${m.customer.name}`}
                items={[
                  { label: m.external ? "Change mapping…" : "Map to a customer…", run: () => setMapping(m) },
                  ...(m.external ? [{ label: "Unmap", danger: true, run: () => void change(() => api.DELETE("/gw/processor/mappings/{sub_account_id}", { params: { path: { sub_account_id: m.customer.id } } })) }] : [{ label: "Create at the processor", run: () => void change(() => api.POST("/gw/processor/customers", { body: { sub_account_id: m.customer.id } })) }]),
                ]}
              />
            ),
          },
        ]}
        empty={<Empty icon="customers" title="No customers yet">Add customers first; then say who pays for them.</Empty>}
      />
      {mapping && <MapTo mapping={mapping} onClose={() => setMapping(undefined)} />}
    </Card>
  );
}

function MapTo({ mapping, onClose }: { mapping: Mapping; onClose: () => void }) {
  const [id, setID] = useState(mapping.external ?? "");
  const action = useAction();
  const submit = async () => {
    if (await action.run(async () => void (await api.PUT("/gw/processor/mappings/{sub_account_id}", { params: { path: { sub_account_id: mapping.customer.id } }, body: { stripe_customer_id: id.trim() } })))) {
      refresh("processor");
      onClose();
    }
  };
  return (
    <Dialog title={`Who pays for ${mapping.customer.name}?`} onClose={onClose}>
      <form className="stack" onSubmit={(e) => { e.preventDefault(); void submit(); }}>
        <Text label="Customer id at the processor" placeholder="cus_…" value={id} required onChange={setID} />
        {action.failure && <Trouble failure={action.failure} />}
        <div className="row end"><Button onClick={onClose}>Cancel</Button><Button type="submit" look="primary" busy={action.busy} disabled={!id.trim()}>Save</Button></div>
      </form>
    </Dialog>
  );
}

const tones = { pending: "calm", sent: "good", failed: "bad" } as const;

// As many as the gateway lists at once.
const mostEvents = 200;

function Events() {
  const app = useApp();
  const [status, setStatus] = useFilter("events");
  const events = useAsked<ProcessorEvents>("processor:events:" + status, () => body(api.GET("/gw/processor/events", { params: { query: { status: status as ExportStatus, limit: mostEvents } } })));
  const [open, setOpen] = useState<ProcessorEvent>();
  const counts = events.data?.counts;
  const columns: Column<ProcessorEvent>[] = [
    { title: "Queued (UTC)", tight: true, hide: "narrow", cell: (e) => moment(e.created_at), text: (e) => e.created_at },
    { title: "Customer", cell: (e) => <span className="two"><span className="cut">{app.nameOf(e.sub_account_id) ?? e.sub_account_id}</span><small className="slim">{moment(e.created_at)}</small></span>, text: (e) => app.nameOf(e.sub_account_id) ?? e.sub_account_id },
    { title: "Status", tight: true, cell: (e) => <Badge tone={tones[e.status]}>{e.status}</Badge>, text: (e) => e.status },
    { title: "Tries", end: true, hide: "narrow", cell: (e) => e.attempts, text: (e) => e.attempts },
    { title: "Amount", end: true, cell: (e) => usdExact(e.amount_usd), text: (e) => e.amount_usd },
    { title: "Last error", hide: "middle", cell: (e) => <span className="cut">{e.last_error ?? ""}</span>, text: (e) => e.last_error },
    { title: "Usage row", cell: () => null, text: (e) => e.usage_record_id, quiet: true, hide: "middle" },
  ];
  return (
    <Card
      flush title="Events" note={!counts ? "…" : `${integer(counts.pending)} pending${counts.pending ? `, the oldest for ${Math.round((events.data?.oldest_pending_age_seconds ?? 0) / 60)} min` : ""} · ${integer(counts.sent_24h)} sent in 24 hours · ${integer(counts.failed)} failed`}
      actions={<><Segments label="Events to show" value={status} onChange={setStatus} options={[["", "All"], ["pending", "Pending"], ["sent", "Sent"], ["failed", "Failed"]]} /><Download name="events" columns={columns} rows={events.data?.events} /></>}
    >
      <Table
        label="Events" rows={events.data?.events} failure={events.failure} again={events.again} id={(e) => e.usage_record_id} page={25} bones={5} onOpen={setOpen}
        foot={events.data?.events.length === mostEvents && <span className="note">The newest {mostEvents}. Older ones are found by their state.</span>}
        columns={[...columns.filter((c) => c.title !== "Usage row"), { title: "Actions", quiet: true, tight: true, cell: (e) => (e.status === "failed" && app.can("keys:manage") ? <Retry event={e} /> : <Button look="quiet" icon="right" aria-label="Details of the event" onClick={() => setOpen(e)} />) }]}
        empty={<Empty icon="billing" title={status ? `No ${status} events` : "No events yet"}>They are queued when a mapped customer's call is booked while the export is on.</Empty>}
      />
      {open && (
        <Dialog title="Event" onClose={() => setOpen(undefined)}>
          <dl className="facts">
            <dt>Usage row</dt><dd><code>{open.usage_record_id}</code></dd>
            <dt>Customer</dt><dd>{app.nameOf(open.sub_account_id) ?? open.sub_account_id} · <code>{open.stripe_customer_id}</code></dd>
            <dt>Status</dt><dd><Badge tone={tones[open.status]}>{open.status}</Badge></dd>
            <dt>Amount</dt><dd>{usd(open.amount_usd)} <span className="note">({usdExact(open.amount_usd)})</span></dd>
            <dt>Tries</dt><dd>{open.attempts}</dd>
            <dt>Queued</dt><dd>{momentUTC(open.created_at)}</dd>
            {open.next_attempt_at && open.status === "pending" && <><dt>Next try</dt><dd>{ago(open.next_attempt_at)}</dd></>}
            {open.sent_at && <><dt>Sent</dt><dd>{momentUTC(open.sent_at)}</dd></>}
            {open.last_error && <><dt>Last error</dt><dd>{open.last_error}</dd></>}
          </dl>
        </Dialog>
      )}
    </Card>
  );
}

function Retry({ event }: { event: ProcessorEvent }) {
  const action = useAction();
  const run = () =>
    action.run(async () => {
      await api.POST("/gw/processor/events/{usage_record_id}/retry", { params: { path: { usage_record_id: event.usage_record_id } } });
      refresh("processor:events");
    });
  return (
    <>
      <Button busy={action.busy} onClick={run}>Retry</Button>
      {action.failure && <Dialog title="It was not retried" onClose={action.clear}><Trouble failure={action.failure} /></Dialog>}
    </>
  );
}

