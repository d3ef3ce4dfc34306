import { ago, counted, duration, momentUTC } from "../shared/format";
import { useAsked } from "../shared/use";
import { Icon } from "../ui/icons";
import { Badge, Bones, Card, Empty, Page, Trouble } from "../ui/kit";
import { Table } from "../ui/table";
import { call } from "./api";

interface Instance {
  id: string;
  version: string;
  started_at: string;
  seen_at: string;
  config_hash: string;
  spool_backlog_bytes: number;
  spool_oldest_seconds: number;
  quarantined: number;
  draining: boolean;
}

export interface HealthState {
  database: { engine: string; latency_ms: number; last_read_at: string | null };
  instances: Instance[];
  evidence_lag_seconds: number;
  exports_pending: number;
  export_oldest_pending_seconds: number;
  jobs_pending: number;
  jobs_oldest_at: string | null;
  warnings: string[];
}

export function useHealth() {
  return useAsked<HealthState>("health", () => call("GET", "/health"));
}

const seconds = (s: number) => (s === 0 ? "none" : duration(s * 1000));

/** Health is the state of all instances and of what they work through. */
export function Health() {
  const health = useHealth();
  const h = health.data;
  return (
    <Page title="Health" note="All instances, and what they work through.">
      {health.failure && <Trouble failure={health.failure} again={health.again} />}
      {h?.warnings.map((w) => <div key={w} className="hint warn"><Icon name="alert" /><div>{w}</div></div>)}
      {!health.failure && (
        <Card title="Work">
          {!h ? <Bones height={140} /> : (
            <dl className="facts">
              <dt>Database</dt><dd>{h.database.engine}, answers in {duration(h.database.latency_ms)}{h.database.last_read_at && <span className="note"> keys read {ago(h.database.last_read_at)}</span>}</dd>
              <dt>Evidence behind by</dt><dd>{seconds(h.evidence_lag_seconds)}</dd>
              <dt>Billing events waiting</dt><dd>{h.exports_pending}{h.exports_pending > 0 && <span className="note"> the oldest for {seconds(h.export_oldest_pending_seconds)}</span>}</dd>
              <dt>Jobs pending</dt><dd>{h.jobs_pending}{h.jobs_oldest_at && <span className="note"> the oldest since {momentUTC(h.jobs_oldest_at)}</span>}</dd>
            </dl>
          )}
        </Card>
      )}
      {!health.failure && (
        <Card flush title="Instances" note={h && counted(h.instances.length, "instance")}>
          <Table
            label="Instances" rows={h?.instances} id={(i) => i.id} bones={2} empty={<Empty icon="screen" title="No instance has reported yet" />}
            columns={[
              { title: "Instance", cell: (i) => <span className="two"><code className="cut">{i.id}</code><small>{i.version}</small></span> },
              { title: "State", tight: true, cell: (i) => <Badge tone={i.draining ? "warn" : "good"}>{i.draining ? "draining" : "running"}</Badge> },
              { title: "Seen", cell: (i) => <span title={momentUTC(i.seen_at)}>{ago(i.seen_at)}</span> },
              { title: "Started", hide: "narrow", cell: (i) => <span title={momentUTC(i.started_at)}>{ago(i.started_at)}</span> },
              { title: "Configuration", hide: "middle", cell: (i) => <code className="cut brief">{i.config_hash.slice(0, 12) || "–"}</code> },
              { title: "Spool", end: true, hide: "narrow", cell: (i) => (i.spool_backlog_bytes ? `${Math.ceil(i.spool_backlog_bytes / 1024)} KiB, ${seconds(i.spool_oldest_seconds)}` : "empty") },
              { title: "Kept aside", end: true, hide: "middle", cell: (i) => i.quarantined },
            ]}
          />
        </Card>
      )}
    </Page>
  );
}
