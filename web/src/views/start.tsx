import { useState } from "react";
import { Link } from "../shared/route";
import { Card, Code, Copy, Page, Segments } from "../ui/kit";
import { useApp } from "./app";
import { firstCall, messages, responses, useFirstModel, type Callable } from "./firstcall";

/** Start is how a customer makes the first call. */
export function Start() {
  const app = useApp();
  const [client, setClient] = useState("curl");
  const model = useFirstModel();
  const base = model.door === messages ? app.base : app.base + "/v1"; // as its clients want it
  const samples = { curl: firstCall(app.base, model, "$API_KEY"), ...inCode(app.base, model) };
  return (
    <Page title="Quick start" note={`Call models of ${app.product ?? ""} from any ${model.door === messages ? "Anthropic" : "OpenAI"}-compatible client: only the address and the key change.`}>
      <div className="halves">
        <Card title="1. The address">
          <div className="secret"><code>{base}</code><Copy text={base} /></div>
        </Card>
        <Card title="2. A key">
          <p>{app.session.allow_self_issue ? <>Issue one under <Link to="/keys">Keys</Link>. Its secret is shown once.</> : <>The key that you signed in with, or another one that {app.product} has given you.</>}</p>
        </Card>
      </div>
      <Card title="3. A call" actions={<Segments label="Client" value={client} onChange={setClient} options={[["curl", "curl"], ["python", "Python"], ["node", "Node.js"]]} />}>
        <Code label="A first call" text={samples[client as keyof typeof samples]} />
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

/** inCode is a first call with the clients of the format that the model is called in. */
function inCode(base: string, { slug, door }: Callable): { python: string; node: string } {
  const hello = `[{"role": "user", "content": "Hello"}]`;
  const said = `[{ role: "user", content: "Hello" }]`;
  if (door === messages) {
    return {
      python: `from anthropic import Anthropic\n\nclient = Anthropic(base_url="${base}", auth_token=API_KEY)\nreply = client.messages.create(\n    model="${slug}",\n    max_tokens=256,\n    messages=${hello},\n)\nprint(reply.content[0].text)`,
      node: `import Anthropic from "@anthropic-ai/sdk";\n\nconst client = new Anthropic({ baseURL: "${base}", authToken: process.env.API_KEY });\nconst reply = await client.messages.create({\n  model: "${slug}",\n  max_tokens: 256,\n  messages: ${said},\n});\nconsole.log(reply.content[0].text);`,
    };
  }
  const python = `from openai import OpenAI\n\nclient = OpenAI(base_url="${base}/v1", api_key=API_KEY)\n`;
  const node = `import OpenAI from "openai";\n\nconst client = new OpenAI({ baseURL: "${base}/v1", apiKey: process.env.API_KEY });\n`;
  if (door === responses) {
    return {
      python: `${python}reply = client.responses.create(model="${slug}", input="Hello")\nprint(reply.output_text)`,
      node: `${node}const reply = await client.responses.create({ model: "${slug}", input: "Hello" });\nconsole.log(reply.output_text);`,
    };
  }
  return {
    python: `${python}reply = client.chat.completions.create(\n    model="${slug}",\n    messages=${hello},\n)\nprint(reply.choices[0].message.content)`,
    node: `${node}const reply = await client.chat.completions.create({\n  model: "${slug}",\n  messages: ${said},\n});\nconsole.log(reply.choices[0].message.content);`,
  };
}
