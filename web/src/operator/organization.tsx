import { useState } from "react";
import { refresh, useAction, useAsked } from "../shared/use";
import { Badge, Button, Card, Choice, Dialog, Empty, Field, Segments, Text, Trouble } from "../ui/kit";
import { Table } from "../ui/table";
import { call, may, type Operator, type Organization } from "./api";

const limitNames: [name: string, label: string][] = [["requests_per_second", "Requests a second"], ["burst", "At once after a pause"], ["concurrency", "Open at a time"]];

/** Edit changes what an organization may do, all of it in one step. */
export function Edit({ of: o, onClose }: { of: Organization; onClose: () => void }) {
  const [name, setName] = useState(o.name);
  const [billing, setBilling] = useState<string>(o.billing);
  const [policy, setPolicy] = useState(o.routing_policy);
  const [keys, setKeys] = useState(String(o.max_keys));
  const [limits, setLimits] = useState(Object.fromEntries(limitNames.map(([n]) => [n, o.limits[n] == null ? "" : String(o.limits[n])])));
  const action = useAction();
  const save = async () => {
    const done = await action.run(async () => {
      const set = Object.fromEntries(Object.entries(limits).filter(([, v]) => v.trim() !== "").map(([n, v]) => [n, Number(v)]));
      await call("PATCH", "/organizations/" + o.id, { name, billing, routing_policy: policy, max_keys: Number(keys), limits: set });
      refresh("organizations", "audit");
    });
    if (done) onClose();
  };
  return (
    <Dialog title={`Edit ${o.name}`} onClose={onClose}>
      <form className="stack" onSubmit={(e) => { e.preventDefault(); void save(); }}>
        <Text label="Name" value={name} onChange={setName} required maxLength={100} />
        <Segments label="Billing" value={billing} onChange={setBilling} options={[["manual", "Prepaid"], ["invoiced", "Invoiced"]]} />
        <Field label="Routing">{(ids) => <Choice {...ids} value={policy} onChange={setPolicy} options={[["any", "Any provider"], ["eu_only", "EU regions only"]]} />}</Field>
        <Text label="Keys at most" type="number" min={1} value={keys} onChange={setKeys} required />
        {limitNames.map(([n, label]) => <Text key={n} label={label} type="number" min={0} value={limits[n] ?? ""} onChange={(v) => setLimits({ ...limits, [n]: v })} note={n === "concurrency" ? "Of each key that has no limits of its own. Empty follows the configuration; 0 is unlimited." : undefined} />)}
        {action.failure && <Trouble failure={action.failure} />}
        <div className="row end"><Button onClick={onClose}>Cancel</Button><Button type="submit" look="primary" busy={action.busy} disabled={!name.trim()}>Save</Button></div>
      </form>
    </Dialog>
  );
}

interface SubAccount {
  id: string;
  name: string;
  slug: string;
  status: "active" | "suspended";
  markup_pct: number;
}

export function SubAccounts({ id, me }: { id: string; me: Operator }) {
  const path = `/organizations/${id}/subaccounts`;
  const list = useAsked<SubAccount[]>(path, () => call("GET", path));
  const action = useAction();
  const set = (s: SubAccount, status: string) => action.run(async () => {
    await call("PATCH", `${path}/${s.id}`, { status });
    refresh(path, "audit");
  });
  if (list.data?.length === 0) return null; // most organizations resell nothing
  return (
    <Card flush title="Sub-accounts">
      {action.failure && <div className="pad"><Trouble failure={action.failure} /></div>}
      <Table
        label="Sub-accounts" rows={list.data} failure={list.failure} again={list.again} id={(s) => s.id} bones={2} page={10} empty={<Empty icon="customers" title="None" />}
        columns={[
          { title: "Sub-account", cell: (s) => <span className="two"><span className="cut">{s.name}</span><small className="cut">{s.slug}</small></span> },
          { title: "Status", tight: true, cell: (s) => <Badge tone={s.status === "active" ? "good" : "warn"}>{s.status}</Badge> },
          { title: "Markup", end: true, cell: (s) => `${s.markup_pct}%` },
          { title: "Actions", quiet: true, tight: true, cell: (s) => may(me, "support") && <Button aria-label={`${s.status === "active" ? "Suspend" : "Resume"} ${s.name}`} busy={action.busy} onClick={() => void set(s, s.status === "active" ? "suspended" : "active")}>{s.status === "active" ? "Suspend" : "Resume"}</Button> },
        ]}
      />
    </Card>
  );
}
