import { useEffect, useState } from "react";
import { api, body, type ProcessorWebhook, type Quota, type Wallet, type WalletEntry } from "../shared/api";
import { counted, day, momentUTC, usd, usdExact } from "../shared/format";
import { useFilter } from "../shared/route";
import { refresh, useAction, useAsked, usePoll, type Asked } from "../shared/use";
import { Icon } from "../ui/icons";
import { Badge, Bones, Button, Card, Check, Choice, Copy, Dialog, Empty, Field, Page, Text, Trouble } from "../ui/kit";
import { Download, Table, type Column } from "../ui/table";
import { useApp } from "./app";
import { NoScope } from "./gate";
import { Pay } from "./pay";

/** useWallets reads the wallets of all customers. */
export function useWallets(when: boolean) {
  return useAsked<Wallet[]>(when ? "wallets" : undefined, () => body(api.GET("/gw/wallets")));
}

/** useHasWallet says whether calls of who is signed in are paid from a wallet. */
export function useHasWallet(): boolean {
  const quota = useAsked<Quota>(useApp().can("stats:read") ? "quota" : undefined, () => body(api.GET("/gw/quota")));
  return !!quota.data?.limits.some((l) => l.kind === "wallet");
}

const names: Record<WalletEntry["kind"], string> = {
  purchase: "Payment", grant: "Credit", adjustment: "Adjustment", refund: "Refund", refund_reversed: "Refund reversed", chargeback: "Chargeback",
  chargeback_reversed: "Chargeback reversed", expiry: "Expired", usage: "Usage",
};

const when = (e: WalletEntry) => e.day ?? e.at ?? "";

const columns: Column<WalletEntry>[] = [
  { title: "Day (UTC)", tight: true, cell: (e) => <span title={e.at && momentUTC(e.at)}>{day(when(e))}</span>, text: when },
  { title: "What", cell: (e) => <span className="two"><span>{names[e.kind]}</span>{e.note && <small className="cut">{e.note}</small>}</span>, text: (e) => names[e.kind] },
  { title: "Note", cell: () => null, text: (e) => e.note, hide: "middle", quiet: true },
  { title: "Expires", end: true, hide: "narrow", cell: (e) => (e.expires_at ? day(e.expires_at) : ""), text: (e) => e.expires_at },
  { title: "Amount", end: true, cell: (e) => <span title={usdExact(e.amount_usd)}>{e.amount_usd > 0 ? "+" : ""}{usd(e.amount_usd)}</span>, text: (e) => e.amount_usd },
];

const shown = columns.filter((c) => c.title !== "Note");

const size = 100;

interface Entries {
  list: WalletEntry[];
  next: string | null;
}

async function read(of: string | undefined, cursor?: string): Promise<Entries> {
  const query = { limit: size, cursor };
  const answer = await (of ? api.GET("/gw/wallets/{sub_account_id}/entries", { params: { path: { sub_account_id: of }, query } }) : api.GET("/gw/wallet/entries", { params: { query } }));
  return { list: answer.data as WalletEntry[], next: answer.response.headers.get("X-Next-Cursor") };
}

/** Movements are what was credited to a wallet and what was taken off it, newest first. */
function Movements({ of }: { of: string | undefined }) {
  const first = useAsked<Entries>(`wallet:entries:${of ?? "own"}`, () => read(of));
  const [rest, setRest] = useState<Entries & { after: Entries }>();
  const more = useAction();
  const tail = rest && rest.after === first.data ? rest : undefined;
  const rows = first.data && [...first.data.list, ...(tail?.list ?? [])];
  const next = (tail ?? first.data)?.next;
  const load = () =>
    more.run(async () => {
      const page = await read(of, next!);
      setRest({ list: [...(tail?.list ?? []), ...page.list], next: page.next, after: first.data! });
    });
  return (
    <Card flush title="Movements" note="Usage is one line for each day." actions={<Download name="wallet" columns={columns} rows={rows} />}>
      <Table
        label="Movements of the balance" columns={shown} rows={rows} failure={first.failure} again={first.again} id={(e) => e.id ?? "usage " + e.day} page={0} bones={4}
        empty={<Empty icon="billing" title="Nothing yet">Payments, credits and the usage of each day appear here.</Empty>}
        foot={rows && <>{more.failure && <Trouble failure={more.failure} />}<span className="note" role="status">{counted(rows.length, "movement")}</span>{next && <Button busy={more.busy} onClick={load}>Load more</Button>}</>}
      />
    </Card>
  );
}

/** Facts say what is there to spend, and what it consists of. */
function Facts({ wallet: w }: { wallet: Wallet }) {
  return (
    <dl className="facts">
      <dt>Balance</dt><dd className="num" title={usdExact(w.balance_usd)}>{usd(w.balance_usd)}</dd>
      <dt>Available</dt><dd className="num">{usd(w.available_usd)}{w.held_usd > 0 && <span className="note"> · {usd(w.held_usd)} reserved by open calls</span>}</dd>
      {w.credit_line_usd > 0 && <><dt>Credit line</dt><dd className="num">{usd(w.credit_line_usd)}</dd></>}
      {w.grants.filter((g) => g.expires_at).map((g) => [
        <dt key={g.id}>Expires {day(g.expires_at!)}</dt>, <dd key={g.id + "="} className="num">{usd(g.remaining_usd)} <span className="note">of {usd(g.amount_usd)}</span></dd>,
      ])}
    </dl>
  );
}

const Blocked = ({ children }: { children: string }) => <div className="hint warn"><Icon name="alert" /><div>{children}</div></div>;

/** WalletPage is the portal's page about the own wallet, to which payments lead back. */
export function WalletPage() {
  const app = useApp();
  const reads = app.can("stats:read");
  const wallet = useAsked<Wallet>(reads ? "wallet:own" : undefined, () => body(api.GET("/gw/wallet")));
  const [payment] = useFilter("payment");
  usePoll(reads ? async () => refresh("wallet:") : undefined);
  if (!reads) return <Page title="Balance"><NoScope scope="stats:read" what="the balance" /></Page>;
  const w = wallet.data;
  return (
    <Page title="Balance" note="Calls are paid from it as they end.">
      {payment === "made" && <div className="hint" role="status"><Icon name="check" /><div>Thank you. The balance is credited as soon as the payment is confirmed, which mostly takes seconds.</div></div>}
      {payment === "left" && <div className="hint" role="status"><Icon name="alert" /><div>The payment was left. Nothing was charged.</div></div>}
      {wallet.failure?.status === 404 ? (
        <div className="card"><Empty icon="billing" title="There is no prepaid balance">Your usage is billed{app.product ? ` by ${app.product}` : ""} afterwards.</Empty></div>
      ) : wallet.failure && !w ? (
        <Trouble failure={wallet.failure} again={wallet.again} />
      ) : !w ? (
        <Bones height={420} />
      ) : (
        <>
          {w.blocked && <Blocked>Calls are refused until the account is unblocked. Ask who runs this portal.</Blocked>}
          <Card title={w.enabled ? "Balance" : <span className="row">Balance <Badge tone="warn">not in use</Badge></span>}>
            <div className="stack">
              <Facts wallet={w} />
              {w.checkout.enabled && <Pay label="Add money" first={20} least={w.checkout.min_usd} most={w.checkout.max_usd} begin={(amount_usd) => body(api.POST("/gw/wallet/checkout", { body: { amount_usd } }))} />}
            </div>
          </Card>
          <Movements of={undefined} />
        </>
      )}
    </Page>
  );
}

/** CustomerWallet is the reseller's view of a customer's wallet. */
export function CustomerWallet({ of, name, wallets }: { of: string; name: string; wallets: Asked<Wallet[]> }) {
  const app = useApp();
  const may = app.can("keys:manage");
  const [dialog, setDialog] = useState<"settings" | "entry">();
  if (!app.can("stats:read")) return null;
  const w = wallets.data?.find((x) => x.sub_account_id === of);
  return (
    <>
      <Card
        title={<span className="row">Wallet {w && <Badge tone={w.blocked ? "bad" : w.enabled ? "good" : "plain"}>{w.blocked ? "blocked" : w.enabled ? "enabled" : "disabled"}</Badge>}</span>}
        note="A prepaid balance in billed dollars. While it is enabled, calls are taken off it and not exported to your payment processor."
        actions={may && wallets.data && <>{w && <Button icon="plus" onClick={() => setDialog("entry")}>Add entry</Button>}<Button onClick={() => setDialog("settings")}>{w ? "Settings" : "Set up"}</Button></>}
      >
        {w ? <>{w.blocked && <Blocked>All calls are refused. A chargeback or you did this; unblock the wallet in its settings.</Blocked>}<Facts wallet={w} /></> : wallets.failure ? <Trouble failure={wallets.failure} again={wallets.again} /> : wallets.data ? <p className="note">None: the customer pays afterwards.</p> : <Bones height={24} />}
      </Card>
      {w && <Movements of={of} />}
      {dialog === "settings" && <Settings of={of} name={name} wallet={w} onClose={() => setDialog(undefined)} />}
      {dialog === "entry" && <AddEntry of={of} name={name} onClose={() => setDialog(undefined)} />}
    </>
  );
}

const notBelow0 = (text: string, most: number) => (text.trim() === "" || !(Number(text) >= 0 && Number(text) <= most) ? `From 0 to ${most.toLocaleString("en-US")}.` : undefined);

function Settings({ of, name, wallet, onClose }: { of: string; name: string; wallet?: Wallet; onClose: () => void }) {
  const [enabled, setEnabled] = useState(wallet?.enabled ?? true);
  const [line, setLine] = useState(String(wallet?.credit_line_usd ?? 0));
  const [low, setLow] = useState(wallet?.low_balance_usd == null ? "" : String(wallet.low_balance_usd));
  const [back, setBack] = useState<"block" | "debit">(wallet?.on_chargeback ?? "block");
  const [blocked, setBlocked] = useState(wallet?.blocked ?? false);
  const [offered, setOffered] = useState(wallet?.checkout.enabled ?? false);
  const [least, setLeast] = useState(String(wallet?.checkout.min_usd ?? 5));
  const [most, setMost] = useState(String(wallet?.checkout.max_usd ?? 500));
  const action = useAction();
  const wrongLine = notBelow0(line, 1e6);
  const wrongLow = low.trim() === "" ? undefined : notBelow0(low, 1e6);
  const wrongBounds = !(Number(least) >= 1 && Number(least) <= Number(most) && Number(most) <= 1e4) ? "From 1 to 10,000, the least not above the most." : undefined;
  const save = async () => {
    const done = await action.run(async () => {
      await api.PUT("/gw/wallets/{sub_account_id}", {
        params: { path: { sub_account_id: of } },
        body: {
          enabled, credit_line_usd: Number(line), low_balance_usd: low.trim() === "" ? null : Number(low), on_chargeback: back, ...(wallet && { blocked }),
          checkout: { enabled: offered, min_usd: Number(least), max_usd: Number(most) },
        },
      });
      refresh("wallet");
    });
    if (done) onClose();
  };
  return (
    <Dialog title={`Wallet of ${name}`} onClose={onClose}>
      <form className="stack" onSubmit={(e) => { e.preventDefault(); void save(); }}>
        <Check label="Enabled" note="From the next call on, usage is taken off the balance." checked={enabled} onChange={setEnabled} />
        <div className="formgrid">
          <Text label="Credit line" lead="$" inputMode="decimal" value={line} wrong={wrongLine} note="How far the balance may fall below 0." onChange={setLine} />
          <Text label="Alert below" lead="$" inputMode="decimal" value={low} wrong={wrongLow} note="Empty: no alert." onChange={setLow} />
        </div>
        <Check label="The customer may pay in" note="In your portal, at your payment processor." checked={offered} onChange={setOffered} />
        {offered && (
          <div className="formgrid">
            <Text label="Least of a payment" lead="$" inputMode="decimal" value={least} wrong={wrongBounds} onChange={setLeast} />
            <Text label="Most of a payment" lead="$" inputMode="decimal" value={most} onChange={setMost} />
          </div>
        )}
        <Field label="After a chargeback">{(ids) => <Choice {...ids} value={back} onChange={(v) => setBack(v as "block" | "debit")} options={[["block", "Take it off and block the wallet"], ["debit", "Take it off"]]} />}</Field>
        {wallet && <Check label="Blocked" note="All calls are refused." checked={blocked} onChange={setBlocked} />}
        {action.failure && <Trouble failure={action.failure} />}
        <div className="row end"><Button onClick={onClose}>Cancel</Button><Button type="submit" look="primary" busy={action.busy} disabled={!!wrongLine || !!wrongLow || (offered && !!wrongBounds)}>Save</Button></div>
      </form>
    </Dialog>
  );
}

function AddEntry({ of, name, onClose }: { of: string; name: string; onClose: () => void }) {
  const [kind, setKind] = useState<"purchase" | "grant" | "adjustment">("purchase");
  const [amount, setAmount] = useState("");
  const [expires, setExpires] = useState("");
  const [note, setNote] = useState("");
  const [external] = useState(() => "dashboard-" + Array.from(crypto.getRandomValues(new Uint8Array(12)), (b) => b.toString(16).padStart(2, "0")).join("")); // a second press enters nothing twice
  const action = useAction();
  const value = Number(amount);
  const wrong = amount && !(value !== 0 && Math.abs(value) <= 1e6 && (value > 0 || kind === "adjustment")) ? (kind === "adjustment" ? "Not 0, and at most 1,000,000 either way." : "More than 0 and at most 1,000,000.") : undefined;
  const add = async () => {
    const done = await action.run(async () => {
      await api.POST("/gw/wallets/{sub_account_id}/entries", {
        params: { path: { sub_account_id: of } },
        body: { kind, amount_usd: value, external_id: external, note: note.trim() || undefined, ...(kind === "grant" && expires && { expires_at: expires + "T00:00:00Z" }) },
      });
      refresh("wallet");
    });
    if (done) onClose();
  };
  return (
    <Dialog title={`Add to the wallet of ${name}`} onClose={onClose}>
      <form className="stack" onSubmit={(e) => { e.preventDefault(); void add(); }}>
        <Field label="What">{(ids) => <Choice {...ids} value={kind} onChange={(v) => setKind(v as typeof kind)} options={[["purchase", "Payment that came in elsewhere"], ["grant", "Credit that you give"], ["adjustment", "Adjustment, up or down"]]} />}</Field>
        <div className="formgrid">
          <Text label="Amount" lead="$" inputMode="decimal" value={amount} required wrong={wrong} onChange={setAmount} />
          {kind === "grant" && <Text label="Expires on (UTC)" type="date" value={expires} note="Empty: never." onChange={setExpires} />}
        </div>
        <Text label="Note" value={note} maxLength={200} note="The customer sees it." onChange={setNote} />
        {action.failure && <Trouble failure={action.failure} />}
        <div className="row end"><Button onClick={onClose}>Cancel</Button><Button type="submit" look="primary" busy={action.busy} disabled={!amount || !!wrong}>Add</Button></div>
      </form>
    </Dialog>
  );
}

/** usePaymentWebhook reads where the processor of who is signed in delivers to. */
export function usePaymentWebhook(when: boolean) {
  return useAsked<ProcessorWebhook>(when ? "processor:webhook" : undefined, () => body(api.GET("/gw/processor/webhook")));
}

/** PaymentWebhook is how the reseller's processor tells of payments into wallets. */
export function PaymentWebhook({ hook }: { hook: Asked<ProcessorWebhook> }) {
  const may = useApp().can("keys:manage");
  const [open, setOpen] = useState(false);
  const [secret, setSecret] = useState("");
  const action = useAction();
  useEffect(() => setSecret(""), [open]);
  const put = (text: string) =>
    action.run(async () => {
      await api.PUT("/gw/processor/webhook", { body: { secret: text } });
      refresh("processor:webhook");
      setOpen(false);
    });
  return (
    <Card
      title={<span className="row">Payments into wallets {hook.data && <Badge tone={hook.data.configured ? "good" : "plain"}>{hook.data.configured ? "on" : "not set up"}</Badge>}</span>}
      note="Your processor delivers checkout, refund and dispute events to this address, signed with a secret that it shows you."
      actions={may && hook.data && <Button onClick={() => setOpen(true)}>{hook.data.configured ? "Replace secret" : "Store secret"}</Button>}
    >
      {hook.failure ? <Trouble failure={hook.failure} again={hook.again} /> : !hook.data ? <Bones height={36} /> : <div className="row"><code className="cut">{hook.data.url}</code><Copy text={hook.data.url} label="" look="quiet" /></div>}
      {open && (
        <Dialog title="Secret of the webhook" onClose={() => setOpen(false)}>
          <form className="stack" onSubmit={(e) => { e.preventDefault(); void put(secret.trim()); }}>
            <Text label="Secret" type="password" autoComplete="off" placeholder="whsec_…" value={secret} required onChange={setSecret} note="It is sealed under the gateway's master key and never shown again." />
            {action.failure && <Trouble failure={action.failure} />}
            <div className="row end">{hook.data?.configured && <Button look="danger" busy={action.busy} onClick={() => put("")}>Remove</Button>}<Button onClick={() => setOpen(false)}>Cancel</Button><Button type="submit" look="primary" busy={action.busy} disabled={secret.trim().length < 16}>Store</Button></div>
          </form>
        </Dialog>
      )}
    </Card>
  );
}
