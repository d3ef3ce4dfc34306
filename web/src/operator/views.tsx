import { useState, type ReactNode } from "react";
import { query } from "../shared/api";
import { ago, day, integer, momentUTC, usd } from "../shared/format";
import { go, Link, useFilter } from "../shared/route";
import { refresh, useAction, useAsked } from "../shared/use";
import { callsAt } from "../shared/window";
import { Icon } from "../ui/icons";
import { Badge, Button, Card, Choice, Code, Confirm, Dialog, Empty, Field, Menu, Page, Segments, Text, Trouble } from "../ui/kit";
import { Table, type Column } from "../ui/table";
import { call, digest, may, type Balance, type Change, type Operator, type OperatorKey, type Organization } from "./api";
import { Budgets } from "./books";
import { CallFigures } from "./calls";
import { Edit, SubAccounts } from "./organization";

const when = (text: string | null, none = "never") => (text ? <span title={momentUTC(text)}>{ago(text)}</span> : <span className="note">{none}</span>);

const Status = ({ of }: { of: string }) => <Badge tone={of === "active" ? "good" : of === "suspended" ? "warn" : "plain"}>{of}</Badge>;

export function useOrganizations(filter = "") {
  return useAsked<Organization[]>("organizations" + filter, () => call("GET", "/organizations" + (filter || "?limit=200")));
}

function Nothing({ icon, title, clear }: { icon: string; title: string; clear?: () => void }) {
  return <Empty icon={icon} title={title} action={clear && <Button onClick={clear}>Clear filters</Button>} />;
}

export function Organizations({ me }: { me: Operator }) {
  const [find, setFind] = useFilter("q");
  const [status, setStatus] = useFilter("status");
  const [sort, setSort] = useFilter("sort", "-spend_30d");
  const [creating, setCreating] = useState(false);
  const list = useOrganizations(query({ q: find.slice(0, 100), status, sort, limit: 200 }));
  const columns: Column<Organization>[] = [
    { title: "Organization", cell: (o) => <span className="two"><Link className="cut" to={"/organizations/" + o.id}>{o.name}</Link><small>{o.billing === "manual" ? "prepaid" : "invoiced"}</small></span> },
    { title: "Status", tight: true, cell: (o) => <Status of={o.status} /> },
    { title: "Spend, 30 days", end: true, cell: (o) => usd(o.spend_30d_usd) },
    { title: "Calls", end: true, hide: "narrow", cell: (o) => integer(o.requests_30d) },
    { title: "Balance", end: true, hide: "narrow", cell: (o) => (o.balance_usd === null ? <span className="note">–</span> : usd(o.balance_usd)) },
    { title: "Keys", end: true, hide: "middle", cell: (o) => integer(o.active_keys) },
    { title: "Last call", hide: "narrow", cell: (o) => when(o.last_call_at) },
  ];
  return (
    <Page title="Organizations" actions={may(me) && <Button look="primary" icon="plus" onClick={() => setCreating(true)}>Create</Button>}>
      <Card flush>
        <div className="filters">
          <span className="find"><Icon name="search" /><input aria-label="Find an organization" placeholder="Name or id" maxLength={100} value={find} onChange={(e) => setFind(e.target.value)} /></span>
          <Segments label="Organizations to show" value={status} onChange={setStatus} options={[["", "All"], ["active", "Active"], ["suspended", "Suspended"]]} />
          <Choice aria-label="Sort" value={sort} onChange={setSort} options={[["-spend_30d", "Most spent"], ["name", "Name"], ["-created_at", "Newest"]]} />
        </div>
        <Table
          label="Organizations" rows={list.data} failure={list.failure} again={list.again} id={(o) => o.id} columns={columns} onOpen={(o) => go("/organizations/" + o.id)}
          empty={find || status ? <Nothing icon="customers" title="No organization matches" clear={() => go("", "replace")} /> : <Nothing icon="customers" title="There is no organization yet" />}
        />
      </Card>
      {creating && <Create onClose={() => setCreating(false)} />}
    </Page>
  );
}

function Create({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState("");
  const [billing, setBilling] = useState("manual");
  const action = useAction();
  const create = () => action.run(async () => {
    const made = await call<Organization>("POST", "/organizations", { name, billing });
    refresh("organizations");
    go("/organizations/" + made.id);
  });
  return (
    <Dialog title="Create an organization" onClose={onClose}>
      <form className="stack" onSubmit={(e) => { e.preventDefault(); void create(); }}>
        <Text label="Name" value={name} onChange={setName} required maxLength={100} autoFocus />
        <Segments label="Billing" value={billing} onChange={setBilling} options={[["manual", "Prepaid"], ["invoiced", "Invoiced"]]} />
        {action.failure && <Trouble failure={action.failure} />}
        <div className="row end"><Button onClick={onClose}>Cancel</Button><Button type="submit" look="primary" busy={action.busy} disabled={!name.trim()}>Create</Button></div>
      </form>
    </Dialog>
  );
}

const Figure = ({ name, children }: { name: string; children: ReactNode }) => <div className="card"><p className="note">{name}</p><b>{children}</b></div>;

export function OneOrganization({ id, me }: { id: string; me: Operator }) {
  const asked = useAsked<Organization>("organizations/" + id, () => call("GET", "/organizations/" + id));
  const [asking, setAsking] = useState(false);
  const [editing, setEditing] = useState(false);
  const action = useAction();
  const o = asked.data;
  if (asked.failure) return <Page title="Organization"><Trouble failure={asked.failure} again={asked.again} /></Page>;
  if (!o) return <Page title="Organization"><div className="card" aria-busy="true" /></Page>;
  const set = (status: string) => action.run(async () => {
    await call("PATCH", "/organizations/" + id, { status });
    refresh("organizations", "audit");
    setAsking(false);
  });
  return (
    <Page
      title={o.name} note={<><code>{o.id}</code> since {day(o.created_at)}</>}
      actions={<><Status of={o.status} />{may(me) && <Button onClick={() => setEditing(true)}>Edit…</Button>}{may(me) && (o.status === "active" ? <Button look="danger" onClick={() => setAsking(true)}>Suspend…</Button> : <Button look="primary" busy={action.busy} onClick={() => void set("active")}>Resume</Button>)}</>}
    >
      {action.failure && !asking && <Trouble failure={action.failure} />}
      <div className="tiles">
        <Figure name="Spend, 30 days">{usd(o.spend_30d_usd)}</Figure>
        <Figure name="Calls, 30 days"><Link to={callsAt({ organization: id, since: "30d" })}>{integer(o.requests_30d)}</Link></Figure>
        <Figure name="Balance">{o.balance_usd === null ? "invoiced" : usd(o.balance_usd)}</Figure>
        <Figure name="Keys">{integer(o.active_keys)} of {integer(o.max_keys)}</Figure>
        <Figure name="Last call">{when(o.last_call_at)}</Figure>
      </div>
      <CallFigures title="Last 30 days, by day" filters={{ organization: id, since: "30d" }} />
      {o.billing === "manual" && <Money id={id} me={me} />}
      <Budgets id={id} me={me} />
      <SubAccounts id={id} me={me} />
      <KeyList title="Keys" me={me} filter={query({ organization: id, limit: 200 })} />
      <Changes filter={query({ organization: id, limit: 200 })} />
      {editing && <Edit of={o} onClose={() => setEditing(false)} />}
      {asking && (
        <Confirm title={`Suspend ${o.name}?`} action="Suspend" busy={action.busy} failure={action.failure} onYes={() => void set("suspended")} onClose={() => setAsking(false)}>
          <p>All its keys and sessions are refused within about a second, until it is resumed. Open calls complete.</p>
        </Confirm>
      )}
    </Page>
  );
}

function Money({ id, me }: { id: string; me: Operator }) {
  const asked = useAsked<Balance>("organizations/" + id + "/balance", () => call("GET", `/organizations/${id}/balance?limit=50`));
  const [entry, setEntry] = useState<string>(); // the id, so that sending it twice books it once
  const [amount, setAmount] = useState("");
  const [note, setNote] = useState("");
  const action = useAction();
  const add = () => action.run(async () => {
    await call("POST", `/organizations/${id}/balance/entries`, { id: entry, amount_usd: Number(amount), note });
    refresh("organizations", "audit");
    setEntry(undefined);
    setAmount("");
    setNote("");
  });
  const b = asked.data;
  return (
    <Card
      flush title="Balance" note={b && `${usd(b.credited_usd)} credited, ${usd(b.spent_usd)} spent, ${usd(b.held_usd)} held`}
      actions={may(me, "finance") && <Button icon="plus" onClick={() => setEntry(uuid7())}>Add entry</Button>}
    >
      <Table
        label="Balance entries" rows={b?.entries} failure={asked.failure} again={asked.again} id={(e) => e.id} bones={2} page={10} empty={<Nothing icon="billing" title="Nothing was credited yet" />}
        columns={[
          { title: "When", cell: (e) => when(e.at) },
          { title: "Note", cell: (e) => <span className="cut">{e.note}</span> },
          { title: "Amount", end: true, cell: (e) => usd(e.amount_usd) },
        ]}
      />
      {entry && (
        <Dialog title="Add an entry" onClose={() => setEntry(undefined)}>
          <form className="stack" onSubmit={(e) => { e.preventDefault(); void add(); }}>
            <Text label="Amount" lead="$" inputMode="decimal" value={amount} onChange={setAmount} required pattern="-?[0-9]+(\.[0-9]{1,9})?" note="Below 0 takes from the balance." autoFocus />
            <Text label="Note" value={note} onChange={setNote} required maxLength={200} />
            {action.failure && <Trouble failure={action.failure} />}
            <div className="row end"><Button onClick={() => setEntry(undefined)}>Cancel</Button><Button type="submit" look="primary" busy={action.busy}>Add</Button></div>
          </form>
        </Dialog>
      )}
    </Card>
  );
}

/** uuid7 is an id as the gateway draws them. */
function uuid7(): string {
  const b = crypto.getRandomValues(new Uint8Array(16));
  let at = Date.now();
  for (let i = 5; i >= 0; i--, at = Math.floor(at / 256)) b[i] = at % 256;
  b[6] = 0x70 | (b[6]! & 0x0f);
  b[8] = 0x80 | (b[8]! & 0x3f);
  const hex = [...b].map((n) => n.toString(16).padStart(2, "0")).join("");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

function KeyList({ title, me, filter, found, clear, tools }: { title?: string; me: Operator; filter: string; found?: OperatorKey[]; clear?: () => void; tools?: ReactNode }) {
  const asked = useAsked<OperatorKey[]>(found ? undefined : "keys" + filter, () => call("GET", "/keys" + filter));
  const names = useOrganizations().data;
  const [revoking, setRevoking] = useState<OperatorKey>();
  const action = useAction();
  const state = (k: OperatorKey) => (k.status === "revoked" ? "revoked" : k.expires_at && new Date(k.expires_at) <= new Date() ? "expired" : "active");
  const revoke = () => action.run(async () => {
    await call("DELETE", "/keys/" + revoking!.id);
    refresh("keys", "organizations", "audit");
    setRevoking(undefined);
  });
  const columns: Column<OperatorKey>[] = [
    { title: "Key", cell: (k) => <span className="two">{k.name && <span className="cut">{k.name}</span>}<code>{k.key_prefix}…</code></span> },
    { title: "Status", tight: true, cell: (k) => <Status of={state(k)} /> },
    { title: "Organization", cell: (k) => <Link className="cut brief" to={"/organizations/" + k.organization_id}>{names?.find((o) => o.id === k.organization_id)?.name ?? k.organization_id}</Link> },
    { title: "Scopes", hide: "middle", cell: (k) => k.scopes.join(", ") },
    { title: "Created", hide: "narrow", cell: (k) => when(k.created_at) },
    { title: "Last used", hide: "narrow", cell: (k) => when(k.last_used_at) },
    { title: "Actions", quiet: true, tight: true, cell: (k) => may(me, "support") && state(k) === "active" && <Menu label={`Actions for key ${k.name ?? k.key_prefix}`} items={[{ label: "Revoke…", danger: true, run: () => setRevoking(k) }]} /> },
  ];
  return (
    <Card flush title={title}>
      {tools}
      <Table label="Keys" rows={found ?? asked.data} failure={asked.failure} again={asked.again} id={(k) => k.id} columns={title ? columns.filter((c) => c.title !== "Organization") : columns} page={title ? 10 : 50} empty={<Nothing icon="keys" title={clear ? "No key matches" : "There is no key yet"} clear={clear} />} />
      {revoking && (
        <Confirm title="Revoke this key?" action="Revoke" busy={action.busy} failure={action.failure} onYes={() => void revoke()} onClose={() => setRevoking(undefined)}>
          <p>Calls with <code>{revoking.key_prefix}…</code> are refused within about a second, and so are keys that were issued with it. This cannot be undone.</p>
        </Confirm>
      )}
    </Card>
  );
}

export function Keys({ me }: { me: Operator }) {
  const [status, setStatus] = useFilter("status");
  const [text, setText] = useState("");
  const [by, setBy] = useState<object>();
  const action = useAction();
  const found = useAsked<OperatorKey[]>(by && "keys/find" + JSON.stringify(by), () => call("POST", "/keys/find", by));
  const clear = () => { setBy(undefined); setText(""); setStatus(""); };
  const find = () => action.run(async () => {
    const given = text.trim();
    setBy(/^gw_live_[0-9a-f]{48}$/.test(given) ? { digest: await digest(given) } : /^[0-9a-f-]{36}$/i.test(given) ? { id: given } : { prefix: given.slice(0, 16) });
  });
  return (
    <Page title="Keys" note="A pasted key is hashed in this browser and never sent.">
      <KeyList
        me={me} filter={query({ status, limit: 200 })} found={by && found.data} clear={by || status ? clear : undefined}
        tools={
          <form className="filters" onSubmit={(e) => { e.preventDefault(); void find(); }}>
            <span className="find"><Icon name="search" /><input aria-label="Find a key" type="password" autoComplete="off" placeholder="Key, its beginning, or id" minLength={12} required value={text} onChange={(e) => setText(e.target.value)} /></span>
            <Button type="submit" busy={action.busy || (!!by && found.busy)}>Find</Button>
            {by && <Button onClick={clear}>Clear</Button>}
            <span className="grow" />
            {!by && <Segments label="Keys to show" value={status} onChange={setStatus} options={[["", "All"], ["active", "Active"], ["expired", "Expired"], ["revoked", "Revoked"]]} />}
          </form>
        }
      />
      {(action.failure ?? found.failure) && <Trouble failure={(action.failure ?? found.failure)!} />}
    </Page>
  );
}

function Changes({ filter, tools, clear }: { filter: string; tools?: ReactNode; clear?: () => void }) {
  const asked = useAsked<Change[]>("audit" + filter, () => call("GET", "/audit" + filter));
  return (
    <Card flush title={tools ? undefined : "Changes"}>
      {tools}
      <Table
        label="Changes" rows={asked.data} failure={asked.failure} again={asked.again} id={(c) => c.id} page={tools ? 50 : 10} empty={<Nothing icon="evidence" title={clear ? "No change matches" : "Nothing was changed yet"} clear={clear} />}
        columns={[
          { title: "When", cell: (c) => when(c.at) },
          { title: "Action", cell: (c) => <code>{c.action}</code> },
          { title: "By", cell: (c) => <span className="cut brief">{Object.entries(c.actor).filter(([, v]) => v).map(([k, v]) => (k === "operator" ? v : `${k.replace("_id", "")} ${v}`)).join(", ")}</span> },
          { title: "Target", hide: "narrow", cell: (c) => <span className="two"><span>{c.target_type.replaceAll("_", " ")}</span><small className="cut">{c.target_id}</small></span> },
          { title: "Request", hide: "middle", cell: (c) => <small className="cut brief">{c.request_id || "–"}</small> },
        ]}
      />
    </Card>
  );
}

export function Audit() {
  const [action, setAction] = useFilter("action");
  const [text, setText] = useState(action);
  return (
    <Page title="Audit" note="The newest changes, and who made them.">
      <Changes
        filter={query({ action, limit: 200 })} clear={action ? () => { setAction(""); setText(""); } : undefined}
        tools={
          <form className="filters" onSubmit={(e) => { e.preventDefault(); setAction(text.trim()); }}>
            <span className="find"><Icon name="search" /><input aria-label="Action" placeholder="Action, such as key.revoke" value={text} onChange={(e) => setText(e.target.value)} /></span>
            <Button type="submit">Show</Button>
          </form>
        }
      />
    </Page>
  );
}

export function Access({ me }: { me: Operator }) {
  const [minting, setMinting] = useState(false);
  if (!may(me)) return <Page title="Access"><div className="card"><Empty icon="keys" title="Only admins see tokens and sessions" /></div></Page>;
  return (
    <Page title="Access" note="Who may use this console and the operator's API." actions={<Button look="primary" icon="plus" onClick={() => setMinting(true)}>Make token</Button>}>
      <Operators kind="tokens" me={me} />
      <Operators kind="sessions" me={me} />
      {minting && <Mint onClose={() => setMinting(false)} />}
    </Page>
  );
}

function Operators({ kind, me }: { kind: "tokens" | "sessions"; me: Operator }) {
  const asked = useAsked<Operator[]>(kind, () => call("GET", "/" + kind));
  const [ending, setEnding] = useState<Operator>();
  const action = useAction();
  const end = () => action.run(async () => {
    await call("DELETE", `/${kind}/${ending!.id}`);
    refresh("tokens", "sessions", "audit");
    setEnding(undefined);
  });
  return (
    <Card flush title={kind === "tokens" ? "Tokens" : "Sessions"}>
      <Table
        label={kind} rows={asked.data} failure={asked.failure} again={asked.again} id={(t) => t.id} bones={2} empty={<Nothing icon="keys" title={`There are no ${kind}`} />}
        columns={[
          { title: "Name", cell: (t) => <span className="two"><span className="cut">{t.name}</span>{t.id === me.id && <small>this session</small>}</span> },
          { title: "Role", tight: true, cell: (t) => <Badge>{t.role}</Badge> },
          { title: "Created", hide: "narrow", cell: (t) => when(t.created_at) },
          { title: "Ends", cell: (t) => when(t.expires_at) },
          { title: "Actions", quiet: true, tight: true, cell: (t) => <Menu label={`Actions for ${t.name}`} items={[{ label: "Revoke…", danger: true, run: () => setEnding(t) }]} /> },
        ]}
      />
      {ending && (
        <Confirm title={`Revoke ${ending.name}?`} action="Revoke" busy={action.busy} failure={action.failure} onYes={() => void end()} onClose={() => setEnding(undefined)}>
          <p>{kind === "tokens" ? "The token and sessions that were opened with it end at once." : "The session ends at once."}</p>
        </Confirm>
      )}
    </Card>
  );
}

function Mint({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState("");
  const [role, setRole] = useState("auditor");
  const [days, setDays] = useState("90");
  const [made, setMade] = useState<string>();
  const action = useAction();
  const mint = () => action.run(async () => {
    const answer = await call<{ token: string }>("POST", "/tokens", { name, role, expires_in_seconds: Number(days) * 86_400 });
    refresh("tokens", "audit");
    setMade(answer.token);
  });
  if (made) return <Dialog title="Token" onClose={onClose} firm><div className="stack"><p>Take it now: it is not shown again.</p><Code text={made} label="Token" /><div className="row end"><Button look="primary" onClick={onClose}>Done</Button></div></div></Dialog>;
  return (
    <Dialog title="Make a token" onClose={onClose}>
      <form className="stack" onSubmit={(e) => { e.preventDefault(); void mint(); }}>
        <Text label="Name" value={name} onChange={setName} required maxLength={100} note="Whose it is, or what for." autoFocus />
        <Field label="Role">{(ids) => <Choice {...ids} value={role} onChange={setRole} options={[["auditor", "Auditor: reads"], ["support", "Support: revokes keys"], ["finance", "Finance: changes money"], ["admin", "Admin: everything"]]} />}</Field>
        <Text label="Days" type="number" min={1} max={365} value={days} onChange={setDays} required />
        {action.failure && <Trouble failure={action.failure} />}
        <div className="row end"><Button onClick={onClose}>Cancel</Button><Button type="submit" look="primary" busy={action.busy} disabled={!name.trim()}>Make token</Button></div>
      </form>
    </Dialog>
  );
}
