import {
  useEffect, useId, useLayoutEffect, useRef, useState, type ButtonHTMLAttributes, type InputHTMLAttributes, type KeyboardEvent, type ReactNode, type SelectHTMLAttributes,
} from "react";
import type { Failure } from "../shared/api";
import { useMedia } from "../shared/use";
import { Icon } from "./icons";

type ButtonProps = ButtonHTMLAttributes<HTMLButtonElement> & { look?: "primary" | "plain" | "quiet" | "danger"; icon?: string; busy?: boolean };

export function Button({ look = "plain", icon, busy, children, className = "", disabled, ...rest }: ButtonProps) {
  return (
    <button type="button" {...rest} disabled={disabled || busy} aria-busy={busy || undefined} className={`button ${look} ${children ? "" : "square"} ${className}`}>
      {icon && <Icon name={icon} />}
      {children}
      {busy && <span className="spin" aria-hidden="true" />}
    </button>
  );
}

/** Copy puts a text into the clipboard and says so. */
export function Copy({ text, label = "Copy", look = "plain" }: { text: string; label?: string; look?: ButtonProps["look"] }) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // Without a secure context there is no clipboard: the old way still works.
      const area = document.createElement("textarea");
      area.value = text;
      (document.querySelector("dialog[open]") ?? document.body).append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    setDone(true);
    setTimeout(() => setDone(false), 1600);
  };
  return (
    <>
      <Button look={look} icon={done ? "check" : "copy"} onClick={copy} aria-label={label === "" ? "Copy" : undefined}>
        {label && (done ? "Copied" : label)}
      </Button>
      <span className="hidden" role="status">{done ? "Copied" : ""}</span>
    </>
  );
}

/** Code is a text to take away. */
export function Code({ text, label }: { text: string; label: string }) {
  return (
    <div className="code">
      <pre tabIndex={0} aria-label={label}><code>{text}</code></pre>
      <Copy text={text} look="quiet" label="" />
    </div>
  );
}

type Tone = "good" | "bad" | "warn" | "calm" | "plain";

export function Badge({ tone = "plain", children }: { tone?: Tone; children: ReactNode }) {
  return <span className={`badge ${tone}`}>{children}</span>;
}

/** Trouble shows a failure: what was said and the request it was said to. */
export function Trouble({ failure, again }: { failure: Failure; again?: () => void }) {
  return (
    <div className="trouble" role="alert">
      <Icon name="alert" />
      <div>
        <p>{failure.message}</p>
        {failure.requestID && <p className="note">Request <code>{failure.requestID}</code></p>}
      </div>
      {again && <Button onClick={again} icon="refresh">Try again</Button>}
    </div>
  );
}

/** Empty says what is not there and what to do next. */
export function Empty({ icon, title, children, action }: { icon: string; title: string; children?: ReactNode; action?: ReactNode }) {
  return (
    <div className="empty">
      <span className="disc"><Icon name={icon} size={22} /></span>
      <h3>{title}</h3>
      {children && <div className="note">{children}</div>}
      {action && <div className="row center">{action}</div>}
    </div>
  );
}

export function Page({ title, note, actions, children }: { title: ReactNode; note?: ReactNode; actions?: ReactNode; children: ReactNode }) {
  return (
    <div className="page">
      <header className="head">
        <div>
          <h1>{title}</h1>
          {note && <p className="note">{note}</p>}
        </div>
        {actions && <div className="row">{actions}</div>}
      </header>
      {children}
    </div>
  );
}

export function Card({ title, note, actions, children, flush }: { title?: ReactNode; note?: ReactNode; actions?: ReactNode; children: ReactNode; flush?: boolean }) {
  return (
    <section className={"card" + (flush ? " flush" : "")}>
      {(title || actions) && (
        <header className="cardhead">
          <div>
            {title && <h2>{title}</h2>}
            {note && <p className="note">{note}</p>}
          </div>
          {actions && <div className="row">{actions}</div>}
        </header>
      )}
      {children}
    </section>
  );
}

/** FilterSheet holds filters, which phones show when they are asked for. */
export function FilterSheet({ active, children }: { active: boolean; children: ReactNode }) {
  const phone = useMedia("(max-width: 640px)");
  if (!phone) return <>{children}</>;
  return <details className="filtersheet"><summary>Filters{active && <Badge tone="calm">on</Badge>}<span className="grow" /><Icon name="down" /></summary>{children}</details>;
}

/** Field labels a control and says what is wrong with it. */
export function Field({ label, note, wrong, children }: { label: ReactNode; note?: ReactNode; wrong?: string; children: (ids: { id: string; "aria-describedby"?: string; "aria-invalid"?: boolean }) => ReactNode }) {
  const id = useId();
  const about = note || wrong ? id + "-note" : undefined;
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children({ id, "aria-describedby": about, "aria-invalid": wrong ? true : undefined })}
      {about && <p id={about} className={wrong ? "wrong" : "note"}>{wrong ?? note}</p>}
    </div>
  );
}

type TextProps = Omit<InputHTMLAttributes<HTMLInputElement>, "onChange"> & { label: ReactNode; note?: ReactNode; wrong?: string; onChange: (value: string) => void; lead?: string };

export function Text({ label, note, wrong, onChange, lead, ...rest }: TextProps) {
  return (
    <Field label={label} note={note} wrong={wrong}>
      {(ids) => (
        <span className={lead ? "led" : undefined}>
          {lead && <span aria-hidden="true">{lead}</span>}
          <input {...ids} {...rest} onChange={(e) => onChange(e.target.value)} />
        </span>
      )}
    </Field>
  );
}

type ChoiceProps = Omit<SelectHTMLAttributes<HTMLSelectElement>, "onChange"> & { options: [value: string, label: string][]; onChange: (value: string) => void };

/** Choice is a plain select. */
export function Choice({ options, onChange, ...rest }: ChoiceProps) {
  return (
    <span className="select">
      <select {...rest} onChange={(e) => onChange(e.target.value)}>
        {options.map(([value, label]) => (
          <option key={value} value={value}>{label}</option>
        ))}
      </select>
      <Icon name="down" size={16} />
    </span>
  );
}

/** Switch between a few values, as radio buttons that look like one control. */
export function Segments({ label, value, options, onChange }: { label: string; value: string; options: [value: string, label: string][]; onChange: (value: string) => void }) {
  const name = useId();
  return (
    <fieldset className="segments">
      <legend className="hidden">{label}</legend>
      {options.map(([v, text]) => (
        <label key={v}>
          <input type="radio" name={name} value={v} checked={v === value} onChange={() => onChange(v)} />
          <span>{text}</span>
        </label>
      ))}
    </fieldset>
  );
}

export function Check({ label, note, checked, onChange, disabled }: { label: ReactNode; note?: ReactNode; checked: boolean; onChange: (value: boolean) => void; disabled?: boolean }) {
  return (
    <label className="check">
      <input type="checkbox" checked={checked} disabled={disabled} onChange={(e) => onChange(e.target.checked)} />
      <span>
        {label}
        {note && <span className="note">{note}</span>}
      </span>
    </label>
  );
}

/** Dialog is a modal of the browser's own, which keeps the focus. */
export function Dialog({ title, children, onClose, firm, wide }: { title: string; children: ReactNode; onClose: () => void; firm?: boolean; wide?: boolean }) {
  const ref = useRef<HTMLDialogElement>(null);
  const id = useId();
  // Closed while it is still in the page, so that the focus goes back to where
  // it was.
  useLayoutEffect(() => {
    const dialog = ref.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  return (
    <dialog
      ref={ref}
      aria-labelledby={id}
      className={wide ? "wide" : undefined}
      onCancel={(e) => {
        e.preventDefault();
        if (!firm) onClose();
      }}
      onKeyDown={(e) => {
        // Browsers let a page refuse to close once, not twice in a row.
        if (firm && e.key === "Escape") e.preventDefault();
      }}
      onClose={(e) => {
        if (e.target !== ref.current || !ref.current.isConnected) return;
        if (firm) ref.current.showModal();
        else onClose();
      }}
      onMouseDown={(e) => {
        if (!firm && e.target === ref.current) onClose();
      }}
    >
      <div className="sheet">
        <header className="dialoghead">
          <h2 id={id}>{title}</h2>
          {!firm && <Button look="quiet" icon="close" aria-label="Close" onClick={onClose} />}
        </header>
        {children}
      </div>
    </dialog>
  );
}

/** Confirm asks before something that cannot be taken back. */
export function Confirm({ title, children, action, busy, failure, onYes, onClose }: { title: string; children: ReactNode; action: string; busy: boolean; failure?: Failure; onYes: () => void; onClose: () => void }) {
  return (
    <Dialog title={title} onClose={onClose}>
      <div className="stack">
        <div className="prose">{children}</div>
        {failure && <Trouble failure={failure} />}
        <div className="row end">
          <Button onClick={onClose}>Cancel</Button>
          <Button look="danger" busy={busy} onClick={onYes}>{action}</Button>
        </div>
      </div>
    </Dialog>
  );
}

export interface MenuItem {
  label: string;
  danger?: boolean;
  run: () => void;
}

/** placeOf is where a menu stands: below its button, and on the screen. */
function placeOf(button: DOMRect, items: number): { top: number; right: number } {
  return { top: Math.min(button.bottom + 4, innerHeight - 44 * items - 16), right: innerWidth - button.right };
}

/** Menu is a button with a list of things to do. */
export function Menu({ label, items, icon = "more" }: { label: string; items: MenuItem[]; icon?: string }) {
  const [open, setOpen] = useState<{ top: number; right: number }>();
  const box = useRef<HTMLDivElement>(null);
  const shown = !!open;
  useEffect(() => {
    if (!shown) return;
    const away = (e: Event) => {
      if (!box.current?.contains(e.target as Node)) setOpen(undefined);
    };
    const follow = () => {
      const at = box.current?.querySelector("button")?.getBoundingClientRect();
      setOpen(at && at.bottom > 0 && at.top < innerHeight ? placeOf(at, items.length) : undefined);
    };
    document.addEventListener("pointerdown", away);
    addEventListener("scroll", follow, true);
    box.current?.querySelector<HTMLElement>("[role=menuitem]")?.focus({ preventScroll: true });
    return () => {
      document.removeEventListener("pointerdown", away);
      removeEventListener("scroll", follow, true);
    };
  }, [shown, items.length]);
  const keys = (e: KeyboardEvent<HTMLDivElement>) => {
    const list = [...e.currentTarget.querySelectorAll<HTMLElement>("[role=menuitem]")];
    const at = list.indexOf(document.activeElement as HTMLElement);
    if (e.key === "ArrowDown") list[(at + 1) % list.length]?.focus();
    else if (e.key === "ArrowUp") list[(at + list.length - 1) % list.length]?.focus();
    else if (e.key === "Escape" || e.key === "Tab") {
      setOpen(undefined);
      box.current?.querySelector<HTMLElement>("button")?.focus();
    } else return;
    if (e.key !== "Tab") e.preventDefault();
    e.stopPropagation();
  };
  return (
    <div className="menu" ref={box}>
      <Button
        look="quiet" icon={icon} aria-label={label} aria-haspopup="menu" aria-expanded={!!open}
        onClick={(e) => {
          e.stopPropagation();
          setOpen(open ? undefined : placeOf(e.currentTarget.getBoundingClientRect(), items.length));
        }}
      />
      {open && (
        <div role="menu" className="items" aria-label={label} style={open} onKeyDown={keys} onClick={(e) => e.stopPropagation()}>
          {items.map((item) => (
            <button
              key={item.label} type="button" role="menuitem" className={item.danger ? "danger" : undefined}
              onClick={() => {
                setOpen(undefined);
                box.current?.querySelector<HTMLElement>("button")?.focus(); // where a dialog gives it back to
                item.run();
              }}
            >
              {item.label}
            </button>
          ))}
        </div>
      )}
    </div>
  );
}

/** Bones stand where something will be. */
export function Bones({ height, width }: { height: number; width?: string | number }) {
  return <span className="bones" style={{ height, width: width ?? "100%" }} aria-hidden="true" />;
}

/** Meter shows how full a budget is. */
export function Meter({ value, limit, label }: { value: number; limit: number; label: string }) {
  const share = limit > 0 ? value / limit : 0;
  const tone = share >= 1 ? "bad" : share >= 0.8 ? "warn" : "good";
  return (
    <div className={`meter ${tone}`} role="meter" aria-label={label} aria-valuemin={0} aria-valuemax={100} aria-valuenow={Math.min(100, Math.round(share * 100))} aria-valuetext={`${Math.round(share * 100)} % used`}>
      <i style={{ width: `${Math.min(100, share * 100)}%` }} />
    </div>
  );
}
