// What the pages ask of the gateway. Types are those of the contract
// (schema.ts, generated), except the session, which only the pages have.

import createClient from "openapi-fetch";
import type { components, paths } from "./schema";

type Schemas = components["schemas"];

export type Scope = Schemas["Scope"];
export type Tuple = Schemas["Entitlement"];
export type Ceiling = Schemas["Ceiling"];
export type Key = Schemas["Key"];
export type NewKey = Schemas["NewKey"];
export type IssuedKey = Schemas["IssuedKey"];
export type SubAccount = Schemas["SubAccount"];
export type BudgetScope = Schemas["BudgetScope"];
export type Budget = Schemas["Budget"];
export type Branding = Pick<Schemas["Branding"], "portal_slug" | "product_name" | "logo_url" | "accent_color" | "allow_self_issue">;
export type UsageRow = Schemas["UsageRow"];
export type StatsBucket = Schemas["StatsBucket"];
export type Span = Schemas["Span"];
export type Model = Schemas["Model"];
export type ModelPrices = Schemas["ModelPrices"];
export type Job = Schemas["Job"];
export type JobPage = Schemas["JobPage"];
export type ProcessorConfig = Schemas["ProcessorConfig"];
export type ProcessorEvent = Schemas["ExportEvent"];
export type ProcessorEvents = Schemas["ExportEvents"];
export type ProcessorWebhook = Schemas["ProcessorWebhook"];
export type QuotaLimit = Schemas["QuotaLimit"];
export type RateLimit = Schemas["RateLimit"];
export type RateUnit = Schemas["RateUnit"];
export type RateWindow = Schemas["RateWindow"];
export type Quota = Schemas["Quota"];
export type Wallet = Schemas["Wallet"];
export type WalletEntry = Schemas["WalletEntry"];
export type ExportStatus = Schemas["ExportStatus"];
export type SubAccountChange = Schemas["SubAccountChange"];
export type Call = Schemas["BookedCall"];
export type Member = Schemas["PersonMember"];
export type MemberSession = Schemas["Session"];
export type Role = Schemas["Role"];
export type Report = Schemas["Report"];
export type ReportRow = Schemas["ReportRow"];
export type CallsQuery = paths["/gw/calls"]["get"]["parameters"]["query"];

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
  /** Who signed in with an account of an OpenID provider; absent where a key did. */
  person?: { id: string; name: string; email: string; role: string; organizations: { id: string; name: string }[] };
}

/** Provider is an OpenID provider that people sign in with. */
export interface Provider {
  name: string;
  label: string;
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

/** root is what the page's own paths begin with: /dashboard, /operator or /p/{slug}. */
export const root = location.pathname.startsWith("/p/") ? location.pathname.split("/").slice(0, 3).join("/") : /^\/operator(\/|$)/.test(location.pathname) ? "/operator" : "/dashboard";

/** portal says that this page is a customer's. */
export const portal = root.startsWith("/p/");

let signedOut: () => void = () => {};

/** onSignedOut names what to do when the session has ended. */
export function onSignedOut(then: () => void): void {
  signedOut = then;
}

/** sessionEnded is called where the gateway says that nobody is signed in. */
export function sessionEnded(): void {
  signedOut();
}

/** request is fetch, in which every response that is neither a success nor 304 is thrown as a Failure. */
async function request(url: string | Request, init?: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(url, { credentials: "same-origin", cache: "no-store", ...init });
  } catch {
    throw unreachable();
  }
  if (!response.ok && response.status !== 304) throw await failureOf(response);
  return response;
}

/** api makes the requests of the contract below the root. A parameter that is empty is not sent. */
export const api = createClient<paths>({
  baseUrl: root,
  querySerializer: (values) => query(values as Parameters<typeof query>[0]).slice(1),
  fetch: (asked) =>
    request(asked).catch((failure: Failure) => {
      if (failure.status === 401) signedOut();
      throw failure;
    }),
});

/** body is what a request of api answers. */
export async function body<T>(answer: Promise<{ data?: T }>): Promise<T> {
  return (await answer).data as T;
}

/** ask makes a request below the root whose body, if it has one, is JSON; undefined is an empty answer. */
export async function ask<T>(method: string, path: string, sent?: object): Promise<T | undefined> {
  const body = sent && { body: JSON.stringify(sent), headers: { "Content-Type": "application/json" } };
  const response = await request(root + path, { method, ...body });
  return response.status === 204 ? undefined : ((await response.json()) as T);
}

/** session asks who is signed in, signs in with a key, or signs out, also of every browser: then the address may be answered where the provider's session ends. */
export async function session(method: "GET"): Promise<Session>;
export async function session(method: "POST", key: string): Promise<Session>;
export async function session(method: "DELETE", where?: "everywhere"): Promise<{ url: string } | undefined>;
export async function session(method: string, how?: string): Promise<unknown> {
  if (method === "DELETE") return ask(method, "/session" + (how ? "?everywhere=true" : ""));
  return ask(method, "/session", how === undefined ? undefined : { key: how });
}

/** providers are what people can sign in with beside a key. */
export async function providers(): Promise<Provider[]> {
  return (await ask<{ providers: Provider[] }>("GET", "/sign-in"))?.providers ?? [];
}

/** signInWith leaves for a provider, which sends the browser back to this page. */
export async function signInWith(provider: string): Promise<void> {
  const to = await ask<{ url: string }>("POST", "/session/start", { provider, return_to: location.pathname + location.search });
  location.assign(to!.url);
}

/** switchTo goes on in another organization of the same person. */
export async function switchTo(organization: string): Promise<void> {
  await ask("POST", "/session/organization", { client_id: organization });
  location.assign(root);
}

/** query makes a query string of what is set; a list is a parameter for each of its values. */
export function query(values: Record<string, string | number | string[] | undefined>): string {
  const out = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    for (const one of Array.isArray(value) ? value : [value]) if (one !== undefined && one !== "") out.append(name, String(one));
  }
  const text = out.toString();
  return text && "?" + text;
}
