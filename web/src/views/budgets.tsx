import { useState } from "react";
import { api, body, portal, type Budget, type BudgetScope } from "../shared/api";
import { integer, percent, usd } from "../shared/format";
import { Link } from "../shared/route";
import { refresh, useAction, useAsked } from "../shared/use";
import { callsAt } from "../shared/window";
import { Icon } from "../ui/icons";
import { Badge, Bones, Button, Card, Choice, Confirm, Dialog, Empty, Field, Menu, Meter, Page, Text, Trouble } from "../ui/kit";
import { Download } from "../ui/table";
import { useApp } from "./app";
import { useCustomers } from "./customers";
import { NoScope, readScope, seesBudgets, seesKeys } from "./gate";
import { nameOfKey, useKeys } from "./keys";

// Cards of a kind that are shown unasked, and budgets from which on they are
// looked for.
const firstCards = 24;
const findable = 12;

/** span names the time that a budget is over, in a sentence. */
const span = (b: Budget) => (b.window === "total" ? "altogether" : `by the ${b.window ?? b.period}`);

/** now names the current one. */
const now = (b: Budget) => (b.window === "total" ? "Altogether" : b.window === "week" ? "This week" : b.period === "day" ? "Today" : "This month");

/** identity tells budgets of one target apart. */
const identity = (b: Budget) => [b.id ?? "", b.window ?? b.period, b.match ?? "", b.owner ?? ""].join(" ");

/** fill is how full a budget is; where each value has the limit, how full the fullest is. */
const fill = (b: Budget) => (b.limit_usd > 0 ? (b.values ? (b.values[0]?.spend_usd ?? 0) : b.spend_usd) / b.limit_usd : 1);

export function Budgets() {
  const app = useApp();
  const may = seesBudgets(app);
  const change = app.can("keys:manage");
  const budgets = useAsked<Budget[]>(may ? "budgets" : undefined, () => body(api.GET("/gw/budgets")));
  const keys = useKeys(may && seesKeys(app));
  const [setting, setSetting] = useState(false);
  const [text, setText] = useState("");
  const [whole, setWhole] = useState<BudgetScope[]>([]);
  if (!may) return <Page title="Budgets"><NoScope scope={readScope} what="budgets" /></Page>;
  const prefixes = new Map(keys.data?.map((k) => [k.id, nameOfKey(k)]));
  const nameOf = (b: Budget) => {
    if (b.scope === "client") return app.session.name;
    if (b.scope === "sub_account") return portal ? app.session.name : (app.nameOf(b.id ?? "") ?? b.id ?? "");
    return prefixes.get(b.id ?? "") ?? b.id ?? "";
  };
  const groups: [BudgetScope, string, string][] = [
    ["client", "Organization", "Everything that is spent counts here."],
    ["sub_account", portal ? "Account" : "Customers", portal ? "Everything you spend counts here." : "What each customer's calls cost."],
    ["key", "Keys", "What is spent with one key."],
  ];
  // The fullest first: they are what somebody has to look at.
  const want = text.trim().toLowerCase();
  const named = app.named && (!keys.busy || keys.data); // all at once: cards do not move
  const shown = (named ? budgets.data : undefined)
    ?.map((b) => ({ b, name: nameOf(b) }))
    .filter(({ b, name }) => !want || name.toLowerCase().includes(want) || b.id === want)
    .sort((x, y) => fill(y.b) - fill(x.b) || x.name.localeCompare(y.name) || identity(x.b).localeCompare(identity(y.b)))
    .map(({ b }) => b);
  const columns = [
    { title: "Scope", cell: () => null, text: (b: Budget) => b.scope },
    { title: "Of", cell: () => null, text: nameOf },
    { title: "Period", cell: () => null, text: (b: Budget) => b.window ?? b.period ?? "" },
    { title: "Match", cell: () => null, text: (b: Budget) => b.match ?? "" },
    { title: "Mode", cell: () => null, text: (b: Budget) => b.mode ?? "hard" },
    { title: "Spent", cell: () => null, text: (b: Budget) => b.spend_usd },
    { title: "Limit", cell: () => null, text: (b: Budget) => b.limit_usd },
  ];
  return (
    <Page
      title="Budgets" note={`A call is refused when any budget above it is used up. Days and months are UTC${portal ? ", amounts are what you are billed" : ", amounts are costs"}.`}
      actions={<><Download name="budgets" columns={columns} rows={shown} />{change && <Button look="primary" icon="plus" onClick={() => setSetting(true)}>Set budget</Button>}</>}
    >
      {shown && (budgets.data?.length ?? 0) > findable && <span className="find"><Icon name="search" /><input aria-label="Find a budget" placeholder={portal ? "Key" : "Customer or key"} value={text} onChange={(e) => setText(e.target.value)} /></span>}
      {want && shown?.length === 0 && <div className="card"><Empty icon="budgets" title="No budget matches" /></div>}
      {budgets.failure ? (
        <Trouble failure={budgets.failure} again={budgets.again} />
      ) : !budgets.data || !shown ? (
        <div className="budgets">{[0, 1, 2].map((i) => <Bones key={i} height={126} />)}</div>
      ) : budgets.data.length === 0 ? (
        <div className="card">
          <Empty icon="budgets" title="No budgets" action={change && <Button look="primary" icon="plus" onClick={() => setSetting(true)}>Set budget</Button>}>
            {portal ? `None is set on your account.${change ? " You can set one for each of your keys." : ""}` : "Set one so that spending stops by itself: for the organization, a customer or a key."}
          </Empty>
        </div>
      ) : (
        groups.map(([scope, title, note]) => {
          const list = shown?.filter((b) => b.scope === scope) ?? [];
          const first = whole.includes(scope) ? list : list.slice(0, firstCards);
          return (
            list.length > 0 && (
              <Card key={scope} title={title} note={note} actions={list.length > first.length && <Button onClick={() => setWhole([...whole, scope])}>Show all {integer(list.length)}</Button>}>
                <div className="budgets">{first.map((b) => <BudgetCard key={identity(b)} budget={b} name={nameOf(b)} fixed={!change || (portal && scope !== "key")} />)}</div>
              </Card>
            )
          );
        })
      )}
      {setting && <PutBudget onClose={() => setSetting(false)} />}
    </Page>
  );
}

/** callsOf is where the calls are that a budget counts now; a budget of some calls only has no such page. */
function callsOf(b: Budget): string | undefined {
  if (b.match) return undefined;
  const now = new Date();
  const [year, month, day] = [now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate()];
  const every = b.window ?? b.period;
  const start = every === "day" ? Date.UTC(year, month, day) : every === "week" ? Date.UTC(year, month, day - ((now.getUTCDay() + 6) % 7)) : Date.UTC(year, month, 1);
  const of = b.scope === "key" ? { key: b.id } : b.scope === "sub_account" && !portal ? { customer: b.id } : {};
  return callsAt({ ...(every === "total" ? { since: "all" } : { from: new Date(start).toISOString() }), ...of });
}

/** BudgetCard shows how full a budget is; a fixed one is somebody else's to change. */
export function BudgetCard({ budget, name, fixed }: { budget: Budget; name: string; fixed?: boolean }) {
  const [dialog, setDialog] = useState<"edit" | "remove">();
  const app = useApp();
  const calls = app.can("stats:read") && callsOf(budget);
  const share = fill(budget);
  const each = budget.values !== undefined;
  return (
    <div className="budget">
      <div className="row apart" style={{ flexWrap: "nowrap" }}>
        <span className="grow">
          {budget.scope === "sub_account" && !portal ? <Link className="cut" style={{ display: "block" }} to={"/customers/" + budget.id}>{name}</Link> : <b className={"cut" + (budget.scope === "key" ? " mono" : "")} style={{ display: "block" }}>{name}</b>}
        </span>
        <Badge>{now(budget)}</Badge>
        {!fixed && <Menu label={`Actions for the budget of ${name} ${span(budget)}`} items={[{ label: "Change limit…", run: () => setDialog("edit") }, { label: "Remove…", danger: true, run: () => setDialog("remove") }]} />}
      </div>
      {budget.match && <span className="note cut mono">{budget.match}</span>}
      <span><span className="figure">{calls ? <Link to={calls} title="Calls">{usd(budget.spend_usd)}</Link> : usd(budget.spend_usd)}</span> <span className="note num">of {usd(budget.limit_usd)}</span></span>
      <Meter value={each ? (budget.values?.[0]?.spend_usd ?? 0) : budget.spend_usd} limit={budget.limit_usd} label={`Budget of ${name} ${span(budget)}`} />
      <span className="note num">{each ? `${integer(budget.values?.length ?? 0)} values, each with the whole limit` : share >= 1 ? <Badge tone="bad">{budget.mode === "soft" ? "Used up: soft, calls go on" : "Used up: calls are refused"}</Badge> : `${percent(share)} used, ${usd(budget.limit_usd - budget.spend_usd)} left`}</span>
      {dialog === "edit" && <PutBudget budget={budget} scope={budget.scope} id={budget.id} name={name} onClose={() => setDialog(undefined)} />}
      {dialog === "remove" && <Remove budget={budget} name={name} onClose={() => setDialog(undefined)} />}
    </div>
  );
}

function Remove({ budget, name, onClose }: { budget: Budget; name: string; onClose: () => void }) {
  const action = useAction();
  const yes = async () => {
    if (await action.run(async () => void (await api.DELETE("/gw/budgets", { params: { query: { scope: budget.scope, id: budget.id, period: budget.period, window: budget.window, match: budget.match } } })))) {
      refresh("budgets");
      onClose();
    }
  };
  return (
    <Confirm title="Remove this budget?" action="Remove" busy={action.busy} failure={action.failure} onYes={yes} onClose={onClose}>
      <p>What {name} spends {span(budget)} is no longer limited here. Budgets above it still hold.</p>
    </Confirm>
  );
}

/** PutBudget sets a budget; what is given is fixed. Of one that is there the limit alone changes. */
export function PutBudget({ budget, scope, id, name, onClose }: { budget?: Budget; scope?: BudgetScope; id?: string; name?: string; onClose: () => void }) {
  const app = useApp();
  const customers = useCustomers(!scope && !portal);
  const keys = useKeys(!scope);
  const [level, setLevel] = useState<BudgetScope>(scope ?? (portal ? "key" : "client"));
  const [target, setTarget] = useState(id ?? "");
  const [every, setEvery] = useState<string>(budget?.window ?? budget?.period ?? "month");
  const [amount, setAmount] = useState(budget ? String(budget.limit_usd) : "");
  const action = useAction();
  const value = Number(amount);
  const wrong = amount && !(value > 0 && value <= 1e9) ? "More than 0 and at most 1,000,000,000." : undefined;
  const live = keys.data?.filter((k) => k.status === "active") ?? [];
  const options: [string, string][] = level === "key" ? live.map((k) => [k.id, `${nameOfKey(k)}${k.sub_account_id && !portal ? " · " + (app.nameOf(k.sub_account_id) ?? "") : ""}`]) : (customers.data ?? []).map((c) => [c.id, c.name]);
  const submit = async () => {
    const done = await action.run(async () => {
      await api.PUT("/gw/budgets", { body: { scope: level, ...(level === "client" ? {} : { id: target }), limit_usd: value, match: budget?.match, mode: budget?.mode, alerts: budget?.alerts, ...(every === "week" || every === "total" ? { window: every } : { period: every === "day" ? "day" : "month" }) } });
    });
    if (done) {
      refresh("budgets");
      onClose();
    }
  };
  return (
    <Dialog title={name ? `Budget of ${name}` : "Set budget"} onClose={onClose}>
      <form className="stack" onSubmit={(e) => { e.preventDefault(); void submit(); }}>
        {!scope && !portal && (
          <Field label="For">{(ids) => <Choice {...ids} value={level} onChange={(v) => { setLevel(v as BudgetScope); setTarget(""); }} options={[["client", "The organization"], ["sub_account", "A customer"], ["key", "A key"]]} />}</Field>
        )}
        {!scope && level !== "client" && (
          <Field label={level === "key" ? "Key" : "Customer"}>{(ids) => <Choice {...ids} required value={target} onChange={setTarget} options={[["", "Choose…"], ...options]} />}</Field>
        )}
        <div className="formgrid">
          <Field label="Each">{(ids) => <Choice {...ids} value={every} disabled={!!budget} onChange={setEvery} options={[["month", "Month"], ["week", "Week"], ["day", "Day"], ["total", "Altogether"]]} />}</Field>
          <Text label="Limit" lead="$" inputMode="decimal" value={amount} required wrong={wrong} onChange={setAmount} />
        </div>
        {action.failure && <Trouble failure={action.failure} />}
        <div className="row end"><Button onClick={onClose}>Cancel</Button><Button type="submit" look="primary" busy={action.busy} disabled={!(value > 0) || !!wrong || (level !== "client" && !target)}>Save</Button></div>
      </form>
    </Dialog>
  );
}
