import { api, body, type SubAccount } from "../shared/api";
import { useAsked } from "../shared/use";

/** useCustomers reads the customers, which several views choose from. */
export function useCustomers(when = true) {
  return useAsked<SubAccount[]>(when ? "subaccounts" : undefined, () => body(api.GET("/gw/subaccounts")));
}
