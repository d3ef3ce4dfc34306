import { useState } from "react";
import { failureOf, query, root, sessionEnded, unreachable } from "../shared/api";
import { counted, integer, save } from "../shared/format";
import { useAction } from "../shared/use";
import { Badge, Button, Card, Check, Code, Page, Text, Trouble } from "../ui/kit";
import { useApp } from "./app";
import { NoScope } from "./gate";

interface Taken {
  name: string;
  lines: number;
  bytes: number;
  key: string;
  /** Numbers of the file's last record and of the newest one. */
  to: number;
  latest: number;
}

export function Evidence() {
  const app = useApp();
  const [from, setFrom] = useState("");
  const [to, setTo] = useState("");
  const [all, setAll] = useState(true);
  const [size, setSize] = useState(0);
  const [taken, setTaken] = useState<Taken>();
  const action = useAction();
  if (!app.can("stats:read")) return <Page title="Evidence"><NoScope scope="stats:read" what="evidence" /></Page>;
  const fetchIt = () =>
    action.run(async () => {
      setTaken(undefined);
      setSize(0);
      const range = all ? {} : { from_seq: from, to_seq: to };
      const response = await fetch(root + `/gw/evidence${query({ ...range, limit: 100_000 })}`, { credentials: "same-origin" }).catch(() => {
        throw unreachable();
      });
      if (!response.ok) {
        const failure = await failureOf(response);
        if (failure.status === 401) sessionEnded();
        throw failure;
      }
      const parts: Uint8Array<ArrayBuffer>[] = [];
      let bytes = 0;
      let lines = 0;
      for (const reader = response.body!.getReader(); ; ) {
        const { value, done } = await reader.read();
        if (done) break;
        parts.push(value as Uint8Array<ArrayBuffer>);
        bytes += value.length;
        for (const b of value) if (b === 10) lines++;
        setSize(bytes);
      }
      const name = `evidence-${new Date().toISOString().slice(0, 19).replaceAll(":", "")}.ndjson`;
      const blob = new Blob(parts, { type: "application/x-ndjson" });
      const first = (await blob.slice(0, 8192).text()).split("\n")[0] ?? "";
      save(name, blob);
      setTaken({ name, lines, bytes, ...headOf(first) });
    });
  const file = taken?.name ?? "evidence.ndjson";
  const command = `modelgate evidence verify ${taken?.key ? `--vkey '${taken.key}' ` : ""}${file}`;
  return (
    <Page title="Evidence" note="Every call and every change of your organization, in a chain of hashes that shows if anything was altered, left out or put in.">
      <div className="halves">
        <Card title="Download" note="One record a line, without prompts, replies or attribution, and a signed head at the end.">
          <form className="stack" onSubmit={(e) => { e.preventDefault(); void fetchIt(); }}>
            <Check label="From the beginning" note="At most 100,000 records in one file." checked={all} onChange={setAll} />
            {!all && (
              <div className="formgrid">
                <Text label="From record" inputMode="numeric" pattern="[0-9]*" value={from} onChange={setFrom} placeholder="1" />
                <Text label="To record" inputMode="numeric" pattern="[0-9]*" value={to} onChange={setTo} placeholder="the newest" />
              </div>
            )}
            {action.failure && <Trouble failure={action.failure} />}
            <div className="row">
              <Button type="submit" look="primary" icon="download" busy={action.busy}>Download evidence</Button>
              <span className="note num" role="status">
                {action.busy && size > 0 && `${integer(Math.round(size / 1024))} KiB…`}
                {taken && <><Badge tone="good">saved</Badge> {integer(taken.lines)} lines, {integer(Math.ceil(taken.bytes / 1024))} KiB</>}
              </span>
            </div>
            {taken && taken.latest > taken.to && (
              <div className="hint">
                <div className="stack">
                  <p>The file ends with record {integer(taken.to)}. There are {counted(taken.latest - taken.to, "newer record")}.</p>
                  <div><Button onClick={() => { setAll(false); setFrom(String(taken.to + 1)); setTo(""); }}>Go on from record {integer(taken.to + 1)}</Button></div>
                </div>
              </div>
            )}
          </form>
        </Card>
        <Card title="Verify" note="On any machine, without the database or this gateway.">
          <div className="stack">
            <Code label="Command that verifies the file" text={command} />
            <dl className="facts note">
              <dt>Ends with <code>0</code></dt><dd>All records are there and none was altered.</dd>
              <dt><code>1</code></dt><dd>Something was altered; the first bad line is named.</dd>
              <dt><code>2</code></dt><dd>The file is cut off, has a gap, or is older than one seen before.</dd>
              <dt><code>3</code></dt><dd>The signature is not of this gateway.</dd>
            </dl>
            <p className="note">The key in the file proves that it is whole, not where it is from. Get the gateway's key from its operator (<code>modelgate evidence key</code>), give it with <code>--vkey</code>, and keep a <code>--state</code> file: then nothing can be rewritten behind your back.</p>
          </div>
        </Card>
      </div>
    </Page>
  );
}

/** headOf reads the verifier key and the numbers in the header line of an export. */
function headOf(line: string): { key: string; to: number; latest: number } {
  try {
    const { key, to_seq, latest_seq } = JSON.parse(line) as { key?: unknown; to_seq?: unknown; latest_seq?: unknown };
    return { key: typeof key === "string" && /^[\w.+/=:-]+$/.test(key) ? key : "", to: Number(to_seq) || 0, latest: Number(latest_seq) || 0 };
  } catch {
    return { key: "", to: 0, latest: 0 };
  }
}
