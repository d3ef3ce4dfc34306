import { portal, type BudgetScope } from "../shared/api";
import { Choice, Field } from "../ui/kit";
import { useApp } from "./app";
import { nameOfKey, stateOf, useKeys } from "./keys";
import { useCustomers } from "./lists";

/** Target is what a budget or a limit is of. The id of the organization is "". */
export interface Target {
  scope: BudgetScope;
  id: string;
}

/** chosen reports whether it is known whose a target is. */
export const chosen = (t: Target) => t.scope === "client" || t.id !== "";

/** noTarget is where a choice begins: in a portal there are only the customer's keys. */
export const noTarget: Target = { scope: portal ? "key" : "client", id: "" };

/** For lets somebody choose the organization, a customer or a key. */
export function For({ value, onChange }: { value: Target; onChange: (t: Target) => void }) {
  const app = useApp();
  const customers = useCustomers(!portal);
  const keys = useKeys();
  const live = keys.data?.filter((k) => stateOf(k) === "active") ?? [];
  const of = (sub?: string) => (sub && !portal ? " · " + (app.nameOf(sub) ?? "") : "");
  const options: [string, string][] = value.scope === "key" ? live.map((k) => [k.id, nameOfKey(k) + of(k.sub_account_id ?? undefined)]) : (customers.data ?? []).map((c) => [c.id, c.name]);
  return (
    <>
      {!portal && <Field label="For">{(ids) => <Choice {...ids} value={value.scope} onChange={(v) => onChange({ scope: v as BudgetScope, id: "" })} options={[["client", "The organization"], ["sub_account", "A customer"], ["key", "A key"]]} />}</Field>}
      {value.scope !== "client" && <Field label={value.scope === "key" ? "Key" : "Customer"}>{(ids) => <Choice {...ids} required value={value.id} onChange={(id) => onChange({ ...value, id })} options={[["", "Choose…"], ...options]} />}</Field>}
    </>
  );
}

/** useTargetName names targets. */
export function useTargetName(when: boolean): { nameOf: (t: { scope: BudgetScope; id?: string }) => string; known: boolean } {
  const app = useApp();
  const keys = useKeys(when);
  const names = new Map(keys.data?.map((k) => [k.id, nameOfKey(k)]));
  const nameOf = ({ scope, id = "" }: { scope: BudgetScope; id?: string }) => {
    if (scope === "client") return app.session.name;
    if (scope === "sub_account") return portal ? app.session.name : (app.nameOf(id) ?? id);
    return names.get(id) ?? id;
  };
  return { nameOf, known: app.named && (!keys.busy || !!keys.data) };
}
