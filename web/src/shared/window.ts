// Windows and filters of calls as the address has them, and as the API is asked.

import { query, root, type CallsQuery } from "./api";

/** The filters in the address, and what the API calls them. */
export const filterNames = {
  organization: "organization", provider: "provider", model: "model", author: "author", key: "key_id", customer: "sub_account_id", status: "status", books: "parse_status", door: "door", kind: "kind", tag: "tag", id: "id",
} as const;

export type Filters = Partial<Record<keyof typeof filterNames | "since" | "from" | "to" | "sort", string>>;

/** callsAt is the page of the calls of a window that match filters, in the console that of all organizations. */
export function callsAt(filters: Filters): string {
  return (root === "/operator" ? "/calls" : "/usage") + query({ ...filters, since: filters.since === usualSince ? undefined : filters.since });
}

export const usualSince = "7d";

/** everything is where a window without a beginning begins. */
export const everything = "1970-01-01T00:00:00Z";

/** failed are the statuses of calls that failed. */
const failed = ["4xx", "5xx"];

/** asked is a query of the API for what the address says. A call that is named by its id is looked for at all times. */
export function asked(f: Filters): NonNullable<CallsQuery> {
  const out: Record<string, string | string[]> = {};
  for (const [name, theirs] of Object.entries(filterNames)) {
    const value = f[name as keyof Filters];
    if (value) out[theirs] = value === "failed" && name === "status" ? failed : [value];
  }
  const window = f.id ? { from: everything } : f.from || f.to ? { from: f.from ?? everything, ...(f.to && { to: f.to }) } : windowOf(f.since ?? usualSince);
  return { ...out, ...window };
}

/** windowOf is what a preset stands for now. */
function windowOf(since: string): { since: string } | { from: string; to?: string } {
  const now = new Date();
  const month = (n: number) => new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + n, 1)).toISOString();
  if (since === "all") return { from: everything };
  if (since === "month") return { from: month(0) };
  if (since === "last-month") return { from: month(-1), to: month(0) };
  return { since };
}

/** groupFilter is the filter for the calls of a group, where there is one. */
export function groupFilter(by: string, value: string): Filters | undefined {
  if (by === "sub_account_id") return { customer: value || "none" };
  if (value === "" || by === "region" || by === "native_model" || by === "via_sdk" || by === "day") return undefined;
  const name = by === "model_slug" ? "model" : Object.entries(filterNames).find(([, theirs]) => theirs === by)?.[0];
  return name ? { [name]: value } : { tag: `${by.replace(/^tag:/, "")}:${value}` };
}

export type Interval = "hour" | "day" | "month";

/** intervalOf is how long the spans of a window should be. */
export function intervalOf({ since, from, to }: { since?: string; from?: string; to?: string }): Interval {
  const [, n, unit] = /^(\d+)([dhm])$/.exec(since ?? "") ?? [];
  const days = n ? Number(n) / { d: 1, h: 24, m: 1440 }[unit as "d" | "h" | "m"] : ((to ? Date.parse(to) : Date.now()) - Date.parse(from ?? everything)) / 86_400_000;
  return days <= 2 ? "hour" : days <= 100 ? "day" : "month";
}

/** next is where the span after the one that begins at an instant begins. */
export function next(at: number, interval: Interval): number {
  const date = new Date(at);
  return interval === "hour" ? at + 3_600_000 : interval === "day" ? at + 86_400_000 : Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1);
}

/** spansOf are the beginnings of the spans of a window. */
export function spansOf(from: string, to: string, interval: Interval): number[] {
  const start = new Date(from);
  let at = interval === "month" ? Date.UTC(start.getUTCFullYear(), start.getUTCMonth(), 1) : interval === "day" ? Math.floor(start.getTime() / 86_400_000) * 86_400_000 : Math.floor(start.getTime() / 3_600_000) * 3_600_000;
  const out: number[] = [];
  for (; at < Date.parse(to) && out.length < 1500; at = next(at, interval)) out.push(at);
  return out;
}
