import { useState } from "react";
import { portal } from "../shared/api";
import { shortDay } from "../shared/format";
import { useFilter } from "../shared/route";
import { Button, Choice } from "../ui/kit";
import { useApp } from "./app";
import { seesKeys } from "./gate";
import { nameOfKey, useKeys } from "./keys";

const groups: [by: string, name: string][] = portal
  ? [["model_slug", "Model"], ["author", "Author"], ["key_id", "Key"]]
  : [["model_slug", "Model"], ["author", "Author"], ["provider", "Provider"], ["sub_account_id", "Customer"], ["key_id", "Key"], ["region", "Region"]];

/** Group is what figures are taken apart by. */
export interface Group {
  /** As the API calls it; an attribution key where it is none of the others. */
  by: string;
  /** In a sentence: "model". */
  name: string;
  /** What people call one of the groups, once all their names are there. */
  label: (key: string) => string;
  named: boolean;
  set: (by: string) => void;
}

/** useGroup is the group that the address names. */
export function useGroup(): Group {
  const app = useApp();
  const [by, set] = useFilter("group", "model_slug");
  const keys = useKeys(by === "key_id" && seesKeys(app));
  const prefixes = new Map(keys.data?.map((k) => [k.id, nameOfKey(k)]));
  const label = (key: string) => {
    if (key === "") return by === "sub_account_id" ? "The organization itself" : "(none)";
    if (by === "sub_account_id") return app.nameOf(key) ?? key;
    if (by === "key_id") return prefixes.get(key) ?? key;
    return by === "day" ? shortDay(key) : key;
  };
  const name = groups.find(([v]) => v === by)?.[1].toLowerCase() ?? (by === "day" ? "day" : by);
  const named = by === "sub_account_id" ? app.named : by !== "key_id" || !keys.busy || !!keys.data;
  return { by, name, label, named, set };
}

/** GroupSwitch chooses a group, or an attribution key of one's own. */
export function GroupSwitch({ group }: { group: Group }) {
  const known = group.by === "day" || groups.some(([v]) => v === group.by);
  const [own, setOwn] = useState(known ? "" : group.by);
  return (
    <form className="row" onSubmit={(e) => { e.preventDefault(); if (own.trim()) group.set(own.trim()); }}>
      <label className="note" htmlFor="group">By</label>
      <Choice id="group" value={known ? group.by : "*"} options={[["day", "All calls"], ...groups, ["*", "Attribution…"]]} onChange={(v) => group.set(v === "*" ? own || "team" : v)} />
      {!known && (
        <>
          <input className="brief" aria-label="Attribution key" placeholder={group.by} value={own} maxLength={64} spellCheck={false} onChange={(e) => setOwn(e.target.value)} />
          <Button type="submit">Show</Button>
        </>
      )}
    </form>
  );
}
