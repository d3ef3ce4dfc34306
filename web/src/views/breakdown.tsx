import { api, body, portal, type StatsBucket } from "../shared/api";
import { count, integer, percent, usdAlike } from "../shared/format";
import { go, Link } from "../shared/route";
import { useAsked } from "../shared/use";
import { callsAt, groupFilter } from "../shared/window";
import { Card, Empty } from "../ui/kit";
import { Download, Table, type Column } from "../ui/table";
import type { Group } from "./group";

/** Breakdown says what a period's calls were for, all of them and to the end. */
export function Breakdown({ period, since, group }: { period: string; since: string; group: Group }) {
  const stats = useAsked<StatsBucket[]>(`stats:by:${group.by}:${period}`, () => body(api.GET("/gw/stats", { params: { query: { group_by: group.by, since } } })));
  const total = stats.data?.reduce((t, b) => t + b.total_cost_usd, 0) ?? 0;
  const calls = stats.data?.reduce((t, b) => t + b.requests, 0) ?? 0;
  const money = usdAlike(stats.data?.map((b) => b.total_cost_usd) ?? []);
  const { by, label } = group;
  const from = new Date(Math.round((Date.now() - parseFloat(since)) / 3_600_000) * 3_600_000).toISOString();
  const callsOf = (key: string) => {
    if (by === "day") return callsAt({ from: key + "T00:00:00Z", to: new Date(Date.parse(key) + 86_400_000).toISOString() });
    const filter = groupFilter(by, key);
    return filter && callsAt({ from, ...filter });
  };
  const columns: Column<StatsBucket>[] = [
    {
      title: group.name[0]?.toUpperCase() + group.name.slice(1),
      cell: (b) => (by === "sub_account_id" && b.key ? <Link to={"/customers/" + b.key} className="cut">{label(b.key)}</Link> : <span className={"cut" + (by === "key_id" ? " mono" : "")}>{label(b.key)}</span>),
      text: (b) => (by === "day" ? b.key : label(b.key)),
    },
    { title: "Requests", end: true, hide: "narrow", cell: (b) => { const to = callsOf(b.key); return to ? <Link to={to} title="Calls">{integer(b.requests)}</Link> : integer(b.requests); }, text: (b) => b.requests },
    { title: "Tokens", end: true, hide: "narrow", cell: (b) => count(b.total_tokens), text: (b) => b.total_tokens },
    { title: portal ? "Billed" : "Spend", end: true, cell: (b) => money(b.total_cost_usd), text: (b) => b.total_cost_usd },
    {
      title: "Share", hide: "narrow",
      cell: (b) => {
        const share = total > 0 ? b.total_cost_usd / total : calls > 0 ? b.requests / calls : 0;
        return <span className="row"><span className="share grow"><i style={{ width: `${share * 100}%` }} /></span><span className="note num">{percent(share)}</span></span>;
      },
    },
  ];
  return (
    <Card flush title={`By ${group.name}`} actions={<Download name={`breakdown-${by}-${period}`} columns={columns} rows={stats.data} />}>
      <Table
        label={`By ${group.name}`} columns={columns} rows={group.named ? stats.data : undefined} failure={stats.failure} again={stats.again} id={(b) => b.key} page={20} bones={5} onOpen={(b) => { const to = callsOf(b.key); if (to) go(to); }}
        empty={<Empty icon="overview" title="No calls in this period">Choose a longer period, or make a call.</Empty>}
      />
    </Card>
  );
}
