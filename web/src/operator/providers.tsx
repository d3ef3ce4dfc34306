import { useState } from "react";
import { ago, duration, integer, momentUTC } from "../shared/format";
import { callsAt } from "../shared/window";
import { Link } from "../shared/route";
import { useAction, useAsked } from "../shared/use";
import { Badge, Button, Card, Dialog, Empty, Page, Trouble } from "../ui/kit";
import { Table } from "../ui/table";
import { call, may, type Operator } from "./api";

export interface ProviderState {
  name: string;
  status: "idle" | "down" | "degraded" | "ok";
  models: number;
  calls: { all: number; served: number; client_fault: number; credential: number; throttled: number; timeout: number; failed: number };
  last_call_at: string | null;
}

interface ProviderFailure {
  at: string;
  organization_id: string;
  model: string;
  status: number;
  class: string;
  request_id: string;
}

interface Probe {
  reachable: boolean;
  connect_ms?: number | null;
  tls_ms?: number | null;
  tls_expires_at?: string | null;
  http_status?: number | null;
  latency_ms?: number | null;
  credential?: string;
  models_listed?: number | null;
  missing_models?: string[] | null;
  error?: string | null;
}

export function useProviders() {
  return useAsked<ProviderState[]>("providers", () => call("GET", "/providers"));
}

export const tones = { ok: "good", degraded: "warn", down: "bad", idle: "plain" } as const;

const failures = (p: ProviderState) => p.calls.all - p.calls.served - p.calls.client_fault;

export function Providers({ me, names }: { me: Operator; names: Map<string, string> }) {
  const list = useProviders();
  const [shown, setShown] = useState<string>();
  const [tested, setTested] = useState<string>();
  return (
    <Page title="Providers" note="Their calls of the last 5 minutes, on all instances.">
      <Card flush>
        <Table
          label="Providers" rows={list.data} failure={list.failure} again={list.again} id={(p) => p.name} bones={4} onOpen={(p) => setShown(p.name)}
          empty={<Empty icon="models" title="The configuration has no provider" />}
          columns={[
            { title: "Provider", cell: (p) => <span className="two"><span className="cut">{p.name}</span><small>{integer(p.models)} models</small></span> },
            { title: "Status", tight: true, cell: (p) => <Badge tone={tones[p.status]}>{p.status}</Badge> },
            { title: "Calls", end: true, cell: (p) => <Link to={callsAt({ provider: p.name, since: "1h" })} title="Calls of the last hour">{integer(p.calls.all)}</Link> },
            { title: "Failed", end: true, cell: (p) => integer(failures(p)) },
            { title: "Credential", end: true, hide: "middle", cell: (p) => integer(p.calls.credential) },
            { title: "Throttled", end: true, hide: "middle", cell: (p) => integer(p.calls.throttled) },
            { title: "Timed out", end: true, hide: "middle", cell: (p) => integer(p.calls.timeout) },
            { title: "Last call", hide: "narrow", cell: (p) => (p.last_call_at ? <span title={momentUTC(p.last_call_at)}>{ago(p.last_call_at)}</span> : <span className="note">none in 5 min</span>) },
            { title: "Actions", quiet: true, tight: true, cell: (p) => may(me, "support") && <Button aria-label={`Test ${p.name}`} onClick={() => setTested(p.name)}>Test</Button> },
          ]}
        />
      </Card>
      {shown && <Failures of={shown} names={names} onClose={() => setShown(undefined)} />}
      {tested && <Test of={tested} onClose={() => setTested(undefined)} />}
    </Page>
  );
}

function Failures({ of, names, onClose }: { of: string; names: Map<string, string>; onClose: () => void }) {
  const list = useAsked<ProviderFailure[]>("providers/errors/" + of, () => call("GET", `/providers/${encodeURIComponent(of)}/errors`));
  return (
    <Dialog wide title={`Failures of ${of}`} onClose={onClose}>
      <Table
        label={`Failures of ${of}`} rows={list.data} failure={list.failure} again={list.again} id={(f) => f.request_id} bones={3} page={10} empty={<Empty icon="check" title="None in the last hour" />}
        columns={[
          { title: "When", cell: (f) => <span title={momentUTC(f.at)}>{ago(f.at)}</span> },
          { title: "Status", tight: true, cell: (f) => <Link to={callsAt({ id: f.request_id })}><Badge tone="bad">{f.status}</Badge></Link> },
          { title: "Class", cell: (f) => f.class },
          { title: "Organization", hide: "narrow", cell: (f) => <span className="cut brief">{names.get(f.organization_id) ?? f.organization_id}</span> },
          { title: "Model", hide: "narrow", cell: (f) => <span className="cut">{f.model}</span> },
        ]}
      />
    </Dialog>
  );
}

/** Test makes one request that costs nothing, when it is asked to. */
function Test({ of, onClose }: { of: string; onClose: () => void }) {
  const action = useAction();
  const [found, setFound] = useState<Probe>();
  const run = () => action.run(async () => setFound(await call<Probe>("POST", `/providers/${encodeURIComponent(of)}/test`)));
  const ms = (v: number | null | undefined) => (v == null ? "–" : duration(v));
  return (
    <Dialog title={`Test ${of}`} onClose={onClose}>
      <div className="stack">
        <p className="note">One request that costs nothing: connect, TLS, and the list of models where the provider has one. It is nobody's call.</p>
        {action.failure && <Trouble failure={action.failure} />}
        {found && (
          <div role="status"><dl className="facts">
            <dt>Reachable</dt><dd><Badge tone={found.reachable ? "good" : "bad"}>{found.reachable ? "yes" : "no"}</Badge></dd>
            {found.error && <><dt>Error</dt><dd>{found.error}</dd></>}
            <dt>Connected in</dt><dd>{ms(found.connect_ms)}</dd>
            {found.tls_ms != null && <><dt>TLS in</dt><dd>{ms(found.tls_ms)}{found.tls_expires_at && <span className="note"> certificate ends {ago(found.tls_expires_at)}</span>}</dd></>}
            {found.http_status != null && <><dt>Answered</dt><dd>{found.http_status} in {ms(found.latency_ms)}</dd></>}
            {found.credential && <><dt>Credential</dt><dd>{found.credential.replace("_", " ")}</dd></>}
            {found.models_listed != null && <><dt>Models listed</dt><dd>{integer(found.models_listed)}</dd></>}
            {!!found.missing_models?.length && <><dt>Not listed</dt><dd>{found.missing_models.join(", ")}</dd></>}
          </dl></div>
        )}
        <div className="row end"><Button onClick={onClose}>Close</Button><Button look="primary" busy={action.busy} onClick={run}>{found ? "Test again" : "Test"}</Button></div>
      </div>
    </Dialog>
  );
}
