// How figures read. Times are UTC everywhere, as days and months of the books
// are.

const cents = new Intl.NumberFormat("en-US", { style: "currency", currency: "USD" });
const whole = new Intl.NumberFormat("en-US");

/** usd shows an amount: cents, and below ten of them three digits that say something. */
export function usd(value: number): string {
  const size = Math.abs(value);
  if (size === 0 || size >= 0.1) return cents.format(value);
  return money(2, Math.min(9, 2 - Math.floor(Math.log10(size)))).format(value);
}

function money(least: number, most: number): Intl.NumberFormat {
  return new Intl.NumberFormat("en-US", { style: "currency", currency: "USD", minimumFractionDigits: least, maximumFractionDigits: most });
}

/** usdAlike shows amounts that stand under each other with the same number of decimals: enough for most of them. */
export function usdAlike(values: number[]): (value: number) => string {
  const highest = Math.max(0, ...values.map(Math.abs));
  const decimals = highest >= 10 ? 2 : highest >= 0.01 ? 4 : 6;
  const format = money(decimals, decimals);
  const least = 10 ** -decimals;
  return (value) => (value > 0 && value < least / 2 ? "<" + format.format(least) : format.format(value));
}

/** usdExact shows an amount to the nano-dollar. */
export function usdExact(value: number): string {
  return money(2, 9).format(value);
}

/** usdColumn shows amounts that stand under each other. */
export function usdColumn(value: number): string {
  return money(6, 6).format(value);
}

/** usdShort is for axes. */
export function usdShort(value: number): string {
  if (value >= 1000) return "$" + count(value);
  if (value >= 10 || value === 0) return "$" + Math.round(value);
  return usd(value);
}

const compact = new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 1 });

/** count shortens large numbers: 12.3K. */
export function count(value: number): string {
  return Math.abs(value) < 10_000 ? whole.format(Math.round(value * 100) / 100) : compact.format(value);
}

/** integer shows every digit. */
export function integer(value: number): string {
  return whole.format(value);
}

/** counted names things with their number: 1 call, 2 calls. */
export function counted(value: number, one: string): string {
  return `${integer(value)} ${one}${value === 1 ? "" : "s"}`;
}

/** percent shows a share, with a decimal where it is small. */
export function percent(share: number): string {
  if (!isFinite(share)) return "–";
  const value = share * 100;
  const size = Math.abs(value);
  return (size !== 0 && size < 10 ? value.toFixed(size < 0.1 ? 2 : 1) : Math.round(value).toString()) + "%";
}

/** duration shows milliseconds. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}

const monthDay = new Intl.DateTimeFormat("en-US", { day: "numeric", month: "short", timeZone: "UTC" });
const fullDay = new Intl.DateTimeFormat("en-US", { day: "numeric", month: "short", year: "numeric", timeZone: "UTC" });
const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit", timeZone: "UTC" });
const minute = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", timeZone: "UTC" });

/** clockUTC is a time of day to the second. */
export function clockUTC(at: Date): string {
  return clock.format(at);
}

export function day(text: string | Date): string {
  return fullDay.format(new Date(text));
}

export function shortDay(text: string | Date): string {
  return monthDay.format(new Date(text));
}

export function hourOfDay(text: string | Date): string {
  return minute.format(new Date(text));
}

/** moment is day and time to the second, without the zone, which the column names. */
export function moment(text: string): string {
  const at = new Date(text);
  return `${monthDay.format(at)} ${clock.format(at)}`;
}

/** momentUTC says everything. */
export function momentUTC(text: string): string {
  const at = new Date(text);
  return `${fullDay.format(at)}, ${clock.format(at)} UTC`;
}

/** ago says how long since, or until. */
export function ago(text: string, now = Date.now()): string {
  const seconds = (now - new Date(text).getTime()) / 1000;
  const size = Math.abs(seconds);
  const said =
    size < 60 ? "a moment" : size < 3600 ? `${Math.round(size / 60)} min` : size < 86_400 ? `${Math.round(size / 3600)} h` : `${Math.round(size / 86_400)} days`.replace(/^1 days$/, "1 day");
  return seconds >= 0 ? `${said} ago` : `in ${said}`;
}

/** unitPrice spells a price of the catalog, every digit of it. */
export function unitPrice(p: { unit: string; per: number; usd: number }): string {
  const name = unitName(p.unit).toLowerCase();
  const many = name.endsWith("ch") ? `${name}es` : `${name}s`;
  const piece = p.per === 1 ? name : p.per === 1000 ? `1K ${many}` : p.unit === "characters" ? "1M characters" : "1M tokens";
  return `${usdExact(p.usd)} / ${piece}`;
}

/** unitName spells a unit. */
export function unitName(unit: string): string {
  const names: Record<string, string> = { cache_write: "Cache write, 5 min", cache_write_1h: "Cache write, 1 h" };
  const words = unit.replaceAll("_", " ");
  return names[unit] ?? words.charAt(0).toUpperCase() + words.slice(1);
}

/** csv makes a file's text of rows; what a spreadsheet could take for a formula is kept a text. */
export function csv(rows: (string | number | null | undefined)[][]): string {
  const cell = (v: string | number | null | undefined) => {
    if (v === null || v === undefined) return "";
    if (typeof v === "number") return Number.isInteger(v) ? String(v) : v.toFixed(9).replace(/\.?0+$/, ""); // nano-dollars, and no exponent
    const text = /^[=+\-@\t\r]/.test(v) ? "'" + v : v;
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return rows.map((r) => r.map(cell).join(",")).join("\r\n") + "\r\n";
}

/** save hands a file to the browser's downloads. */
export function save(name: string, content: Blob | string, type = "text/csv;charset=utf-8"): void {
  const blob = typeof content === "string" ? new Blob([content], { type }) : content;
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
