import { StrictMode, useEffect, type ReactNode } from "react";
import { createRoot } from "react-dom/client";
import "../style.css";
import type { Scope } from "../shared/api";
import { Link, useRoute } from "../shared/route";
import { paint } from "../shared/theme";
import { Button, Empty, Page } from "../ui/kit";
import { AppContext, useApp, type App } from "../views/app";
import { seesBudgets, seesKeys } from "../views/gate";
import { Logo } from "../views/brand";
import { Budgets } from "../views/budgets";
import { Jobs } from "../views/jobs";
import { OneKey } from "../views/key";
import { Keys } from "../views/keys";
import { Limits } from "../views/limits";
import { Models } from "../views/models";
import { Overview } from "../views/overview";
import { Away, Stuck, useSession, type Signed } from "../views/session";
import { SignIn } from "../views/signin";
import { Start } from "../views/start";
import { ThemeButton } from "../views/theme";
import { Usage } from "../views/usage";
import { useHasWallet, WalletPage } from "../views/wallet";

interface Brand {
  product_name: string;
  logo_url: string | null;
  accent_color: string | null;
}

// The gateway writes the brand into the page, so that the first thing that is
// painted is the reseller's.
const brand = JSON.parse(document.querySelector<HTMLMetaElement>('meta[name="brand"]')?.content ?? '{"product_name":"","logo_url":null,"accent_color":null}') as Brand;

const figures = (app: App) => app.can("stats:read");

// Each place, and who may open it; undefined is everybody.
const places: [path: string, name: string, view: () => ReactNode, may?: (app: App) => boolean][] = [
  ["/", "Overview", () => <Overview />, figures],
  ["/usage", "Usage", () => <Usage />, figures],
  ["/keys", "Keys", () => <Keys />, seesKeys],
  ["/budgets", "Budgets", () => <Budgets />, seesBudgets],
  ["/limits", "Limits", () => <Limits />],
  ["/wallet", "Balance", () => <WalletPage />],
  ["/models", "Models", () => <Models />],
  ["/jobs", "Jobs", () => <Jobs />, figures],
  ["/start", "Quick start", () => <Start />],
];

function Shell({ signed }: { signed: Signed }) {
  const session = signed.session!;
  const route = useRoute();
  const path = route.path === "/" && !session.scopes.includes("stats:read") ? "/models" : route.path; // who may not see figures begins elsewhere
  const key = /^\/keys\/([^/]+)$/.exec(path)?.[1];
  const found = places.find(([p]) => p === (key ? "/keys" : path));
  const app: App = { session, base: session.base_url || location.origin, can: (s: Scope) => session.scopes.includes(s), nameOf: () => session.name, suspended: () => false, named: true, product: brand.product_name };
  useEffect(() => {
    document.title = `${found?.[1] ?? "Not found"} · ${brand.product_name}`;
    document.querySelector(".tabs [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [found]);
  return (
    <AppContext value={app}>
      <a className="skip" href="#content" onClick={(e) => { e.preventDefault(); document.getElementById("content")?.focus(); }}>Skip to content</a>
      <header className="top">
        <div>
          <div className="brandrow">
            <Logo name={brand.product_name} url={brand.logo_url} />
            <b className="cut">{brand.product_name}</b>
            <span className="grow" />
            <span className="note narrow cut">{session.name}</span>
            <ThemeButton />
            <Button look="quiet" icon="out" aria-label="Sign out" title="Sign out" onClick={signed.leave} />
          </div>
          <Tabs path={key ? "/keys" : path} />
        </div>
      </header>
      <main id="content" className="below" tabIndex={-1}>
        {key ? <OneKey key={key} id={key} /> : found ? found[2]() : <Page title="Not found"><div className="card"><Empty icon="search" title="There is nothing at this address" action={<Link className="button" to="">Overview</Link>} /></div></Page>}
      </main>
      <Stuck signed={signed} />
    </AppContext>
  );
}

/** Tabs lead to the pages; the balance has one where there is a wallet. */
function Tabs({ path }: { path: string }) {
  const wallet = useHasWallet();
  const app = useApp();
  return (
    <nav className="tabs" aria-label={brand.product_name}>
      {places.filter(([to, , , may]) => (to !== "/wallet" || wallet || path === to) && (!may || may(app))).map(([to, name]) => <Link key={to} to={to === "/" ? "" : to} aria-current={to === path ? "page" : undefined}>{name}</Link>)}
    </nav>
  );
}

function Root() {
  const signed = useSession();
  if (!signed.known) return null;
  if (signed.failure) return <Away title={brand.product_name} mark={<Logo name={brand.product_name} url={brand.logo_url} />} failure={signed.failure} />;
  if (signed.session) return <Shell signed={signed} />;
  return (
    <SignIn
      title={brand.product_name} mark={<Logo name={brand.product_name} url={brand.logo_url} />} ended={signed.ended} left={signed.left} onDone={signed.enter}
      note={<p>Sign in with the key that {brand.product_name} gave you. It is checked, not kept: you stay signed in for at most a day, and 2 hours after the last page.</p>}
    />
  );
}

paint(document.documentElement, brand.accent_color);
createRoot(document.getElementById("app")!).render(<StrictMode><Root /></StrictMode>);
