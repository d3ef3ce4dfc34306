import { api, body, portal, type Budget } from "../shared/api";
import { ago, momentUTC } from "../shared/format";
import { Link } from "../shared/route";
import { useAsked } from "../shared/use";
import { asked } from "../shared/window";
import { Badge, Bones, Card, Empty, Page, Trouble } from "../ui/kit";
import { useApp } from "./app";
import { BudgetCard } from "./budgets";
import { dimensions, Figures } from "./figures";
import { NoScope, readScope, seesBudgets, seesKeys } from "./gate";
import { nameOfKey, State, useKeys } from "./keys";
import { NewestCalls } from "./usage";

/** OneKey is all about a key: what it may do, what it has cost, and its calls. */
export function OneKey({ id }: { id: string }) {
  const app = useApp();
  const may = seesKeys(app);
  const keys = useKeys(may);
  const budgets = useAsked<Budget[]>(may && seesBudgets(app) ? "budgets" : undefined, () => body(api.GET("/gw/budgets")));
  const back = <Link to="/keys">Keys</Link>;
  if (!may) return <Page title="Key"><NoScope scope={readScope} what="keys" /></Page>;
  if (keys.failure) return <Page title="Key" note={back}><Trouble failure={keys.failure} again={keys.again} /></Page>;
  if (!keys.data || (budgets.busy && !budgets.data)) return <Page title={<Bones height={28} width={220} />} note={back}><Bones height={240} /></Page>;
  const k = keys.data.find((one) => one.id === id);
  if (!k) return <Page title="Key" note={back}><div className="card"><Empty icon="keys" title="There is no such key" action={<Link className="button" to="/keys">All keys</Link>} /></div></Page>;
  const own = budgets.data?.filter((b) => b.scope === "key" && b.id === id) ?? [];
  const filters = { key: id, since: "30d" };
  const seesCalls = app.can("stats:read");
  const when = (at: string | null | undefined) => (at ? <span title={momentUTC(at)}>{ago(at)}</span> : <span className="note">never</span>);
  return (
    <Page title={<span className="row">{nameOfKey(k)} <State of={k} /></span>} note={back}>
      <Card title="About">
        <dl className="facts">
          <dt>Begins with</dt><dd><code>{k.key_prefix}…</code></dd>
          <dt>ID</dt><dd><code>{k.id}</code></dd>
          {!portal && <><dt>Belongs to</dt><dd>{k.sub_account_id ? <Link to={"/customers/" + k.sub_account_id}>{app.nameOf(k.sub_account_id) ?? k.sub_account_id}</Link> : "the organization"}</dd></>}
          <dt>Scopes</dt><dd><span className="badges wrap">{k.scopes.length ? k.scopes.map((s) => <Badge key={s}>{s}</Badge>) : <span className="note">none</span>}</span></dd>
          <dt>Created</dt><dd>{when(k.created_at)}</dd>
          <dt>Last used</dt><dd>{when(k.last_used_at)}</dd>
          <dt>Expires</dt><dd>{when(k.expires_at)}</dd>
        </dl>
      </Card>
      {seesCalls && <Figures title="Last 30 days, by day" id={"key:" + id} query={asked(filters)} filters={filters} groups={dimensions.filter(([d]) => d !== "key_id" && d !== "sub_account_id")} />}
      {own.length > 0 && <Card title="Budgets"><div className="budgets">{own.map((b) => <BudgetCard key={b.period} budget={b} name={nameOfKey(k)} fixed />)}</div></Card>}
      {seesCalls && <NewestCalls filters={filters} />}
    </Page>
  );
}
