import { useState } from "react";
import { api, body, type Budget, type Key, type StatsBucket, type SubAccount, type SubAccountChange } from "../shared/api";
import { day, integer, momentUTC, usd, usdAlike } from "../shared/format";
import { beganOf } from "../shared/period";
import { Link, go, useFilter } from "../shared/route";
import { refresh, useAction, useAsked } from "../shared/use";
import { asked } from "../shared/window";
import { Icon } from "../ui/icons";
import { Badge, Bones, Button, Card, Confirm, Dialog, Empty, Page, Segments, Text, Trouble } from "../ui/kit";
import { Download, Table, type Column } from "../ui/table";
import { useApp } from "./app";
import { BudgetCard, identity, PutBudget } from "./budgets";
import { dimensions, Figures } from "./figures";
import { NoScope } from "./gate";
import { Issue, State, stateOf, useKeys } from "./keys";
import { useCustomers } from "./lists";
import { NewestCalls } from "./usage";
import { CustomerWallet, useWallets } from "./wallet";

const change = (id: string, body: SubAccountChange) => api.PATCH("/gw/subaccounts/{id}", { params: { path: { id } }, body });

interface Line extends SubAccount {
  requests: number;
  cost: number;
  billed: number;
  known: boolean; // whether statistics are
}

/** useSpend is what each customer cost in the last 30 days, today included, as on the overview. */
function useSpend(when: boolean) {
  return useAsked<StatsBucket[]>(when ? "stats:sub_account_id:30d" : undefined, () => body(api.GET("/gw/stats", { params: { query: { group_by: "sub_account_id", since: beganOf("30d", Date.now()) } } })));
}

function lines(customers: SubAccount[] | undefined, spend: StatsBucket[] | undefined): Line[] | undefined {
  const by = new Map(spend?.map((b) => [b.key, b]));
  return customers?.map((c) => {
    const b = by.get(c.id);
    const cost = b?.total_cost_usd ?? 0;
    return { ...c, requests: b?.requests ?? 0, cost, billed: cost * (1 + c.markup_pct / 100), known: !!spend };
  });
}

const unknown = <span className="note">–</span>;

const columnsOf = (money: (v: number) => string): Column<Line>[] => [
  { title: "Customer", cell: (c) => <span className="two"><Link className="cut" to={"/customers/" + c.id}>{c.name}</Link><small className="cut">{c.slug}</small></span>, text: (c) => c.name },
  { title: "Status", tight: true, cell: (c) => <Badge tone={c.status === "active" ? "good" : "warn"}>{c.status}</Badge>, text: (c) => c.status },
  { title: "Markup", end: true, cell: (c) => `${c.markup_pct}%`, text: (c) => c.markup_pct },
  { title: "Requests", end: true, hide: "middle", cell: (c) => (c.known ? integer(c.requests) : unknown), text: (c) => c.requests },
  { title: "Cost", end: true, hide: "narrow", cell: (c) => (c.known ? money(c.cost) : unknown), text: (c) => c.cost },
  { title: "Billed", end: true, hide: "narrow", cell: (c) => (c.known ? money(c.billed) : unknown), text: (c) => c.billed },
  { title: "Margin", end: true, cell: (c) => (c.known ? money(c.billed - c.cost) : unknown), text: (c) => c.billed - c.cost },
  { title: "Since", end: true, hide: "middle", cell: (c) => day(c.created_at), text: (c) => c.created_at },
];

export function Customers() {
  const app = useApp();
  const may = app.can("keys:manage");
  const customers = useCustomers(may);
  const spend = useSpend(may && app.can("stats:read"));
  const [show, setShow] = useFilter("show", "all");
  const [text, setText] = useState("");
  const [creating, setCreating] = useState(false);
  if (!may) return <Page title="Customers"><NoScope scope="keys:manage" what="customers" /></Page>;
  const want = text.trim().toLowerCase();
  const complete = !spend.busy || spend.data; // both at once: rows do not jump
  const rows = lines(complete ? customers.data : undefined, spend.data)
    ?.filter((c) => (show === "all" || c.status === show) && (!want || c.name.toLowerCase().includes(want) || c.slug.includes(want) || c.id === want))
    .sort((a, b) => b.billed - a.billed || a.name.localeCompare(b.name));
  const columns = columnsOf(usdAlike(rows?.map((c) => c.billed) ?? []));
  const total = rows?.reduce((t, c) => ({ cost: t.cost + c.cost, billed: t.billed + c.billed }), { cost: 0, billed: 0 });
  return (
    <Page
      title="Customers" note="Sub-accounts of yours. Each has its own keys and budgets, and pays what its calls cost plus your markup."
      actions={<Button look="primary" icon="plus" onClick={() => setCreating(true)}>Add customer</Button>}
    >
      <Card flush>
        <div className="filters">
          <Segments label="Customers to show" value={show} onChange={setShow} options={[["all", "All"], ["active", "Active"], ["suspended", "Suspended"]]} />
          <span className="find"><Icon name="search" /><input aria-label="Find a customer" placeholder="Name or slug" value={text} onChange={(e) => setText(e.target.value)} /></span>
          <span className="grow" />
          <Total sums={spend.data && total} awaited={spend.busy || customers.busy} />
          <Download name="customers-30d" columns={columns} rows={rows} />
        </div>
        {spend.failure && <div className="pad"><Trouble failure={spend.failure} again={spend.again} /></div>}
        <Table
          label="Customers, with their figures of the last 30 days" columns={columns} rows={rows} failure={customers.failure} again={customers.again} id={(c) => c.id} bones={8}
          onOpen={(c) => go("/customers/" + c.id)}
          empty={
            customers.data?.length ? (
              <Empty icon="customers" title="No customer matches" action={<Button onClick={() => { setText(""); setShow("all"); }}>Clear filters</Button>} />
            ) : (
              <Empty icon="customers" title="No customers yet" action={<Button look="primary" icon="plus" onClick={() => setCreating(true)}>Add customer</Button>}>Add one to resell models under your own brand, with a markup and budgets of its own.</Empty>
            )
          }
        />
      </Card>
      {creating && <Create onClose={() => setCreating(false)} />}
    </Page>
  );
}

// On a narrow page the total has a line of its own, which is there before the
// figures are: what is below does not jump.
function Total({ sums, awaited }: { sums: { cost: number; billed: number } | undefined; awaited: boolean }) {
  if (!sums && !awaited) return null;
  const { billed, cost } = sums ?? { billed: 1000, cost: 900 };
  return <span className={sums ? "note num" : "note num unseen"} aria-hidden={!sums}>30 days: {usd(billed)} billed, {usd(billed - cost)} margin</span>;
}

function slugOf(name: string): string {
  return name.toLowerCase().normalize("NFD").replace(/\p{M}/gu, "").replace(/[^a-z0-9]+/g, "-").replace(/^-+|-+$/g, "").slice(0, 64);
}

function Create({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState("");
  const [slug, setSlug] = useState<string>();
  const [markup, setMarkup] = useState("20");
  const action = useAction();
  const shown = slug ?? slugOf(name);
  const submit = async () => {
    let made: SubAccount | undefined;
    const done = await action.run(async () => {
      made = await body(api.POST("/gw/subaccounts", { body: { name, slug: shown } }));
      refresh("subaccounts");
      if (Number(markup) !== 0) await change(made.id, { markup_pct: Number(markup) });
    });
    refresh("subaccounts");
    if (done && made) go("/customers/" + made.id);
    else if (made) onClose();
  };
  const wrongSlug = shown && !/^[a-z0-9-]{1,64}$/.test(shown) ? "Only a–z, 0–9 and hyphens, at most 64." : undefined;
  const wrongMarkup = checkMarkup(markup);
  return (
    <Dialog title="Add customer" onClose={onClose}>
      <form className="stack" onSubmit={(e) => { e.preventDefault(); void submit(); }}>
        <Text label="Name" value={name} required maxLength={200} onChange={setName} />
        <Text label="Slug" value={shown} required wrong={wrongSlug} note="How you refer to it; unique among your customers." onChange={setSlug} />
        <Text label="Markup, %" inputMode="decimal" value={markup} wrong={wrongMarkup} note="Billed price = cost × (1 + markup)." onChange={setMarkup} />
        {action.failure && <Trouble failure={action.failure} />}
        <div className="row end"><Button onClick={onClose}>Cancel</Button><Button type="submit" look="primary" busy={action.busy} disabled={!name.trim() || !shown || !!wrongSlug || !!wrongMarkup}>Add customer</Button></div>
      </form>
    </Dialog>
  );
}

function checkMarkup(text: string): string | undefined {
  const value = Number(text);
  return text.trim() === "" || !(value >= 0 && value <= 10_000) ? "From 0 to 10,000." : undefined;
}

const keyColumns: Column<Key>[] = [
  { title: "Key", cell: (k) => <Link className="two" to={"/keys/" + k.id}>{k.name && <span className="cut">{k.name}</span>}<code>{k.key_prefix}…</code></Link>, text: (k) => k.key_prefix },
  { title: "Status", tight: true, cell: (k) => <State of={k} />, text: stateOf },
  { title: "Scopes", hide: "narrow", cell: (k) => <span className="badges">{k.scopes.map((s) => <Badge key={s}>{s}</Badge>)}</span>, text: (k) => k.scopes.join(" ") },
  { title: "Created", end: true, hide: "narrow", cell: (k) => day(k.created_at), text: (k) => k.created_at },
];

export function Customer({ id }: { id: string }) {
  const app = useApp();
  const may = app.can("keys:manage");
  const customers = useCustomers(may);
  const spend = useSpend(may && app.can("stats:read"));
  const keys = useKeys(may);
  const budgets = useAsked<Budget[]>(may ? "budgets" : undefined, () => body(api.GET("/gw/budgets")));
  const wallets = useWallets(may && app.can("stats:read"));
  const [dialog, setDialog] = useState<"key" | "budget" | "suspend" | "edit">();
  if (!may) return <Page title="Customer"><NoScope scope="keys:manage" what="customers" /></Page>;
  const c = lines(customers.data, spend.data)?.find((x) => x.id === id);
  const back = <Link to="/customers">Customers</Link>;
  if (customers.failure) return <Page title="Customer" note={back}><Trouble failure={customers.failure} again={customers.again} /></Page>;
  const awaited = [customers, keys, budgets, wallets].some((x) => x.busy && !x.data); // all at once: nothing jumps
  if (awaited || !customers.data) return <Page title={<Bones height={28} width={220} />} note={back}><Bones height={240} /></Page>;
  if (!c) return <Page title="Customer" note={back}><div className="card"><Empty icon="customers" title="There is no such customer" action={<Link className="button" to="/customers">All customers</Link>} /></div></Page>;
  const own = budgets.data?.filter((b) => b.scope === "sub_account" && b.id === id);
  const mine = keys.data?.filter((k) => k.sub_account_id === id);
  return (
    <Page
      title={<span className="row">{c.name} <Badge tone={c.status === "active" ? "good" : "warn"}>{c.status}</Badge></span>} note={back}
      actions={
        <>
          <Button onClick={() => setDialog("edit")}>Edit</Button>
          {c.status === "active" ? <Button onClick={() => setDialog("suspend")}>Suspend</Button> : <Resume customer={c} />}
          {c.status === "active" && <Button look="primary" icon="plus" onClick={() => setDialog("key")}>Issue key</Button>}
        </>
      }
    >
      {c.status === "suspended" && <div className="hint warn"><Icon name="alert" /><div>Suspended: its keys are refused, and it cannot sign in to your portal, until you resume it.</div></div>}
      <div className="halves">
        <Card title="Last 30 days">
          <dl className="facts">
            <dt>Requests</dt><dd>{c.known ? integer(c.requests) : "–"}</dd>
            <dt>Cost to you</dt><dd>{c.known ? usd(c.cost) : "–"}</dd>
            <dt>Billed</dt><dd>{c.known ? usd(c.billed) : "–"}</dd>
            <dt>Margin</dt><dd>{c.known ? usd(c.billed - c.cost) : "–"}</dd>
          </dl>
          {spend.failure && <Trouble failure={spend.failure} again={spend.again} />}
        </Card>
        <Card title="About">
          <dl className="facts">
            <dt>Slug</dt><dd><code>{c.slug}</code></dd>
            <dt>Markup</dt><dd>{c.markup_pct}%</dd>
            <dt>Customer since</dt><dd>{momentUTC(c.created_at)}</dd>
            <dt>ID</dt><dd><code>{c.id}</code></dd>
          </dl>
        </Card>
      </div>
      {app.can("stats:read") && <Figures title="Last 30 days, by day" id={"customer:" + id} query={asked({ customer: id, since: "30d" })} filters={{ customer: id, since: "30d" }} groups={dimensions.filter(([d]) => d !== "sub_account_id")} />}
      <Card title="Budgets" note="Limits are on costs, before the markup." actions={<Button icon="plus" onClick={() => setDialog("budget")}>Set budget</Button>}>
        {budgets.failure ? <Trouble failure={budgets.failure} again={budgets.again} /> : !own ? <Bones height={90} /> : own.length === 0 ? <p className="note">None: the customer can spend as much as the organization may.</p> : <div className="budgets">{own.map((b) => <BudgetCard key={identity(b)} budget={b} name={c.name} />)}</div>}
      </Card>
      <CustomerWallet of={c.id} name={c.name} wallets={wallets} />
      {app.can("stats:read") && <NewestCalls filters={{ customer: id, since: "30d" }} />}
      <Card flush title="Keys" actions={<><Link className="button" to={"/keys?show=all"}>All keys</Link><Download name={`keys-${c.slug}`} columns={keyColumns} rows={mine} /></>}>
        <Table<Key>
          label={`Keys of ${c.name}`} rows={mine} failure={keys.failure} again={keys.again} id={(k) => k.id} bones={3} page={10}
          columns={keyColumns} onOpen={(k) => go("/keys/" + k.id)}
          empty={<Empty icon="keys" title="No keys yet">A key with all three scopes lets the customer sign in to your portal and see its usage.</Empty>}
        />
      </Card>
      {dialog === "key" && <Issue customer={c} onClose={() => setDialog(undefined)} />}
      {dialog === "budget" && <PutBudget scope="sub_account" id={c.id} name={c.name} onClose={() => setDialog(undefined)} />}
      {dialog === "edit" && <Edit customer={c} onClose={() => setDialog(undefined)} />}
      {dialog === "suspend" && <Suspend customer={c} onClose={() => setDialog(undefined)} />}
    </Page>
  );
}

function Edit({ customer, onClose }: { customer: SubAccount; onClose: () => void }) {
  const [name, setName] = useState(customer.name);
  const [markup, setMarkup] = useState(String(customer.markup_pct));
  const action = useAction();
  const wrong = checkMarkup(markup);
  const submit = async () => {
    if (await action.run(async () => void (await change(customer.id, { name, markup_pct: Number(markup) })))) {
      refresh("subaccounts");
      onClose();
    }
  };
  return (
    <Dialog title={`Edit ${customer.name}`} onClose={onClose}>
      <form className="stack" onSubmit={(e) => { e.preventDefault(); void submit(); }}>
        <Text label="Name" value={name} required maxLength={200} onChange={setName} />
        <Text label="Markup, %" inputMode="decimal" value={markup} wrong={wrong} note="A new markup applies to what is shown from now on, past usage included; billing events that are queued keep theirs." onChange={setMarkup} />
        {action.failure && <Trouble failure={action.failure} />}
        <div className="row end"><Button onClick={onClose}>Cancel</Button><Button type="submit" look="primary" busy={action.busy} disabled={!!wrong || !name.trim()}>Save</Button></div>
      </form>
    </Dialog>
  );
}

function Suspend({ customer, onClose }: { customer: SubAccount; onClose: () => void }) {
  const action = useAction();
  const yes = async () => {
    if (await action.run(async () => void (await change(customer.id, { status: "suspended" })))) {
      refresh("subaccounts");
      onClose();
    }
  };
  return (
    <Confirm title={`Suspend ${customer.name}?`} action="Suspend" busy={action.busy} failure={action.failure} onYes={yes} onClose={onClose}>
      <p>All of its keys are refused, and it is signed out of your portal, until you resume it. Nothing is lost.</p>
    </Confirm>
  );
}

function Resume({ customer }: { customer: SubAccount }) {
  const action = useAction();
  const run = () =>
    action.run(async () => {
      await change(customer.id, { status: "active" });
      refresh("subaccounts");
    });
  return (
    <>
      {action.failure && <span className="wrong">{action.failure.message}</span>}
      <Button look="primary" busy={action.busy} onClick={run}>Resume</Button>
    </>
  );
}
