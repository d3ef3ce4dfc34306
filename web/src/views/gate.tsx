import { portal, type Scope } from "../shared/api";
import { Empty } from "../ui/kit";
import { useApp, type App } from "./app";

const roleOf = (app: App) => app.session.person?.role;

/** develops reports whether somebody has keys of their own and no others. */
export const develops = (app: App) => roleOf(app) === "developer";

/** seesBudgets reports whether budgets are shown: in a portal to who reads statistics, too. */
export const seesBudgets = (app: App) => app.can("keys:manage") || roleOf(app) === "billing" || (portal && app.can("stats:read"));

/** seesKeys reports whether keys are shown: in a portal to who issues there, too. */
export const seesKeys = (app: App) => seesBudgets(app) || develops(app) || (portal && !!app.session.allow_self_issue);

/** readScope is the scope that shows keys and budgets. */
export const readScope: Scope = portal ? "stats:read" : "keys:manage";

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
