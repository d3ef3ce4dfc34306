import { useState } from "react";
import { api, body, portal, type Budget, type BudgetScope } from "../shared/api";
import { integer, percent, usd } from "../shared/format";
import { Link } from "../shared/route";
import { refresh, useAction, useAsked } from "../shared/use";
import { callsAt } from "../shared/window";
import { Icon } from "../ui/icons";
import { Badge, Bones, Button, Card, Choice, Confirm, Dialog, Empty, Field, Menu, Meter, Page, Text, Trouble } from "../ui/kit";
import { Download, Table } from "../ui/table";
import { useApp } from "./app";
import { NoScope, readScope, seesBudgets, seesKeys } from "./gate";
import { MatchFields } from "./match";
import { chosen, For, noTarget, useTargetName, type Target } from "./target";

// Cards of a kind that are shown unasked, and budgets from which on they are
// looked for.
const firstCards = 24;
const findable = 12;

/** span names the time that a budget is over, in a sentence. */
const span = (b: Budget) => (b.window === "total" ? "altogether" : `by the ${b.window ?? b.period}`);

/** now names the current one. */
const now = (b: Budget) => (b.window === "total" ? "Altogether" : b.window === "week" ? "This week" : b.period === "day" ? "Today" : "This month");

/** identity tells budgets of one target apart. */
export const identity = (b: Budget) => [b.id ?? "", b.window ?? b.period, b.match ?? "", b.owner ?? ""].join(" ");

/** fill is how full a budget is; where each value has the limit, how full the fullest is. */
const fill = (b: Budget) => (b.limit_usd > 0 ? (b.values ? (b.values[0]?.spend_usd ?? 0) : b.spend_usd) / b.limit_usd : 1);

export function Budgets() {
  const app = useApp();
  const may = seesBudgets(app);
  const change = app.can("keys:manage");
  const budgets = useAsked<Budget[]>(may ? "budgets" : undefined, () => body(api.GET("/gw/budgets")));
  const { nameOf, known: named } = useTargetName(may && seesKeys(app)); // all at once: cards do not move
  const [setting, setSetting] = useState(false);
  const [text, setText] = useState("");
  const [whole, setWhole] = useState<BudgetScope[]>([]);
  if (!may) return <Page title="Budgets"><NoScope scope={readScope} what="budgets" /></Page>;
  const groups: [BudgetScope, string, string][] = [
    ["client", "Organization", "Everything that is spent counts here."],
    ["sub_account", portal ? "Account" : "Customers", portal ? "Everything you spend counts here." : "What each customer's calls cost."],
    ["key", "Keys", "What is spent with one key."],
  ];
  // The fullest first: they are what somebody has to look at.
  const want = text.trim().toLowerCase();
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
  const [dialog, setDialog] = useState<"edit" | "remove" | "values">();
  const customers = budget.owner === "sub_account" && !portal;
  const change = { label: "Change…", run: () => setDialog("edit") };
  const items = fixed || (budget.owner && !customers) ? [] : [...(customers ? [] : [change]), { label: "Remove…", danger: true, run: () => setDialog("remove") }];
  if (budget.values) items.unshift({ label: "Each value…", run: () => setDialog("values") });
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
        {items.length > 0 && <Menu label={`Actions for the budget of ${name} ${span(budget)}`} items={items} />}
      </div>
      {budget.match && <span className="note cut mono">{budget.match}</span>}
      {(budget.mode === "soft" || budget.alerts) && <span className="note">{[budget.mode === "soft" && "Soft", budget.alerts && (budget.alerts.length ? `alerts at ${budget.alerts.join(", ")} %` : "no alerts")].filter(Boolean).join(", ")}</span>}
      <span><span className="figure">{calls ? <Link to={calls} title="Calls">{usd(budget.spend_usd)}</Link> : usd(budget.spend_usd)}</span> <span className="note num">of {usd(budget.limit_usd)}</span></span>
      <Meter value={each ? (budget.values?.[0]?.spend_usd ?? 0) : budget.spend_usd} limit={budget.limit_usd} label={`Budget of ${name} ${span(budget)}`} />
      <span className="note num">{each ? `${integer(budget.values?.length ?? 0)} values, each with the whole limit` : share >= 1 ? <Badge tone="bad">{budget.mode === "soft" ? "Used up: soft, calls go on" : "Used up: calls are refused"}</Badge> : `${percent(share)} used, ${usd(budget.limit_usd - budget.spend_usd)} left`}</span>
      {dialog === "edit" && <PutBudget budget={budget} scope={budget.scope} id={budget.id} name={name} onClose={() => setDialog(undefined)} />}
      {dialog === "values" && <Values budget={budget} name={name} onClose={() => setDialog(undefined)} />}
      {dialog === "remove" && <Remove budget={budget} name={name} onClose={() => setDialog(undefined)} />}
    </div>
  );
}

function Remove({ budget, name, onClose }: { budget: Budget; name: string; onClose: () => void }) {
  const action = useAction();
  const yes = async () => {
    if (await action.run(async () => void (await api.DELETE("/gw/budgets", { params: { query: { scope: budget.scope, id: budget.id, period: budget.period, window: budget.window, match: budget.match, owner: budget.owner === "sub_account" ? budget.owner : undefined } } })))) {
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

/** alertsOf reads percentages from 1 to 200 between commas, at most eight; undefined where they are wrong. */
function alertsOf(text: string): number[] | undefined {
  const list = text.split(",").map((t) => t.trim()).filter(Boolean).map(Number);
  return list.length <= 8 && list.every((n) => Number.isInteger(n) && n >= 1 && n <= 200) ? list : undefined;
}

/** PutBudget sets a budget; what is given is fixed. Of one that is there the limit, the mode and the alerts change. */
export function PutBudget({ budget, scope, id, name, onClose }: { budget?: Budget; scope?: BudgetScope; id?: string; name?: string; onClose: () => void }) {
  const [target, setTarget] = useState<Target>(scope ? { scope, id: id ?? "" } : noTarget);
  const [every, setEvery] = useState<string>(budget?.window ?? budget?.period ?? "month");
  const [match, setMatch] = useState<string | undefined>(budget?.match);
  const [mode, setMode] = useState<string>(budget?.mode ?? "hard");
  const [percents, setPercents] = useState((budget?.alerts ?? [50, 80, 100]).join(", "));
  const [amount, setAmount] = useState(budget ? String(budget.limit_usd) : "");
  const action = useAction();
  const value = Number(amount);
  const wrong = amount && !(value > 0 && value <= 1e9) ? "More than 0 and at most 1,000,000,000." : undefined;
  const alerts = alertsOf(percents);
  const submit = async () => {
    const done = await action.run(async () => {
      const span = every === "week" || every === "total" ? { window: every } as const : { period: every === "day" ? "day" : "month" } as const;
      await api.PUT("/gw/budgets", { body: { scope: target.scope, id: target.scope === "client" ? undefined : target.id, limit_usd: value, match, mode: mode === "soft" ? "soft" : "hard", alerts, ...span } });
    });
    if (done) {
      refresh("budgets", "quota");
      onClose();
    }
  };
  return (
    <Dialog title={name ? `Budget of ${name}` : "Set budget"} onClose={onClose}>
      <form className="stack" onSubmit={(e) => { e.preventDefault(); void submit(); }}>
        {!scope && <For value={target} onChange={setTarget} />}
        {!budget ? <MatchFields onChange={setMatch} /> : budget.match && <p className="note">Calls that count: <code>{budget.match}</code></p>}
        <div className="formgrid">
          <Field label="Each">{(ids) => <Choice {...ids} value={every} disabled={!!budget} onChange={setEvery} options={[["month", "Month"], ["week", "Week"], ["day", "Day"], ["total", "Altogether"]]} />}</Field>
          <Text label="Limit" lead="$" inputMode="decimal" value={amount} required wrong={wrong} onChange={setAmount} />
        </div>
        <div className="formgrid">
          <Field label="Once it is used up">{(ids) => <Choice {...ids} value={mode} onChange={setMode} options={[["hard", "Refuse calls"], ["soft", "Alert only"]]} />}</Field>
          <Text label="Alerts at, %" value={percents} wrong={alerts ? undefined : "At most eight whole numbers from 1 to 200, between commas."} note="Empty: none." onChange={setPercents} />
        </div>
        {action.failure && <Trouble failure={action.failure} />}
        <div className="row end"><Button onClick={onClose}>Cancel</Button><Button type="submit" look="primary" busy={action.busy} disabled={!(value > 0) || !!wrong || !alerts || match === "" || !chosen(target)}>Save</Button></div>
      </form>
    </Dialog>
  );
}

type Value = NonNullable<Budget["values"]>[number];

/** Values lists what each value has spent, the dearest first. */
function Values({ budget, name, onClose }: { budget: Budget; name: string; onClose: () => void }) {
  return (
    <Dialog title={`${budget.match} of ${name}`} onClose={onClose}>
      <p className="note">{now(budget)}, the dearest 1,000. Each has {usd(budget.limit_usd)}.</p>
      <Table<Value>
        label={`What each value of ${budget.match} has spent`} rows={budget.values} id={(v) => v.value} page={20} empty={<Empty icon="budgets" title="No calls yet" />}
        columns={[
          { title: "Value", cell: (v) => <code className="cut">{v.value}</code> },
          { title: "Spent", end: true, cell: (v) => usd(v.spend_usd) },
          { title: "Used", end: true, cell: (v) => <Badge tone={v.spend_usd >= budget.limit_usd ? "bad" : "plain"}>{percent(v.spend_usd / budget.limit_usd)}</Badge> },
        ]}
      />
    </Dialog>
  );
}
