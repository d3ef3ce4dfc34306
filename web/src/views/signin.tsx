import { useState, type ReactNode } from "react";
import { session as ask, signInWith, type Failure, type Provider, type Session } from "../shared/api";
import { useAction } from "../shared/use";
import { Button, Text, Trouble } from "../ui/kit";

/** SignIn asks for a key, or offers providers that people have an account of; the gateway answers with a session. */
export function SignIn({ title, mark, note, ended, left, providers = [], onDone }: { title: string; mark: ReactNode; note: ReactNode; ended: boolean; left?: Failure; providers?: Provider[]; onDone: (session: Session) => void }) {
  const [key, setKey] = useState("");
  const action = useAction();
  const leave = useAction();
  const submit = () => action.run(async () => onDone(await ask("POST", key.trim())));
  return (
    <main className="door">
      <div>
        <div className="title">{mark}<h1>{title}</h1></div>
        <form className="card stack" onSubmit={(e) => { e.preventDefault(); void submit(); }}>
          {left && !action.failure && <Trouble failure={left} />}
          {ended && !action.failure && <p className="note" role="status">The session has ended. Sign in again to go on.</p>}
          {providers.map((p) => <Button key={p.name} look="primary" busy={leave.busy} onClick={() => void leave.run(() => signInWith(p.name))}>Sign in with {p.label}</Button>)}
          {leave.failure && <Trouble failure={leave.failure} />}
          {providers.length > 0 && <p className="note">Or with a key:</p>}
          <Text label="Key" type="password" name="key" autoComplete="current-password" autoFocus={!providers.length} spellCheck={false} required placeholder="gw_live_…" value={key} onChange={setKey} wrong={action.failure?.status === 401 ? "This key is not good here. It may be mistyped, revoked, expired, or of a suspended account." : undefined} />
          {action.failure && action.failure.status !== 401 && <Trouble failure={action.failure} />}
          {action.failure?.status === 401 && action.failure.requestID && <p className="note break">Request <code>{action.failure.requestID}</code></p>}
          <Button type="submit" look={providers.length ? undefined : "primary"} busy={action.busy} disabled={!key.trim()}>Sign in</Button>
        </form>
        <div className="note prose">{note}</div>
      </div>
    </main>
  );
}
