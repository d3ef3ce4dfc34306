import { useEffect, useRef, useState } from "react";
import { api, body, Failure, type Branding as Brand } from "../shared/api";
import { contrast, paint } from "../shared/theme";
import { refresh, useAction, useAsked } from "../shared/use";
import { Icon } from "../ui/icons";
import { Badge, Bones, Button, Card, Check, Copy, Field, Page, Segments, Text, Trouble } from "../ui/kit";
import { useApp } from "./app";
import { Logo } from "./brand";
import { NoScope } from "./gate";

const fresh: Brand = { portal_slug: "", product_name: "", logo_url: null, accent_color: null, allow_self_issue: false };

export function Branding() {
  const app = useApp();
  const may = app.can("keys:manage");
  // Not configured is a 404 of this route, and no failure.
  const stored = useAsked<Brand | null>(may ? "branding" : undefined, () =>
    body<Brand>(api.GET("/gw/branding")).catch((e) => {
      if (e instanceof Failure && e.status === 404) return null;
      throw e;
    }),
  );
  if (!may) return <Page title="Branding"><NoScope scope="keys:manage" what="branding" /></Page>;
  return (
    <Page title="Branding" note="The portal where your customers see their usage, under your name.">
      {stored.failure ? <Trouble failure={stored.failure} again={stored.again} /> : stored.data === undefined ? <div className="halves"><Bones height={420} /><Bones height={420} /></div> : <Editor stored={stored.data} />}
    </Page>
  );
}

function Editor({ stored }: { stored: Brand | null }) {
  const app = useApp();
  const [brand, setBrand] = useState<Brand>(stored ?? { ...fresh, product_name: app.session.name });
  const [saved, setSaved] = useState(false);
  const action = useAction();
  const set = (change: Partial<Brand>) => {
    setSaved(false);
    setBrand({ ...brand, ...change });
  };
  const wrongSlug = brand.portal_slug && !/^[a-z0-9-]{1,64}$/.test(brand.portal_slug) ? "Only a–z, 0–9 and hyphens, at most 64." : undefined;
  const wrongLogo = brand.logo_url && !/^https:\/\/[^\s"'<>\\`]+$/.test(brand.logo_url) ? "An address that begins with https://." : undefined;
  const wrongColor = brand.accent_color && !/^#[0-9a-fA-F]{6}$/.test(brand.accent_color) ? "#RRGGBB, such as #2f5bea." : undefined;
  const submit = async () => {
    const done = await action.run(async () => {
      const { portal_slug, product_name, logo_url, accent_color, allow_self_issue } = brand;
      await api.PUT("/gw/branding", { body: { portal_slug, product_name, logo_url: logo_url ?? "", accent_color: accent_color ?? "", allow_self_issue } });
    });
    if (done) {
      setSaved(true);
      refresh("branding");
    }
  };
  const address = `${app.base}/p/${brand.portal_slug}`;
  return (
    <div className="halves">
      <Card title="Portal" actions={stored && <a className="button" href={`/p/${stored.portal_slug}`} target="_blank" rel="noreferrer"><Icon name="link" />Open portal</a>}>
        <form className="stack" onSubmit={(e) => { e.preventDefault(); void submit(); }}>
          <Text label="Product name" value={brand.product_name} required maxLength={100} onChange={(v) => set({ product_name: v })} />
          <Text label="Address" lead="/p/" value={brand.portal_slug} required wrong={wrongSlug} note={brand.portal_slug && !wrongSlug ? address : "Your customers open this path of the gateway."} onChange={(v) => set({ portal_slug: v })} />
          <Text label="Logo" type="url" placeholder="https://…" value={brand.logo_url ?? ""} wrong={wrongLogo} note="Optional. Loaded by the customer's browser, never by the gateway." onChange={(v) => set({ logo_url: v || null })} />
          <Field label="Accent" wrong={wrongColor} note={accentNote(brand.accent_color)}>
            {(ids) => (
              <span className="row" style={{ flexWrap: "nowrap" }}>
                <input type="color" aria-label="Pick the accent" value={wrongColor || !brand.accent_color ? "#2f5bea" : brand.accent_color} onChange={(e) => set({ accent_color: e.target.value })} />
                <input {...ids} placeholder="#2f5bea" value={brand.accent_color ?? ""} onChange={(e) => set({ accent_color: e.target.value || null })} />
              </span>
            )}
          </Field>
          <Check label="Customers may issue keys" note="Keys that call models, up to 10 for each customer, for at most 90 days. Off: you issue all keys." checked={brand.allow_self_issue} onChange={(v) => set({ allow_self_issue: v })} />
          {action.failure && <Trouble failure={action.failure} />}
          <div className="row end">
            {saved && <span className="row" role="status"><Badge tone="good">Saved</Badge></span>}
            {brand.portal_slug && <Copy text={address} label="Copy address" />}
            <Button type="submit" look="primary" busy={action.busy} disabled={!brand.portal_slug || !brand.product_name.trim() || !!wrongSlug || !!wrongLogo || !!wrongColor}>Save</Button>
          </div>
        </form>
      </Card>
      <Preview brand={brand} ok={!wrongColor && !wrongLogo} />
    </div>
  );
}

function accentNote(color: string | null): string {
  if (!color || !/^#[0-9a-fA-F]{6}$/.test(color)) return "Optional. Buttons, links and charts take it.";
  return contrast(color, "#ffffff") >= 4.5 ? "Stands out well." : "Light: where it is text it is darkened, so that it can be read.";
}

function Preview({ brand, ok }: { brand: Brand; ok: boolean }) {
  const box = useRef<HTMLDivElement>(null);
  const [light, setLight] = useState("light");
  useEffect(() => {
    if (box.current) paint(box.current, ok ? brand.accent_color : null);
  }, [brand.accent_color, ok]);
  return (
    <Card title="Preview" actions={<Segments label="Preview in" value={light} onChange={setLight} options={[["light", "Light"], ["dark", "Dark"]]} />}>
      <div className="preview" data-theme={light} ref={box} aria-label="How the portal will look" role="group">
        <div className="chrome" aria-hidden="true"><i /><i /><i /><span className="cut">/p/{brand.portal_slug || "…"}</span></div>
        <div className="brandrow"><Logo name={brand.product_name || "Your product"} url={ok ? brand.logo_url : null} /><b className="cut">{brand.product_name || "Your product"}</b></div>
        <div className="inner">
          <div className="row apart"><b>Usage</b><span className="button primary" style={{ pointerEvents: "none" }}>{brand.allow_self_issue ? "Issue key" : "Quick start"}</span></div>
          <div className="card" style={{ padding: 14 }}>
            <span className="note">Billed, 7 days</span>
            <div className="figure" style={{ fontSize: 20, fontWeight: 620, lineHeight: "28px" }}>$128.40</div>
            <div className="bars" aria-hidden="true">{[38, 52, 44, 70, 61, 88, 74].map((h, i) => <i key={i} style={{ height: `${h}%` }} />)}</div>
          </div>
          <span className="note" style={{ color: "var(--accent)", fontWeight: 540 }}>View all usage</span>
        </div>
      </div>
    </Card>
  );
}
