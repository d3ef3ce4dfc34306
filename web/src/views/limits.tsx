import { useState } from "react";
import { api, body, portal, type Quota, type QuotaLimit, type RateLimit, type RateUnit, type RateWindow } from "../shared/api";
import { integer, usd } from "../shared/format";
import { refresh, useAction, useAsked } from "../shared/use";
import { Badge, Button, Card, Choice, Confirm, Dialog, Empty, Field, Menu, Meter, Page, Text, Trouble } from "../ui/kit";
import { Download, Table, type Column } from "../ui/table";
import { useApp } from "./app";
import { MatchFields } from "./match";
import { chosen, For, noTarget, useTargetName } from "./target";

const units: [RateUnit, string][] = [["requests", "Requests"], ["tokens", "Tokens"], ["input_tokens", "Input tokens"], ["output_tokens", "Output tokens"], ["usd", "Dollars"], ["concurrency", "Calls at once"]];

const windowsOf = (unit: RateUnit): RateWindow[] => (unit === "concurrency" ? [] : unit === "requests" ? ["second", "minute", "hour", "day"] : ["minute", "hour", "day"]);

const bursts = (window: string | undefined) => window === "second" || window === "minute";

const mostOf = (unit: RateUnit, window: RateWindow | undefined) => (unit === "concurrency" ? 1e6 : unit !== "requests" && unit !== "usd" && !bursts(window) ? 9e9 : 1e9);

const amount = (unit: RateUnit, n: number) => (unit === "usd" ? usd(n) : integer(n));

/** rate is a limit in words. */
const rate = (l: Pick<RateLimit, "unit" | "limit"> & { window?: string }) => {
  const what = units.find(([u]) => u === l.unit)?.[1].toLowerCase();
  return amount(l.unit, l.limit) + (l.unit === "usd" ? "" : " " + what) + (l.window ? (l.window === "hour" ? " an hour" : " a " + l.window) : "");
};

const owners: Record<string, string> = { operator: "the operator", organization: "the organization", sub_account: "the customer", reseller: portal ? "your provider" : "the reseller" };

const identity = (l: Pick<QuotaLimit, "scope" | "id" | "match" | "unit" | "owner"> & { window?: string }) => [l.scope, l.id ?? "", l.match ?? "", l.unit, l.window ?? "", l.owner ?? ""].join(" ");

/** isRate tells limits from budgets among what binds a call. */
const isRate = (l: QuotaLimit) => l.kind === "rate";

export function Limits() {
  const app = useApp();
  const may = app.can("keys:manage");
  const limits = useAsked<RateLimit[]>(may ? "limits" : undefined, () => body(api.GET("/gw/limits")));
  const quota = useAsked<Quota>("quota", () => body(api.GET("/gw/quota")));
  const { nameOf, known } = useTargetName(may);
  const [setting, setSetting] = useState(false);
  const used = new Map(quota.data?.limits.filter(isRate).map((l) => [identity(l), l]));
  const columns: Column<RateLimit>[] = [
    { title: "Of", cell: (l) => <span className="two"><span className={"cut" + (l.scope === "key" ? " mono" : "")}>{nameOf(l)}</span>{l.match && <small className="cut mono">{l.match}</small>}</span>, text: nameOf },
    { title: "Limit", cell: (l) => <span className="two"><span>{rate(l)}</span>{l.burst !== undefined && <small>{amount(l.unit, l.burst)} at once</small>}</span>, text: rate },
    { title: "Used", hide: "narrow", cell: (l) => <Use of={used.get(identity(l))} name={`${nameOf(l)}: ${rate(l)}`} />, text: (l) => used.get(identity(l))?.used },
    { title: "Match", cell: () => null, text: (l) => l.match },
    { title: "Set by", tight: true, hide: "narrow", cell: (l) => (l.owner ? <Badge>{owners[l.owner]}</Badge> : "you"), text: (l) => l.owner ?? "" },
    { title: "Actions", quiet: true, tight: true, cell: (l) => <Actions limit={l} name={nameOf(l)} /> },
  ];
  const rows = known && (!quota.busy || quota.data) ? limits.data : undefined; // all at once: rows do not jump
  const set = may && <Button look="primary" icon="plus" onClick={() => setSetting(true)}>Set limit</Button>;
  return (
    <Page
      title="Limits" note={`How much may be used in a while, and how many calls may be under way. A call above a limit gets 429, which says when to come back.${portal ? " Amounts are what you are billed." : ""}`}
      actions={<>{may && <Download name="limits" columns={columns} rows={rows} />}{set}</>}
    >
      {may && (
        <Card flush title={portal ? "Of your keys" : "Of the organization, its customers and keys"} note="Hours and days are UTC.">
          <Table
            label="Limits that are set" columns={columns.filter((c) => c.title !== "Match")} rows={rows} failure={limits.failure} again={limits.again} id={identity} bones={3}
            empty={<Empty icon="limits" title="No limits" action={set}>{portal ? "None is set on your keys. You can set one for each." : "Set one so that nobody takes more than their part: for the organization, a customer or a key, for all calls or those of one model or end user."}</Empty>}
          />
        </Card>
      )}
      {(!may || rows || limits.failure) && <Binding quota={quota} />}
      {setting && <PutLimit onClose={() => setSetting(false)} />}
    </Page>
  );
}

/** Binding lists what binds calls with the key of this session. */
function Binding({ quota }: { quota: { data: Quota | undefined; failure: Parameters<typeof Trouble>[0]["failure"] | undefined; again: () => void } }) {
  const columns: Column<QuotaLimit>[] = [
    { title: "Limit", cell: (l) => <span className="two"><span>{rate(l)}</span>{l.match && <small className="cut mono">{l.match}</small>}</span> },
    { title: "Of", hide: "narrow", cell: (l) => ({ client: "the organization", sub_account: portal ? "your account" : "the customer", key: "the key", token: "the token" })[l.scope] },
    { title: "Used", cell: (l) => <Use of={l} name={"Binding: " + rate(l)} /> },
  ];
  return (
    <Card flush title="Your calls now" note="What binds a call with the key that signed in, without an attribution.">
      <Table
        label="Limits that bind calls of this key" columns={columns} rows={quota.data?.limits.filter(isRate)} failure={quota.failure} again={quota.again}
        id={identity} bones={2} empty={<Empty icon="limits" title="Nothing limits these calls" />}
      />
    </Card>
  );
}

/** Use shows how much of a limit is taken, where that is known. */
function Use({ of: l, name }: { of: QuotaLimit | undefined; name: string }) {
  if (!l) return <span className="note">–</span>;
  const { unit } = l;
  return (
    <span className="two used">
      <span className="num">{amount(unit, l.used)} <span className="note">· {amount(unit, l.remaining)} left</span></span>
      <Meter value={l.used} limit={l.used + l.remaining} label={name} />
    </span>
  );
}

function Actions({ limit, name }: { limit: RateLimit; name: string }) {
  const app = useApp();
  const [dialog, setDialog] = useState<"edit" | "remove">();
  const customers = limit.owner === "sub_account" && !portal;
  if (!app.can("keys:manage") || (limit.owner && !customers)) return null;
  const change = { label: "Change…", run: () => setDialog("edit") };
  return (
    <>
      <Menu label={`Actions for the limit of ${name}: ${rate(limit)}`} items={[...(customers ? [] : [change]), { label: "Remove…", danger: true, run: () => setDialog("remove") }]} />
      {dialog === "edit" && <PutLimit limit={limit} name={name} onClose={() => setDialog(undefined)} />}
      {dialog === "remove" && <Remove limit={limit} name={name} onClose={() => setDialog(undefined)} />}
    </>
  );
}

function Remove({ limit, name, onClose }: { limit: RateLimit; name: string; onClose: () => void }) {
  const action = useAction();
  const { scope, id, unit, window, match } = limit;
  const owner = limit.owner === "sub_account" ? limit.owner : undefined;
  const yes = async () => {
    if (await action.run(async () => void (await api.DELETE("/gw/limits", { params: { query: { scope, id, unit, window, match, owner } } })))) {
      refresh("limits", "quota");
      onClose();
    }
  };
  return (
    <Confirm title="Remove this limit?" action="Remove" busy={action.busy} failure={action.failure} onYes={yes} onClose={onClose}>
      <p>{name} is no longer limited to {rate(limit)} here. Limits above it still hold.</p>
    </Confirm>
  );
}

/** PutLimit sets a limit; of one that is there how much it is changes alone. */
function PutLimit({ limit, name, onClose }: { limit?: RateLimit; name?: string; onClose: () => void }) {
  const [target, setTarget] = useState(limit ? { scope: limit.scope, id: limit.id ?? "" } : noTarget);
  const [unit, setUnit] = useState<RateUnit>(limit?.unit ?? "requests");
  const [window, setWindow] = useState<RateWindow | undefined>(limit ? limit.window : "minute");
  const [match, setMatch] = useState<string | undefined>(limit?.match);
  const [text, setText] = useState(limit ? String(limit.limit) : "");
  const [burst, setBurst] = useState(limit?.burst === undefined ? "" : String(limit.burst));
  const action = useAction();
  const most = mostOf(unit, window);
  const check = (text: string) => {
    const n = Number(text);
    if (!text) return undefined;
    if (unit === "usd") return n > 0 && n <= most ? undefined : `More than 0 and at most ${integer(most)}.`;
    return Number.isInteger(n) && n >= 1 && n <= most ? undefined : `A whole number from 1 to ${integer(most)}.`;
  };
  const choose = (unit: RateUnit) => {
    const windows = windowsOf(unit);
    setUnit(unit);
    setWindow(windows.includes(window!) ? window : windows.includes("minute") ? "minute" : undefined);
  };
  const submit = async () => {
    const done = await action.run(async () => {
      await api.PUT("/gw/limits", { body: { scope: target.scope, id: target.scope === "client" ? undefined : target.id, unit, window, match, limit: Number(text), burst: bursts(window) && burst ? Number(burst) : undefined } });
    });
    if (done) {
      refresh("limits", "quota");
      onClose();
    }
  };
  const ready = text && !check(text) && !(bursts(window) && check(burst)) && chosen(target) && match !== "";
  return (
    <Dialog title={name ? `Limit of ${name}` : "Set limit"} onClose={onClose}>
      <form className="stack" onSubmit={(e) => { e.preventDefault(); void submit(); }}>
        {limit ? <p className="note">{rate(limit)}{limit.match && <>, <code>{limit.match}</code></>}</p> : <><For value={target} onChange={setTarget} /><MatchFields onChange={setMatch} /></>}
        {!limit && (
          <div className="formgrid">
            <Field label="What">{(ids) => <Choice {...ids} value={unit} onChange={(v) => choose(v as RateUnit)} options={units} />}</Field>
            {unit !== "concurrency" && <Field label="Each">{(ids) => <Choice {...ids} value={window} onChange={(v) => setWindow(v as RateWindow)} options={windowsOf(unit).map((w) => [w, w[0]!.toUpperCase() + w.slice(1)])} />}</Field>}
          </div>
        )}
        <div className="formgrid">
          <Text label="Limit" lead={unit === "usd" ? "$" : undefined} inputMode="decimal" value={text} required wrong={check(text)} onChange={setText} />
          {bursts(window) && <Text label="At once" lead={unit === "usd" ? "$" : undefined} inputMode="decimal" value={burst} wrong={check(burst)} note="After a pause. Left out: as much as the limit." onChange={setBurst} />}
        </div>
        {action.failure && <Trouble failure={action.failure} />}
        <div className="row end"><Button onClick={onClose}>Cancel</Button><Button type="submit" look="primary" busy={action.busy} disabled={!ready}>Save</Button></div>
      </form>
    </Dialog>
  );
}
