import { lazy, StrictMode, Suspense, useEffect, useState, type ReactNode } from "react";
import { createRoot } from "react-dom/client";
import "../style.css";
import mark from "../mark.svg";
import { api, body as bodyOf, providers as askProviders, switchTo, type Provider, type Scope, type SubAccount } from "../shared/api";
import { Link, useRoute } from "../shared/route";
import { paint } from "../shared/theme";
import { useAsked, useMedia } from "../shared/use";
import { Icon } from "../ui/icons";
import { Button, Empty, Page } from "../ui/kit";
import { AppContext, type App } from "../views/app";
import { Billing } from "../views/billing";
import { Branding } from "../views/branding";
import { Budgets } from "../views/budgets";
import { Customer, Customers } from "../views/customers";
import { Evidence } from "../views/evidence";
import { Jobs } from "../views/jobs";
import { OneKey } from "../views/key";
import { Keys } from "../views/keys";
import { Limits } from "../views/limits";
import { Models } from "../views/models";
import { Overview } from "../views/overview";
import { Away, Stuck, useSession, type Signed } from "../views/session";
import { People, Sessions } from "../views/people";
import { SignIn } from "../views/signin";
import { ThemeButton } from "../views/theme";
import { Usage } from "../views/usage";

const Palette = lazy(() => import("../views/palette"));

// Each place, and the scope without which it shows nothing; "" is everybody's.
const places: { title: string; list: [path: string, name: string, icon: string, view: () => ReactNode, scope: Scope | ""][] }[] = [
  { title: "", list: [["/", "Overview", "overview", () => <Overview />, "stats:read"], ["/usage", "Usage", "usage", () => <Usage />, "stats:read"], ["/models", "Models", "models", () => <Models />, ""], ["/jobs", "Jobs", "jobs", () => <Jobs />, "stats:read"]] },
  { title: "Access", list: [["/keys", "Keys", "keys", () => <Keys />, "keys:manage"], ["/budgets", "Budgets", "budgets", () => <Budgets />, "keys:manage"], ["/limits", "Limits", "limits", () => <Limits />, ""], ["/people", "People", "customers", () => <People />, "keys:manage"], ["/sessions", "Sessions", "screen", () => <Sessions />, ""]] },
  { title: "Reselling", list: [["/customers", "Customers", "customers", () => <Customers />, "keys:manage"], ["/branding", "Branding", "branding", () => <Branding />, "keys:manage"], ["/billing", "Billing", "billing", () => <Billing />, "keys:manage"]] },
  { title: "Audit", list: [["/evidence", "Evidence", "evidence", () => <Evidence />, "stats:read"]] },
];

function view(path: string): { name: string; body: ReactNode } {
  for (const group of places) {
    for (const [p, name, , body] of group.list) if (p === path) return { name, body: body() };
  }
  const customer = /^\/customers\/([^/]+)$/.exec(path);
  if (customer?.[1]) return { name: "Customer", body: <Customer key={customer[1]} id={customer[1]} /> };
  const key = /^\/keys\/([^/]+)$/.exec(path);
  if (key?.[1]) return { name: "Key", body: <OneKey key={key[1]} id={key[1]} /> };
  return { name: "Not found", body: <Page title="Not found"><div className="card"><Empty icon="search" title="There is nothing at this address" action={<Link className="button" to="/">Overview</Link>} /></div></Page> };
}

function Shell({ signed }: { signed: Signed }) {
  const session = signed.session!;
  const route = useRoute();
  const [open, setOpen] = useState(false);
  const [finding, setFinding] = useState(false);
  const narrow = useMedia("(max-width: 800px)");
  const can = (s: Scope) => session.scopes.includes(s);
  const path = route.path === "/" && !can("stats:read") ? "/models" : route.path; // who may not see figures begins elsewhere
  const customers = useAsked<SubAccount[]>(can("keys:manage") ? "subaccounts" : undefined, () => bodyOf(api.GET("/gw/subaccounts")));
  const byID = new Map(customers.data?.map((c) => [c.id, c]));
  const app: App = { session, base: session.base_url || location.origin, can, nameOf: (id) => byID.get(id)?.name, suspended: (id) => byID.get(id)?.status === "suspended", named: !customers.busy || !!customers.data };
  const offered = places.map((group) => ({ ...group, list: group.list.filter(([, , , , scope]) => !scope || can(scope)) })).filter((group) => group.list.length > 0);
  const { name, body } = view(path);
  useEffect(() => {
    const press = (e: KeyboardEvent) => {
      if (e.key.toLowerCase() !== "k" || !(e.ctrlKey || e.metaKey) || document.querySelector("dialog[open]")) return;
      e.preventDefault();
      setFinding(true);
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
  useEffect(() => {
    setOpen(false);
    document.title = `${name} · ${session.name}`;
  }, [path, name, session.name]);
  const current = ["/customers", "/keys"].find((p) => path.startsWith(p)) ?? path;
  return (
    <AppContext value={app}>
      <a className="skip" href="#content" onClick={(e) => { e.preventDefault(); document.getElementById("content")?.focus(); }}>Skip to content</a>
      <div className="topbar">
        <Button look="quiet" icon="menu" aria-label="Menu" aria-expanded={open} onClick={() => setOpen(!open)} />
        <img className="mark" src={mark} alt="" width={26} height={26} />
        <b className="cut">{session.name}</b>
      </div>
      <div className="frame">
        <nav className={"side" + (open ? " open" : "")} aria-label="Dashboard" onKeyDown={(e) => e.key === "Escape" && setOpen(false)}>
          <div className="who">
            <img className="mark" src={mark} alt="" width={30} height={30} />
            <div className="grow"><b className="cut">{session.name}</b><span className="note">Modelgate</span></div>
          </div>
          {session.person && session.person.organizations.length > 1 && (
            <select aria-label="Organization" value={session.organization_id} onChange={(e) => void switchTo(e.target.value)}>
              {session.person.organizations.map((o) => <option key={o.id} value={o.id}>{o.name}</option>)}
            </select>
          )}
          {offered.map((group) => (
            <div key={group.title}>
              {group.title && <h2>{group.title}</h2>}
              {group.list.map(([to, title, icon]) => (
                <Link key={to} to={to === "/" ? "" : to} aria-current={current === to ? "page" : undefined} onClick={() => setOpen(false)}><Icon name={icon} />{title}</Link>
              ))}
            </div>
          ))}
          {session.person && <p className="note cut" title={session.person.role}>{session.person.name || session.person.email || "Signed in"} · {session.person.role}</p>}
          <div className="foot row apart">
            <Button look="quiet" icon="out" onClick={signed.leave}>Sign out</Button>
            <Button look="quiet" icon="search" aria-label="Go to…" title="Go to… (Ctrl or ⌘ K)" onClick={() => setFinding(true)} />
            <ThemeButton />
          </div>
        </nav>
        {narrow && open && <button type="button" className="scrim" aria-label="Close the menu" onClick={() => setOpen(false)} />}
        <main id="content" tabIndex={-1}>{body}</main>
      </div>
      <Stuck signed={signed} />
      {finding && <Suspense><Palette places={offered.flatMap((g) => g.list.map(([to, name, icon]) => ({ to, name, icon })))} onClose={() => setFinding(false)} /></Suspense>}
    </AppContext>
  );
}

function Root() {
  const signed = useSession();
  const [offered, setOffered] = useState<Provider[]>();
  const asks = signed.known && !signed.session && !signed.failure;
  useEffect(() => {
    if (asks) askProviders().then(setOffered, () => setOffered([]));
  }, [asks]);
  if (!signed.known) return null;
  if (signed.failure) return <Away title="Modelgate" mark={<img className="mark" src={mark} alt="" width={44} height={44} />} failure={signed.failure} />;
  if (signed.session) return <Shell signed={signed} />;
  if (!offered) return null;
  return (
    <SignIn
      title="Sign in to Modelgate" mark={<img className="mark" src={mark} alt="" width={44} height={44} />} ended={signed.ended} left={signed.left} providers={offered} onDone={signed.enter}
      note={<p>Sign in with {offered.length > 0 && "an account of your company, or with "}a key of your organization. A key is checked, not kept: you stay signed in for at most a day, and 2 hours after the last page. What you see follows the key's scopes. No key yet? The operator issues one with <code>modelgate key issue</code>.</p>}
    />
  );
}

paint(document.documentElement, null);
createRoot(document.getElementById("app")!).render(<StrictMode><Root /></StrictMode>);
