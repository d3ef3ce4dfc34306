import { useState } from "react";
import { Link } from "../shared/route";
import { Card, Code, Copy, Page, Segments } from "../ui/kit";
import { useApp } from "./app";
import { firstCall, useFirstModel } from "./firstcall";

/** Start is how a customer makes the first call. */
export function Start() {
  const app = useApp();
  const [client, setClient] = useState("curl");
  const model = useFirstModel();
  const base = app.base + "/v1";
  const samples: Record<string, string> = {
    curl: firstCall(app.base, model, "$API_KEY"),
    python: `from openai import OpenAI\n\nclient = OpenAI(base_url="${base}", api_key=API_KEY)\nreply = client.chat.completions.create(\n    model="${model}",\n    messages=[{"role": "user", "content": "Hello"}],\n)\nprint(reply.choices[0].message.content)`,
    node: `import OpenAI from "openai";\n\nconst client = new OpenAI({ baseURL: "${base}", apiKey: process.env.API_KEY });\nconst reply = await client.chat.completions.create({\n  model: "${model}",\n  messages: [{ role: "user", content: "Hello" }],\n});\nconsole.log(reply.choices[0].message.content);`,
  };
  return (
    <Page title="Quick start" note={`Call models of ${app.product ?? ""} from any OpenAI-compatible client: only the address and the key change.`}>
      <div className="halves">
        <Card title="1. The address">
          <div className="secret"><code>{base}</code><Copy text={base} /></div>
        </Card>
        <Card title="2. A key">
          <p>{app.session.allow_self_issue && app.can("keys:manage") ? <>Issue one under <Link to="/keys">Keys</Link>. Its secret is shown once.</> : <>The key that you signed in with, or another one that {app.product} has given you.</>}</p>
        </Card>
      </div>
      <Card title="3. A call" actions={<Segments label="Client" value={client} onChange={setClient} options={[["curl", "curl"], ["python", "Python"], ["node", "Node.js"]]} />}>
        <Code label="A first call" text={samples[client] ?? ""} />
      </Card>
      <Card title="When a call is refused">
        <dl className="facts">
          <dt><code>401</code></dt><dd>The key is missing, mistyped, revoked or expired.</dd>
          <dt><code>402</code></dt><dd>A budget is used up: see <Link to="/budgets">Budgets</Link>.</dd>
          <dt><code>403</code></dt><dd>The key may not call this model: see <Link to="/models">Models</Link>.</dd>
          <dt><code>429</code></dt><dd>Too many calls at once; wait for a second.</dd>
        </dl>
        <p className="note" style={{ marginTop: 12 }}>Every answer carries <code>X-Gateway-Request-Id</code>. Name it when you ask for help; it is also the call's id under <Link to="/usage">Usage</Link>.</p>
      </Card>
    </Page>
  );
}
