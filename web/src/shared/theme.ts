// Light, dark or as the system says; and the accent of a brand, bent as far as
// needed to be read on either.

export type Theme = "system" | "light" | "dark";

const slot = "theme";

export function theme(): Theme {
  try {
    const saved = localStorage.getItem(slot);
    return saved === "light" || saved === "dark" ? saved : "system";
  } catch {
    return "system"; // storage is switched off
  }
}

export function setTheme(to: Theme): void {
  try {
    if (to === "system") localStorage.removeItem(slot);
    else localStorage.setItem(slot, to);
  } catch {
    // storage is switched off: the choice lasts as long as the page
  }
  apply(to);
}

function apply(to: Theme): void {
  if (to === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = to;
}

apply(theme());

type RGB = [number, number, number];

function parse(hex: string): RGB {
  return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)) as RGB;
}

function hex(c: RGB): string {
  return "#" + c.map((v) => Math.round(v).toString(16).padStart(2, "0")).join("");
}

function luminance(c: RGB): number {
  const [r, g, b] = c.map((v) => {
    const s = v / 255;
    return s <= 0.04045 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4;
  }) as RGB;
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** contrast is the WCAG contrast of two colours. */
export function contrast(a: string, b: string): number {
  const [x, y] = [luminance(parse(a)), luminance(parse(b))].sort((p, q) => q - p) as [number, number];
  return (x + 0.05) / (y + 0.05);
}

/** readable moves a colour towards black or white until it stands out by 4.5:1 on a background. */
function readable(color: string, background: string): string {
  const towards: RGB = luminance(parse(background)) > 0.3 ? [0, 0, 0] : [255, 255, 255];
  const from = parse(color);
  for (let step = 0; step <= 20; step++) {
    const mixed = from.map((v, i) => v + ((towards[i] as number) - v) * (step / 20)) as RGB;
    if (contrast(hex(mixed), background) >= 4.6) return hex(mixed);
  }
  return hex(towards);
}

/** brandColors are the custom properties that an accent sets. */
export function brandColors(accent: string): Record<string, string> {
  return {
    "--brand": accent,
    "--on-brand": contrast(accent, "#ffffff") >= contrast(accent, "#0b0d12") ? "#ffffff" : "#0b0d12",
    "--brand-text-light": readable(accent, "#f4f5f8"),
    "--brand-text-dark": readable(accent, "#1c2027"),
  };
}

/** hue is where a colour lies on the circle of 360 degrees, undefined for greys. */
function hue(c: RGB): number | undefined {
  const [r, g, b] = c;
  const [high, low] = [Math.max(...c), Math.min(...c)];
  if (high - low < 24) return undefined;
  const sixth = high === r ? (g - b) / (high - low) : high === g ? 2 + (b - r) / (high - low) : 4 + (r - g) / (high - low);
  return (sixth * 60 + 360) % 360;
}

// The hues of the charts' colours in style.css that an accent could be taken
// for. The usual blue takes the place of one that is too close.
const chartHues: Record<string, number> = { "--s1": 174, "--s2": 33, "--s3": 267, "--s4": 339, "--s6": 69 };

/** chartColors are the colours of charts that have to give way to an accent. */
export function chartColors(accent: string): Record<string, string> {
  const at = hue(parse(accent));
  return Object.fromEntries(
    Object.entries(chartHues).map(([name, h]) => {
      const apart = at === undefined ? 180 : Math.abs(at - h);
      return [name, Math.min(apart, 360 - apart) < 26 ? "light-dark(#2a52d6, #93abff)" : ""];
    }),
  );
}

/** paint sets a brand's accent on an element. */
export function paint(element: HTMLElement, accent: string | null): void {
  const usual = "#2f5bea";
  const valid = accent && /^#[0-9a-fA-F]{6}$/.test(accent) ? accent : usual;
  for (const [name, value] of Object.entries({ ...brandColors(valid), ...chartColors(valid) })) element.style.setProperty(name, value);
}
