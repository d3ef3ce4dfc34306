import { useState } from "react";
import { api, body as bodyOf, portal, type Ceiling, type IssuedKey, type Key, type Model, type NewKey, type Scope, type SubAccount, type Tuple } from "../shared/api";
import { ago, day, momentUTC } from "../shared/format";
import { go, Link, useFilter } from "../shared/route";
import { refresh, useAction, useAsked } from "../shared/use";
import { Icon } from "../ui/icons";
import { Badge, Button, Card, Check, Choice, Code, Confirm, Copy, Dialog, Empty, Field, Menu, Page, Segments, Trouble } from "../ui/kit";
import { Download, Table, type Column } from "../ui/table";
import { useApp } from "./app";
import { firstCall, useFirstModel } from "./firstcall";
import { develops, NoScope, readScope, seesKeys } from "./gate";

const scopeNames: Record<Scope, [string, string]> = {
  "inference:use": ["Call models", "Doors and provider proxy."],
  "stats:read": ["Read usage", "Usage, statistics, jobs and evidence."],
  "keys:manage": ["Manage", "Keys, customers, budgets, branding and billing: everything the organization may."],
};

export function stateOf(k: Key): "active" | "expired" | "revoked" {
  if (k.status === "revoked") return "revoked";
  return k.expires_at && new Date(k.expires_at) <= new Date() ? "expired" : "active";
}

/** State is a key's own, or that of its customer, whose suspension refuses it. */
export function State({ of: k }: { of: Key }) {
  const app = useApp();
  const state = stateOf(k);
  if (state === "active" && k.sub_account_id && app.suspended(k.sub_account_id)) return <Badge tone="warn">suspended</Badge>;
  return <Badge tone={state === "active" ? "good" : state === "expired" ? "warn" : "plain"}>{state}</Badge>;
}

/** nameOfKey is a key's name, or how it begins. */
export function nameOfKey(k: Pick<Key, "name" | "key_prefix">): string {
  return k.name ?? k.key_prefix + "…";
}

export function useKeys(when = true) {
  return useAsked<Key[]>(when ? "keys" : undefined, () => bodyOf(api.GET("/gw/keys")));
}

export function Keys() {
  const app = useApp();
  const may = seesKeys(app);
  const keys = useKeys(may);
  const [show, setShow] = useFilter("show", "active");
  const [text, setText] = useState("");
  const [issuing, setIssuing] = useState(false);
  const [revoking, setRevoking] = useState<Key>();
  if (!may) return <Page title="Keys"><NoScope scope={readScope} what="keys" /></Page>;
  const own = develops(app);
  const issue = portal ? app.session.allow_self_issue : own || app.can("keys:manage");
  const revocable = (k: Key) => issue && stateOf(k) === "active" && (own || app.can("keys:manage") || k.self_issued);
  const rows = (app.named ? keys.data : undefined)?.filter((k) => (show === "all" || stateOf(k) === show) && matches(k, text, app.nameOf));
  const columns = keyColumns(app.nameOf, app.session.key_id);
  return (
    <Page
      title="Keys"
      note={portal ? "Keys of yours that call models." : "Each call is made with a key. Its secret is shown once, when it is issued."}
      actions={issue && <Button look="primary" icon="plus" onClick={() => setIssuing(true)}>Issue key</Button>}
    >
      {portal && !issue && <div className="hint"><Icon name="keys" /><div>{app.product} issues and revokes keys for you.</div></div>}
      <Card flush>
        <div className="filters">
          <Segments label="Keys to show" value={show} onChange={setShow} options={[["active", "Active"], ["expired", "Expired"], ["revoked", "Revoked"], ["all", "All"]]} />
          <span className="find"><Icon name="search" /><input aria-label="Find a key" placeholder={portal ? "Name or prefix" : "Name, prefix, id or customer"} value={text} onChange={(e) => setText(e.target.value)} /></span>
          <span className="grow" />
          <Download name="keys" columns={[{ title: "ID", cell: () => null, text: (k) => k.id }, { title: "Name", cell: () => null, text: (k) => k.name }, ...columns]} rows={rows} />
        </div>
        <Table
          label="Keys" onOpen={(k) => go("/keys/" + k.id)} rows={rows} failure={keys.failure} again={keys.again} id={(k) => k.id} bones={8}
          columns={[
            ...columns,
            {
              title: "Actions", quiet: true, tight: true,
              cell: (k) => revocable(k) && <Menu label={`Actions for key ${k.name ?? k.key_prefix}`} items={[{ label: "Revoke…", danger: true, run: () => setRevoking(k) }]} />,
            },
          ]}
          empty={
            keys.data?.length && (text || show !== "active") ? (
              <Empty icon="keys" title="No key matches" action={<Button onClick={() => { setText(""); setShow("all"); }}>Clear filters</Button>}>Look among all keys, or for something else.</Empty>
            ) : (
              <Empty icon="keys" title="No active keys" action={issue && <Button look="primary" icon="plus" onClick={() => setIssuing(true)}>Issue key</Button>}>{issue ? "Issue one to call models with it." : `Ask ${app.product} for one.`}</Empty>
            )
          }
        />
      </Card>
      {issuing && (portal || own ? <SelfIssue onClose={() => setIssuing(false)} /> : <Issue onClose={() => setIssuing(false)} />)}
      {revoking && <Revoke target={revoking} onClose={() => setRevoking(undefined)} />}
    </Page>
  );
}

function matches(k: Key, text: string, nameOf: (id: string) => string | undefined): boolean {
  const want = text.trim().toLowerCase();
  return !want || [k.name ?? "", k.key_prefix, k.id, k.sub_account_id ? (nameOf(k.sub_account_id) ?? "") : ""].some((s) => s.toLowerCase().includes(want)) || want.startsWith(k.key_prefix);
}

function keyColumns(nameOf: (id: string) => string | undefined, mine: string): Column<Key>[] {
  const owner: Column<Key>[] = portal
    ? []
    : [{
        title: "Belongs to", hide: "narrow",
        cell: (k) => (k.sub_account_id ? <Link className="cut" to={"/customers/" + k.sub_account_id}>{nameOf(k.sub_account_id) ?? k.sub_account_id}</Link> : <span className="note">Organization</span>),
        text: (k) => (k.sub_account_id ? (nameOf(k.sub_account_id) ?? k.sub_account_id) : ""),
      }];
  return [
    {
      title: "Key",
      cell: (k) => <Link className="two" to={"/keys/" + k.id}>{k.name && <span className="cut">{k.name}</span>}<code>{k.key_prefix}…</code>{k.id === mine && <small>of this session</small>}</Link>,
      text: (k) => k.key_prefix,
    },
    { title: "Status", tight: true, cell: (k) => <State of={k} />, text: stateOf },
    { title: "Scopes", hide: "middle", cell: (k) => <span className="badges wrap">{k.scopes.length ? k.scopes.map((s) => <Badge key={s}>{s}</Badge>) : <span className="note">none</span>}</span>, text: (k) => k.scopes.join(" ") },
    ...owner,
    { title: "Created", hide: "narrow", cell: (k) => <span title={momentUTC(k.created_at)}>{day(k.created_at)}</span>, text: (k) => k.created_at },
    { title: "Last used", hide: "narrow", cell: (k) => (k.last_used_at ? <span title={momentUTC(k.last_used_at)}>{ago(k.last_used_at)}</span> : <span className="note">never</span>), text: (k) => k.last_used_at },
    { title: "Expires", hide: "narrow", cell: (k) => (k.expires_at ? <span title={momentUTC(k.expires_at)}>{ago(k.expires_at)}</span> : <span className="note">never</span>), text: (k) => k.expires_at },
  ];
}

function Revoke({ target, onClose }: { target: Key; onClose: () => void }) {
  const app = useApp();
  const action = useAction();
  const yes = async () => {
    if (await action.run(async () => void (await api.DELETE("/gw/keys/{id}", { params: { path: { id: target.id } } })))) {
      refresh("keys");
      onClose();
    }
  };
  return (
    <Confirm title="Revoke this key?" action="Revoke key" busy={action.busy} failure={action.failure} onYes={yes} onClose={onClose}>
      <p>Calls with {target.name && <strong>{target.name} </strong>}<code>{target.key_prefix}…</code> are refused from now on, on other instances within about half a minute. A revoked key never comes back; its usage stays in the books.</p>
      {target.id === app.session.key_id && <p><strong>You are signed in with this key.</strong> You will be signed out.</p>}
    </Confirm>
  );
}

const lifetimes: [string, string][] = [["", "Never"], ["86400", "In 1 day"], ["604800", "In 7 days"], ["2592000", "In 30 days"], ["7776000", "In 90 days"], ["31536000", "In 1 year"]];

/** Issue offers what the ceiling allows and nothing else. */
export function Issue({ onClose, customer }: { onClose: () => void; customer?: SubAccount }) {
  const ceiling = useAsked<Ceiling>("ceiling", () => bodyOf(api.GET("/gw/ceiling")));
  const customers = useAsked<SubAccount[]>("subaccounts", () => bodyOf(api.GET("/gw/subaccounts")));
  const models = useAsked<{ models: Model[] }>("models", () => bodyOf(api.GET("/gw/models")));
  const [scopes, setScopes] = useState<Scope[]>();
  const [name, setName] = useState("");
  const [owner, setOwner] = useState(customer?.id ?? "");
  const [life, setLife] = useState("");
  const [reach, setReach] = useState("ceiling");
  const [picked, setPicked] = useState<string[]>([]);
  const [blocked, setBlocked] = useState<string[]>([]);
  const [find, setFind] = useState("");
  const action = useAction();
  const [issued, setIssued] = useState<IssuedKey>();
  if (issued) return <Shown issued={issued} model={reach === "some" ? picked[0] : undefined} onClose={onClose} />;

  const chosen = scopes ?? ceiling.data?.max_scopes.filter((s) => (customer ? true : s === "inference:use")) ?? [];
  const callable = models.data?.models.filter((m) => m.allowed) ?? [];
  const kinds = [...new Set(callable.map((m) => m.kind))].sort();
  const submit = () =>
    action.run(async () => {
      const body: NewKey = { scopes: chosen };
      if (name.trim()) body.name = name;
      if (owner) body.sub_account_id = owner;
      if (life) body.expires_in_seconds = Number(life);
      const entitlements = wish(reach, picked, blocked, ceiling.data?.entitlements ?? []);
      if (entitlements) body.entitlements = entitlements;
      const answer = await bodyOf(api.POST("/gw/keys", { body }));
      refresh("keys");
      setIssued(answer);
    });
  return (
    <Dialog title={customer ? `Issue a key for ${customer.name}` : "Issue key"} onClose={onClose}>
      <form className="stack" onSubmit={(e) => { e.preventDefault(); void submit(); }}>
        {ceiling.failure && <Trouble failure={ceiling.failure} again={ceiling.again} />}
        <NameField value={name} onChange={setName} />
        <fieldset className="options">
          <legend className="legend-label">May</legend>
          {(["inference:use", "stats:read", "keys:manage"] as Scope[]).map((s) => {
            const allowed = ceiling.data?.max_scopes.includes(s) ?? false;
            return (
              <Check
                key={s} checked={chosen.includes(s)} disabled={!allowed} label={<>{scopeNames[s][0]} <code>{s}</code></>}
                note={ceiling.data && !allowed ? "Above the organization's ceiling." : owner && s === "keys:manage" ? "The customer's own keys and budgets." : scopeNames[s][1]}
                onChange={(on) => setScopes(on ? [...chosen, s] : chosen.filter((x) => x !== s))}
              />
            );
          })}
        </fieldset>
        <div className="formgrid">
          <Field label="Belongs to" note={owner ? "The customer's key: it sees nothing but that customer." : undefined}>
            {(ids) => <Choice {...ids} value={owner} disabled={!!customer} onChange={setOwner} options={[["", "The organization"], ...(customers.data ?? []).filter((c) => c.status === "active").map((c) => [c.id, c.name] as [string, string])]} />}
          </Field>
          <Field label="Expires">{(ids) => <Choice {...ids} value={life} onChange={setLife} options={lifetimes} />}</Field>
        </div>
        <div className="field">
          <span className="legend-label">Models</span>
          <Segments label="Models" value={reach} onChange={setReach} options={[["ceiling", "All of the ceiling"], ["some", "Only some"], ["none", "None"]]} />
          <p className="note">
            {reach === "ceiling" ? `The ceiling as it is now. It opens ${models.data ? callable.length : "…"} of the catalog's ${models.data ? models.data.models.length : "…"} models to you.` : reach === "some" ? "Allowed one by one, on the route that each has first." : "The key calls no model."}
          </p>
          {reach === "some" && (
            <>
              <span className="find" style={{ maxWidth: "none" }}><Icon name="search" /><input aria-label="Find a model" placeholder="Find a model" value={find} onChange={(e) => setFind(e.target.value)} /></span>
              <div className="picks" role="group" aria-label="Models the key may call" tabIndex={0}>
                {callable.filter((m) => m.slug.toLowerCase().includes(find.trim().toLowerCase())).map((m) => (
                  <Check key={m.slug} checked={picked.includes(m.slug)} label={m.slug} onChange={(on) => setPicked(on ? [...picked, m.slug] : picked.filter((x) => x !== m.slug))} />
                ))}
              </div>
            </>
          )}
        </div>
        {reach === "ceiling" && kinds.length > 1 && (
          <fieldset className="options">
            <legend className="legend-label">Except all models of the kind</legend>
            <div className="row">{kinds.map((k) => <Check key={k} label={k} checked={blocked.includes(k)} onChange={(on) => setBlocked(on ? [...blocked, k] : blocked.filter((x) => x !== k))} />)}</div>
          </fieldset>
        )}
        {action.failure && <Trouble failure={action.failure} />}
        <div className="row end">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary" busy={action.busy} disabled={!ceiling.data || (reach === "some" && picked.length === 0)}>Issue key</Button>
        </div>
      </form>
    </Dialog>
  );
}

/** NameField is what a new key is called. */
function NameField({ value, onChange }: { value: string; onChange: (name: string) => void }) {
  return <Field label="Name" note="What it is for, such as its program or team. It cannot be changed later.">{(ids) => <input {...ids} value={value} maxLength={100} onChange={(e) => onChange(e.target.value)} />}</Field>;
}

/** wish spells the chosen models as rules that the ceiling admits; undefined inherits all of it. */
function wish(reach: string, picked: string[], blocked: string[], ceiling: Tuple[]): Tuple[] | undefined {
  if (reach === "none") return [];
  if (reach === "some") {
    return picked.map((slug) => {
      const slash = slug.indexOf("/");
      return { axis: "vendor", provider: slug.slice(0, slash), model_pattern: slug.slice(slash + 1), effect: "allow" };
    });
  }
  if (blocked.length === 0) return undefined;
  return [...ceiling, ...blocked.map((kind): Tuple => ({ axis: "kind", provider: kind, model_pattern: "*", effect: "deny" }))];
}

/** Shown is the only time that a secret is seen. */
function Shown({ issued, model, onClose }: { issued: IssuedKey; model?: string; onClose: () => void }) {
  const app = useApp();
  const first = useFirstModel(model);
  return (
    <Dialog title="Key issued" onClose={onClose} firm>
      <div className="stack">
        <p>Copy it now. It is kept nowhere and cannot be shown again.</p>
        <div className="secret"><code data-testid="secret">{issued.key}</code><Copy text={issued.key} /></div>
        {issued.expires_at && <p className="note">It expires on {momentUTC(issued.expires_at)}.</p>}
        {issued.scopes.includes("inference:use") && first.door && <Code label="A first call" text={firstCall(app.base, first, issued.key)} />}
        <div className="row end"><Button look="primary" onClick={onClose}>I have stored it</Button></div>
      </div>
    </Dialog>
  );
}

/** portalLives are how long a key may live that is issued in a portal: 90 days, and no longer than the key that signed in. */
function portalLives(ends?: string): [string, string][] {
  const most = 7_776_000;
  const left = ends ? Math.max(1, Math.floor((Date.parse(ends) - Date.now()) / 1000) - 60) : most;
  const fit = lifetimes.filter(([v]) => v && Number(v) <= Math.min(most, left));
  return left < most ? [...fit, [String(left), "With the key of this session"]] : fit;
}

/** SelfIssue is the issuance of a customer in its portal. */
function SelfIssue({ onClose }: { onClose: () => void }) {
  const app = useApp();
  const lives = portalLives(app.session.key_expires_at);
  const [life, setLife] = useState(lives.find(([v]) => v === "2592000")?.[0] ?? lives[lives.length - 1]![0]);
  const [name, setName] = useState("");
  const [issued, setIssued] = useState<IssuedKey>();
  const action = useAction();
  if (issued) return <Shown issued={issued} onClose={onClose} />;
  const submit = () =>
    action.run(async () => {
      const answer = await bodyOf(api.POST("/gw/keys", { body: { scopes: ["inference:use"], expires_in_seconds: Number(life), name: name.trim() || undefined } }));
      refresh("keys");
      setIssued(answer);
    });
  return (
    <Dialog title="Issue key" onClose={onClose}>
      <form className="stack" onSubmit={(e) => { e.preventDefault(); void submit(); }}>
        <p className="note">The key calls models and does nothing else. You can have up to 10 active keys.</p>
        <NameField value={name} onChange={setName} />
        <Field label="Expires">{(ids) => <Choice {...ids} value={life} onChange={setLife} options={lives} />}</Field>
        {action.failure && <Trouble failure={action.failure} />}
        <div className="row end"><Button onClick={onClose}>Cancel</Button><Button type="submit" look="primary" busy={action.busy}>Issue key</Button></div>
      </form>
    </Dialog>
  );
}

