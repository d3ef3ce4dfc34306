import type { Scope } from "../shared/api";
import { Empty } from "../ui/kit";
import { useApp } from "./app";

/** NoScope stands where the key that signed in may not look. */
export function NoScope({ scope, what }: { scope: Scope; what: string }) {
  const app = useApp();
  return (
    <div className="card">
      <Empty icon="keys" title={`This key does not show ${what}`}>
        It lacks the scope <code>{scope}</code>. Sign in with a key that has it{app.product ? `, or ask ${app.product} for one` : ""}.
      </Empty>
    </div>
  );
}
