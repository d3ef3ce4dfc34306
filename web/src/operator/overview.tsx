import type { ReactNode } from "react";
import { usd } from "../shared/format";
import { Link, useFilter } from "../shared/route";
import { Icon } from "../ui/icons";
import { Page, Segments } from "../ui/kit";
import type { Organization } from "./api";
import { CallFigures, Sums } from "./calls";
import { useHealth } from "./health";
import { useProviders } from "./providers";

const periods: [string, string][] = [["24h", "24 h"], ["7d", "7 days"], ["30d", "30 days"]];

/** Overview is what an operator looks at first: what is wrong, and who spends what where. */
export function Overview({ organizations }: { organizations: Organization[] | undefined }) {
  const [since, setSince] = useFilter("since", "24h");
  const providers = useProviders();
  const health = useHealth();
  const warnings: [string, ReactNode][] = [
    ...(providers.data ?? []).filter((p) => p.status === "down" || p.status === "degraded").map((p): [string, ReactNode] => [p.name, <><Link to="/providers">{p.name}</Link> is {p.status}: {p.calls.all - p.calls.served - p.calls.client_fault} of {p.calls.all} calls failed in the last 5 minutes.</>]),
    ...(health.data?.warnings ?? []).filter((w) => !w.startsWith("provider ")).map((w): [string, ReactNode] => [w, <><Link to="/health">Health</Link>: {w}</>]),
    ...(organizations ?? []).filter((o) => o.status === "active" && o.balance_usd !== null && o.balance_usd <= 0 && o.requests_30d > 0).map((o): [string, ReactNode] => [o.id, <><Link to={"/organizations/" + o.id}>{o.name}</Link> has used up its balance ({usd(o.balance_usd!)}): its calls are refused.</>]),
  ];
  return (
    <Page title="Overview" actions={<Segments label="Period" value={since} options={periods} onChange={setSince} />}>
      {warnings.map(([id, text]) => <div key={id} className="hint warn"><Icon name="alert" /><div>{text}</div></div>)}
      <CallFigures title="All organizations" filters={{ since }} />
      <div className="halves">
        <Sums by="organization" title="By organization" filters={{ since }} />
        <Sums by="provider" title="By provider" filters={{ since }} />
      </div>
    </Page>
  );
}
