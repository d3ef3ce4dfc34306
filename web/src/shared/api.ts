// What the pages ask of the gateway, and what it answers.

export type Scope = "inference:use" | "stats:read" | "keys:manage";

export interface Session {
  name: string;
  organization_id?: string;
  billing?: "invoiced" | "manual";
  balance_usd?: number; // prepaid, for those who may pay into it
  key_id: string;
  key_expires_at?: string;
  scopes: Scope[];
  allow_self_issue?: boolean;
  base_url: string;
  session_expires_at: string;
}

export interface Tuple {
  axis?: "provider" | "vendor" | "kind";
  provider: string;
  model_pattern: string;
  effect: "allow" | "deny";
}

export interface Ceiling {
  max_scopes: Scope[];
  entitlements: Tuple[];
}

export interface Key {
  id: string;
  key_prefix: string;
  status: "active" | "revoked";
  scopes: Scope[];
  sub_account_id: string | null;
  created_at: string;
  last_used_at: string | null;
  expires_at: string | null;
  self_issued?: boolean;
}

export interface IssuedKey {
  api_key_id: string;
  key: string;
  scopes: Scope[];
  sub_account_id?: string;
  expires_at?: string;
}

export interface SubAccount {
  id: string;
  name: string;
  slug: string;
  status: "active" | "suspended";
  markup_pct: number;
  created_at: string;
}

export type BudgetScope = "client" | "sub_account" | "key";

export interface Budget {
  scope: BudgetScope;
  id?: string;
  period: "day" | "month";
  limit_usd: number;
  spend_usd: number;
}

export interface Branding {
  portal_slug: string;
  product_name: string;
  logo_url: string | null;
  accent_color: string | null;
  allow_self_issue: boolean;
}

export interface UsageRow {
  id: string;
  provider: string;
  model: string;
  model_slug?: string;
  author?: string;
  cost_usd: number;
  total_tokens: number;
  status_code: number;
  latency_ms: number;
  parse_status: string;
  via_sdk: boolean;
  attribution: Record<string, string>;
  created_at: string;
}

export interface StatsBucket {
  key: string;
  requests: number;
  total_tokens: number;
  total_cost_usd: number;
}

export interface Span {
  at: string;
  requests: number;
  errors: number;
  total_tokens: number;
  total_cost_usd: number;
  latency_ms: { mean: number; p50: number; p95: number; counts: Record<string, number> };
  groups?: StatsBucket[];
}

export interface Model {
  slug: string;
  display_name: string;
  author: string;
  kind: "llm" | "image" | "video" | "3d" | "embedding" | "rerank" | "audio";
  allowed: boolean;
  context_length?: number;
}

export interface ModelPrices {
  slug: string;
  prices: { unit: string; per: number; usd: number }[];
  varies: boolean;
  door: string; // where it is called, "" where no door serves it
}

export interface Job {
  task_id: string;
  provider: string;
  model: string;
  kind: string;
  status: "pending" | "succeeded" | "failed" | "cancelled" | "expired";
  provisional_cost_usd: number;
  final_cost_usd: number;
  expiration_reason: string | null;
  attribution: Record<string, string>;
  created_at: string;
  finalized_at: string | null;
}

export interface ProcessorConfig {
  enabled: boolean;
  configured: boolean;
  mappings: { sub_account_id: string; stripe_customer_id: string }[];
}

export interface ProcessorEvent {
  usage_record_id: string;
  sub_account_id: string;
  stripe_customer_id: string;
  status: "pending" | "sent" | "failed";
  attempts: number;
  amount_usd: number;
  created_at: string;
  next_attempt_at: string | null;
  sent_at: string | null;
  last_error: string | null;
}

export interface ProcessorEvents {
  counts: { pending: number; sent_24h: number; failed: number };
  oldest_pending_age_seconds: number;
  events: ProcessorEvent[];
}

/** Failure is an answer that is none, as people are shown it. */
export class Failure extends Error {
  constructor(
    readonly status: number,
    readonly type: string,
    message: string,
    readonly requestID: string,
  ) {
    super(message);
  }
}

/** failureOf reads the gateway's error envelope, or makes one of what came instead. */
export async function failureOf(response: Response): Promise<Failure> {
  const id = response.headers.get("X-Gateway-Request-Id") ?? "";
  const text = await response.text().catch(() => "");
  try {
    const { error } = JSON.parse(text) as { error: { type?: string; message: string } };
    const missing = response.status === 404 && error.message === "no such path";
    return new Failure(response.status, error.type ?? "error", missing ? "This gateway does not have this part." : error.message, id);
  } catch {
    return new Failure(response.status, "error", text.slice(0, 300) || `The gateway answered ${response.status}.`, id);
  }
}

/** unreachable stands for a request that got no answer. */
export function unreachable(): Failure {
  return new Failure(0, "network", "The gateway cannot be reached. Check the connection and try again.", "");
}

/** root is what the page's own paths begin with: /dashboard or /p/{slug}. */
export const root = location.pathname.startsWith("/p/") ? location.pathname.split("/").slice(0, 3).join("/") : "/dashboard";

/** portal says that this page is a customer's. */
export const portal = root !== "/dashboard";

let signedOut: () => void = () => {};

/** onSignedOut names what to do when the session has ended. */
export function onSignedOut(then: () => void): void {
  signedOut = then;
}

/** sessionEnded is called where the gateway says that nobody is signed in. */
export function sessionEnded(): void {
  signedOut();
}

export interface Answer<T> {
  data: T;
  next: string; // cursor of the next page, "" on the last one
}

/** send makes a request below the root and returns what it answers; 204 is undefined. */
export async function send<T>(method: string, path: string, body?: unknown): Promise<Answer<T>> {
  const init: RequestInit = { method, credentials: "same-origin", cache: "no-store" };
  if (body !== undefined) {
    init.body = JSON.stringify(body);
    init.headers = { "Content-Type": "application/json" };
  }
  let response: Response;
  try {
    response = await fetch(root + path, init);
  } catch {
    throw unreachable();
  }
  if (!response.ok) {
    const failure = await failureOf(response);
    if (failure.status === 401 && path !== "/session") signedOut();
    throw failure;
  }
  const data = response.status === 204 ? undefined : await response.json();
  return { data: data as T, next: response.headers.get("X-Next-Cursor") ?? "" };
}

export async function get<T>(path: string): Promise<T> {
  return (await send<T>("GET", path)).data;
}

/** query makes a query string of what is set. */
export function query(values: Record<string, string | number | undefined>): string {
  const out = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (value !== undefined && value !== "") out.set(name, String(value));
  }
  const text = out.toString();
  return text && "?" + text;
}
