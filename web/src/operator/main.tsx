import { StrictMode, useEffect, useState, type ReactNode } from "react";
import { createRoot } from "react-dom/client";
import "../style.css";
import { ask, Failure, onSignedOut, root, unreachable } from "../shared/api";
import { Link, useRoute } from "../shared/route";
import { forget, useAction } from "../shared/use";
import { Badge, Button, Empty, Page, Text, Trouble } from "../ui/kit";
import { ThemeButton } from "../views/theme";
import { paint } from "../shared/theme";
import type { Operator, Organization } from "./api";
import { Events, Jobs } from "./books";
import { Calls } from "./calls";
import { Health } from "./health";
import { Overview } from "./overview";
import { Providers } from "./providers";
import { Access, Audit, Keys, OneOrganization, Organizations, useOrganizations } from "./views";

// A link carries its token in the fragment, which no server sees. It leaves the
// address bar before anything else happens.
const token = location.pathname === root + "/link" ? location.hash.slice(1) : "";
if (token) history.replaceState(null, "", root);

interface Known {
  me: Operator;
  organizations: Organization[] | undefined;
  names: Map<string, string>; // of organizations
}

const places: [path: string, name: string, view: (known: Known) => ReactNode][] = [
  ["/", "Overview", ({ organizations }) => <Overview organizations={organizations} />],
  ["/organizations", "Organizations", ({ me }) => <Organizations me={me} />],
  ["/calls", "Calls", ({ names }) => <Calls names={names} />],
  ["/providers", "Providers", ({ me, names }) => <Providers me={me} names={names} />],
  ["/jobs", "Jobs", ({ me, names }) => <Jobs me={me} names={names} />],
  ["/events", "Billing events", ({ me, names }) => <Events me={me} names={names} />],
  ["/health", "Health", () => <Health />],
  ["/keys", "Keys", ({ me }) => <Keys me={me} />],
  ["/audit", "Audit", () => <Audit />],
  ["/access", "Access", ({ me }) => <Access me={me} />],
];

function Shell({ me, leave, left }: { me: Operator; leave: () => void; left: Failure | undefined }) {
  const { path } = useRoute();
  const one = /^\/organizations\/([^/]+)$/.exec(path);
  const organizations = useOrganizations().data;
  const known = { me, organizations, names: new Map(organizations?.map((o) => [o.id, o.name])) };
  const found = one ? places[1] : places.find(([p]) => p === path);
  useEffect(() => {
    document.title = `${found?.[1] ?? "Not found"} · Modelgate operator`;
  }, [found]);
  return (
    <>
      <a className="skip" href="#content" onClick={(e) => { e.preventDefault(); document.getElementById("content")?.focus(); }}>Skip to content</a>
      <header className="top">
        <div>
          <div className="brandrow">
            <b className="cut">Modelgate operator</b>
            <span className="grow" />
            <span className="note narrow cut">{me.name}</span>
            <Badge tone={me.role === "admin" ? "warn" : "plain"}>{me.role}</Badge>
            <ThemeButton />
            <Button look="quiet" icon="out" aria-label="Sign out" title="Sign out" onClick={leave} />
          </div>
          <nav className="tabs" aria-label="Console">
            {places.map(([to, name]) => <Link key={to} to={to === "/" ? "" : to} aria-current={to === found?.[0] ? "page" : undefined}>{name}</Link>)}
          </nav>
        </div>
      </header>
      <main id="content" className="below" tabIndex={-1}>
        {left && <Trouble failure={left} />}
        {one ? <OneOrganization key={one[1]} id={one[1]!} me={me} /> : found ? found[2](known) : <Page title="Not found"><div className="card"><Empty icon="search" title="There is nothing at this address" action={<Link className="button" to="">Overview</Link>} /></div></Page>}
      </main>
    </>
  );
}

interface Offer {
  name: string;
  label: string;
}

/** Accounts offers the OpenID provider that operators have an account of. */
function Accounts() {
  const [offers, setOffers] = useState<Offer[]>([]);
  const action = useAction();
  useEffect(() => {
    // Without the answer, tokens sign in.
    ask<{ providers: Offer[] }>("GET", "/session/offers").then((a) => setOffers(a?.providers ?? []), () => {});
  }, []);
  const leave = (provider: string) =>
    action.run(async () => {
      const to = await ask<{ url: string }>("POST", "/session/start", { provider, return_to: location.pathname + location.search });
      location.assign(to!.url);
    });
  return (
    <>
      {offers.map((o) => <Button key={o.name} look="primary" busy={action.busy} onClick={() => void leave(o.name)}>Sign in with {o.label}</Button>)}
      {action.failure && <Trouble failure={action.failure} />}
      {offers.length > 0 && <p className="note">Or with a token:</p>}
    </>
  );
}

function SignIn({ ended, failure, onDone }: { ended: boolean; failure: Failure | undefined; onDone: (me: Operator) => void }) {
  const [text, setText] = useState("");
  const action = useAction();
  const shown = action.failure ?? failure;
  return (
    <main className="door">
      <div>
        <div className="title"><h1>Modelgate operator</h1></div>
        <form className="card stack" onSubmit={(e) => { e.preventDefault(); void action.run(async () => onDone((await ask<Operator>("POST", "/session", { token: text.trim() }))!)); }}>
          {ended && !shown && <p className="note" role="status">The session has ended. Sign in again to go on.</p>}
          <Accounts />
          <Text label="Operator token" type="password" name="token" autoComplete="current-password" autoFocus spellCheck={false} required placeholder="gw_op_…" value={text} onChange={setText} />
          {shown && <Trouble failure={shown} />}
          <Button type="submit" look="primary" busy={action.busy} disabled={!text.trim()}>Sign in</Button>
        </form>
        <div className="note prose"><p>Without a token, run <code>modelgate operator link</code> on the gateway's machine. It prints a link that signs in once.</p></div>
      </div>
    </main>
  );
}

function Root() {
  const [state, set] = useState<{ me?: Operator; known: boolean; ended: boolean; failure?: Failure }>({ known: false, ended: false });
  useEffect(() => {
    onSignedOut(() => {
      forget();
      set({ known: true, ended: true });
    });
    first.then(
      (me) => set({ me, known: true, ended: false }),
      (e) => set({ known: true, ended: false, failure: e instanceof Failure ? (e.status === 401 && !token ? undefined : e) : unreachable() }),
    );
  }, []);
  const leave = () => void ask<{ url: string }>("DELETE", "/session").then(
    (then) => {
      forget();
      if (then) return location.assign(then.url); // the provider's session ends too
      set({ known: true, ended: false });
    },
    (e) => set((s) => ({ ...s, failure: e instanceof Failure ? e : unreachable() })),
  );
  if (!state.known) return null;
  if (state.me) return <Shell me={state.me} leave={leave} left={state.failure} />;
  return <SignIn ended={state.ended} failure={state.failure} onDone={(me) => set({ me, known: true, ended: false })} />;
}

/** first is asked once, since a link is good once. */
const first = ask<Operator>(token ? "POST" : "GET", "/session", token ? { token } : undefined);

paint(document.documentElement, null);
createRoot(document.getElementById("app")!).render(<StrictMode><Root /></StrictMode>);
