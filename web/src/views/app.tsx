import { createContext, useContext } from "react";
import type { Scope, Session } from "../shared/api";

/** What every view knows: who is signed in and where calls go. */
export interface App {
  session: Session;
  /** Where the API's clients send their calls. */
  base: string;
  can: (scope: Scope) => boolean;
  /** Names of sub-accounts, as far as they are known. */
  nameOf: (subAccount: string) => string | undefined;
  /** Whether the keys of a sub-account are refused for its sake. */
  suspended: (subAccount: string) => boolean;
  /** Whether these names are there, as far as they ever will be: what shows them waits, so that nothing jumps. */
  named: boolean;
  /** How a portal is called; undefined in the dashboard. */
  product?: string;
}

export const AppContext = createContext<App>(undefined as unknown as App);

export function useApp(): App {
  return useContext(AppContext);
}
