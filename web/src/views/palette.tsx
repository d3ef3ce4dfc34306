import { useEffect, useId, useRef, useState, type KeyboardEvent } from "react";
import { api, body, type Model } from "../shared/api";
import { go } from "../shared/route";
import { useAsked } from "../shared/use";
import { callsAt } from "../shared/window";
import { Icon } from "../ui/icons";
import { Dialog } from "../ui/kit";
import { useApp } from "./app";
import { useCustomers } from "./lists";
import { seesKeys } from "./gate";
import { nameOfKey, useKeys } from "./keys";

export interface Place {
  to: string;
  name: string;
  icon: string;
}

interface Found extends Place {
  kind: string;
}

const shown = 12;

/** Palette goes anywhere by typing: pages, customers, keys, models, and the call of a request id. A secret that is pasted is compared here with how keys begin, and is not sent. */
export default function Palette({ places, onClose }: { places: Place[]; onClose: () => void }) {
  const app = useApp();
  const customers = useCustomers(app.can("keys:manage"));
  const keys = useKeys(seesKeys(app));
  const models = useAsked<{ models: Model[] }>("models", () => body(api.GET("/gw/models")));
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const list = useId();
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.focus(), []);
  const want = text.trim().toLowerCase();
  const secret = /^gw_live_[0-9a-f]{48}$/.test(want);
  const all: Found[] = [
    ...places.map((p) => ({ ...p, kind: "Page" })),
    ...(customers.data ?? []).map((c) => ({ to: "/customers/" + c.id, name: c.name, icon: "customers", kind: "Customer" })),
    ...(keys.data ?? []).map((k) => ({ to: "/keys/" + k.id, name: nameOfKey(k), icon: "keys", kind: "Key" })),
    ...(models.data?.models ?? []).map((m) => ({ to: "/models?allowed=0&model=" + encodeURIComponent(m.slug), name: m.slug, icon: "models", kind: "Model" })),
  ];
  const matches = (f: Found) => (secret ? f.kind === "Key" && want.startsWith(keys.data?.find((k) => f.to.endsWith(k.id))?.key_prefix ?? "-") : f.name.toLowerCase().includes(want));
  const found = (want ? all.filter(matches) : all.filter((f) => f.kind === "Page")).slice(0, shown);
  if (/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(want)) found.unshift({ to: callsAt({ id: want }) + "&row=" + want, name: want, icon: "usage", kind: "Call" });
  const open = (f: Found | undefined) => {
    if (!f) return;
    onClose();
    go(f.to === "/" ? "" : f.to);
  };
  const press = (e: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    if (e.key === "Enter") open(found[at]);
    else if (step && found.length) setAt((at + step + found.length) % found.length);
    else return;
    e.preventDefault();
  };
  return (
    <Dialog title="Go to" onClose={onClose}>
      <span className="find">
        <Icon name="search" />
        <input
          ref={field} role="combobox" aria-label="Go to" aria-expanded aria-controls={list} aria-activedescendant={found[at] && `${list}-${at}`} autoComplete="off" spellCheck={false}
          placeholder="Page, customer, key, model or request id" value={text} onChange={(e) => { setText(e.target.value); setAt(0); }} onKeyDown={press}
        />
      </span>
      <ul id={list} role="listbox" aria-label="Found" className="palette">
        {found.map((f, i) => (
          <li key={f.kind + f.to} id={`${list}-${i}`} role="option" aria-selected={i === at} onMouseMove={() => setAt(i)} onClick={() => open(f)}>
            <Icon name={f.icon} /><span className="cut grow">{f.name}</span><span className="note">{f.kind}</span>
          </li>
        ))}
      </ul>
      {found.length === 0 && <p className="note" role="status">{secret ? "No key of yours has this secret." : "Nothing is called so."}</p>}
    </Dialog>
  );
}
