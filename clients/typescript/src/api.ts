// Generated from internal/openapi/api; do not edit.
// go test ./internal/openapi -run Generated -update makes it anew.

import { Transport } from "./transport.js";

export interface ModelPrices {
  slug: string;
  /** Whether a call can cost more or less: by the length of its prompt, the time of day, or what its reply says it was. */
  varies: boolean;
  /** Path of the first door that serves the model, as `/v1/chat/completions` or `/v1/messages`; empty where none does. */
  door: string;
  /** Empty where no price is known. */
  prices: Array<UnitPrice>;
}

export interface UnitPrice {
  /** One of input, cached_input, cache_write, cache_write_1h, output, reasoning, audio_input, audio_output, image, second, characters, search, file_search, code_session, grounded_request, megapixel, request. */
  unit: "input" | "cached_input" | "cache_write" | "cache_write_1h" | "output" | "reasoning" | "audio_input" | "audio_output" | "image" | "second" | "characters" | "search" | "file_search" | "code_session" | "grounded_request" | "megapixel" | "request";
  /** How much of the unit the price is for. */
  per: number;
  usd: number;
}

/** A right of a key. */
export type Scope = "inference:use" | "stats:read" | "keys:manage";

/** One rule of what may be called. Nothing is allowed by default, and any rule that denies wins. */
export interface Entitlement {
  /** What the rule selects by. One of provider, vendor, kind; default provider. */
  axis?: "provider" | "vendor" | "kind";
  /** Axis provider: the provider's name. Axis vendor: a glob over the author of the slug. Axis kind: a glob over the kind. */
  provider: string;
  /** Axis provider: a glob over the provider's own model id. Otherwise over the slug after its first slash. */
  model_pattern: string;
  /** One of allow, deny. */
  effect: "allow" | "deny";
}

export interface Me {
  scopes: Array<Scope>;
  entitlements: Array<Entitlement>;
}

/** What a model makes. */
export type ModelKind = "llm" | "image" | "video" | "3d" | "embedding" | "rerank" | "audio";

export interface Model {
  /** author/model, the name that doors take. */
  slug: string;
  display_name: string;
  /** Who made the model, wherever it runs. */
  author: string;
  kind: ModelKind;
  /** Whether the ceiling permits calling it on a route that the routing policy leaves; the calling key may be allowed less. */
  allowed: boolean;
  /** Tokens; models of kind llm only. */
  context_length?: number;
}

export interface ModelList {
  models: Array<Model>;
}

export interface Ceiling {
  max_scopes: Array<Scope>;
  entitlements: Array<Entitlement>;
}

export interface JobPage {
  data: Array<Job>;
  /** The cursor of the next page, empty on the last one. */
  next_cursor: string;
}

export interface Job {
  /** The provider's id of the job. */
  task_id: string;
  /** The vendor of the model, `other` where the route is not in the catalog. */
  provider: string;
  /** The provider's own id; for a key bound to a sub-account the slug. */
  model: string;
  /** One of video, image, 3d, audio. */
  kind: "video" | "image" | "3d" | "audio";
  /** One of pending, succeeded, failed, cancelled, expired. */
  status: "pending" | "succeeded" | "failed" | "cancelled" | "expired";
  /** What the job will probably cost; for a key bound to a sub-account the price billed. */
  provisional_cost_usd: number;
  /** What it has cost, 0 while it is pending; for a key bound to a sub-account the price billed. */
  final_cost_usd: number;
  /** Why it expired: `deadline`, `credential_rotated`, or `provider` where the provider has given it up. */
  expiration_reason: string | null;
  /** What the caller sent in X-Gateway-Attribution, and key_id. */
  attribution: Record<string, string>;
  created_at: string;
  /** Null while it is pending. */
  finalized_at: string | null;
}

export interface Branding {
  client_id: string;
  portal_slug: string;
  product_name: string;
  logo_url: string | null;
  accent_color: string | null;
  allow_self_issue: boolean;
  created_at: string;
  updated_at: string;
}

export interface NewBranding {
  /** The portal is at /p/{portal_slug}; unique in the service. */
  portal_slug: string;
  product_name: string;
  /** Begins with https://; "" clears it, and left out or null it stays. */
  logo_url?: string | null;
  /** #RRGGBB; "" clears it, and left out or null it stays. */
  accent_color?: string | null;
  /** Whether end customers may issue keys for themselves. */
  allow_self_issue: boolean;
}

/** Whose spend a budget bounds. */
export type BudgetScope = "client" | "sub_account" | "key";

/** A calendar month or day, UTC. */
export type Period = "month" | "day";

export interface Budget {
  scope: BudgetScope;
  /** Absent for scope client. */
  id?: string;
  period: Period;
  limit_usd: number;
  /** The exact sum of the period's usage, that of the keys issued below a key included. */
  spend_usd: number;
  /** Who has set it; absent for one's own. A key bound to a sub-account reads reseller. One of operator, organization, sub_account, reseller. */
  owner?: "operator" | "organization" | "sub_account" | "reseller";
}

export interface NewBudget {
  scope: BudgetScope;
  /** Of the sub-account or key; left out for scope client. */
  id?: string | null;
  period: Period;
  /** At most nine decimals. At most 1000000000. */
  limit_usd: number;
}

export interface Key {
  id: string;
  /** How the key begins. */
  key_prefix: string;
  /** A key that has expired stays active here and authenticates no more. One of active, revoked. */
  status: "active" | "revoked";
  scopes: Array<Scope>;
  /** The sub-account that the key is bound to. */
  sub_account_id: string | null;
  created_at: string;
  /** To about a minute; null until the first use. */
  last_used_at: string | null;
  expires_at: string | null;
  /** The key of the sub-account that it was issued by; absent where the organization or its operator did. */
  issued_by?: string;
  /** True for a key that a customer issued in its reseller's portal; absent for all others. */
  self_issued?: boolean;
}

export interface NewKey {
  /** What the key may do; [] for nothing. */
  scopes: Array<Scope>;
  /** What it may call. Absent all that the ceiling allows. */
  entitlements?: Array<Entitlement>;
  /** Binds the key to an active sub-account. */
  sub_account_id?: string | null;
  /** Absent never, or with the issuing key where that is bound to a sub-account and ends. 1 to 315360000. */
  expires_in_seconds?: number | null;
}

export interface IssuedKey {
  api_key_id: string;
  /** The key itself. It is never shown again. */
  key: string;
  scopes: Array<Scope>;
  sub_account_id?: string;
  expires_at?: string;
}

/** State of a billing event. */
export type ExportStatus = "pending" | "sent" | "failed";

export interface Mapping {
  sub_account_id: string;
  stripe_customer_id: string;
}

export interface ProcessorConfig {
  /** Whether usage of mapped sub-accounts is queued. */
  enabled: boolean;
  /** Whether the organization has left a key. */
  configured: boolean;
  mappings: Array<Mapping>;
}

export interface NewProcessorConfig {
  enabled: boolean;
  /** Of the payment processor; write-only. */
  api_key?: string | null;
}

export interface NewMapping {
  stripe_customer_id: string;
}

export interface NewCustomer {
  /** Must be active. */
  sub_account_id: string;
  /** The sub-account's name where it is left out. */
  name?: string | null;
}

export interface Customer {
  stripe_customer_id: string;
}

export interface ExportCounts {
  pending: number;
  /** Sent in the last 24 hours. */
  sent_24h: number;
  failed: number;
}

export interface ExportEvent {
  /** Of the usage row; the event's identifier at the processor. */
  usage_record_id: string;
  sub_account_id: string;
  /** As it was mapped when the event was queued. */
  stripe_customer_id: string;
  status: ExportStatus;
  attempts: number;
  /** As billed, in whole millionths of a dollar. */
  amount_usd: number;
  /** When the call was made. */
  created_at: string;
  next_attempt_at: string | null;
  sent_at: string | null;
  last_error: string | null;
}

export interface RetriedEvents {
  /** Queued again. */
  retried: number;
  /** Left as they are, since sent again they could be billed twice. */
  ambiguous: number;
}

export interface ExportEvents {
  counts: ExportCounts;
  /** 0 where nothing is pending. */
  oldest_pending_age_seconds: number;
  events: Array<ExportEvent>;
}

export interface NewCheckout {
  /** Whole cents. 5 to 10000. */
  amount_usd: number;
}

export interface Checkout {
  checkout_url: string;
  order_id: string;
  expires_at: string;
}

export interface SubAccount {
  id: string;
  /** The organization. */
  client_id: string;
  name: string;
  slug: string;
  /** One of active, suspended. */
  status: "active" | "suspended";
  /** What is billed is the cost and so many per cent of it. 0 to 10000. */
  markup_pct: number;
  /** Active keys bound to it at most. Absent: 100 where one of its own keys issues. 1 to 1000. */
  max_keys?: number;
  created_at: string;
}

export interface NewSubAccount {
  /** One that can be seen. */
  name: string;
  /** Unique within the organization. */
  slug: string;
}

export interface SubAccountChange {
  /** One of active, suspended. */
  status?: "active" | "suspended";
  /** One that can be seen. */
  name?: string;
  /** Any decimal; kept to six places, rounded half to even. 0 to 10000. */
  markup_pct?: number;
  /** 1 to 1000. */
  max_keys?: number;
}

export interface Span {
  /** Where the span begins, UTC. */
  at: string;
  requests: number;
  /** Requests that were answered with a status of 400 or more. */
  errors: number;
  total_tokens: number;
  /** The cost; for a key bound to a sub-account the price billed. */
  total_cost_usd: number;
  latency_ms: Latency;
  /** Only with group_by. The largest groups that have calls in the span, the largest of all the time first. */
  groups?: Array<StatsBucket>;
}

/** In whole milliseconds. */
export interface Latency {
  mean: number;
  /** Half of the requests took no longer; an estimate. */
  p50: number;
  /** 95 of 100 requests took no longer; an estimate. */
  p95: number;
  /** Requests by about how many milliseconds they took. Counts of several spans added up tell the percentiles of all of them. */
  counts: Record<string, string>;
}

export interface StatsBucket {
  /** The value; a day as YYYY-MM-DD in UTC; `other` for calls whose route is not in the catalog, `unknown` for calls without a region, empty for calls without the attribution key. */
  key: string;
  /** Calls, failed ones too. */
  requests: number;
  total_tokens: number;
  /** The cost; for a key bound to a sub-account the price billed, rounded once. */
  total_cost_usd: number;
}

export interface UsageRow {
  /** The request id of the call. */
  id: string;
  client_id: string;
  /** Where the call ran; for a key bound to a sub-account the author. */
  provider: string;
  /** The provider's own id; for a key bound to a sub-account the slug. */
  model: string;
  /** Absent where the route is not in the catalog. */
  model_slug?: string;
  /** Absent where the route is not in the catalog. */
  author?: string;
  /** The cost; for a key bound to a sub-account the price billed. */
  cost_usd: number;
  total_tokens: number;
  status_code: number;
  latency_ms: number;
  /** How sure the books are of what was used. One of ok, partial, unknown, provisional, failed, cancelled, expired. */
  parse_status: "ok" | "partial" | "unknown" | "provisional" | "failed" | "cancelled" | "expired";
  /** Whether the User-Agent names an official SDK; a hint, not a proof. */
  via_sdk: boolean;
  /** What the caller sent in X-Gateway-Attribution, and key_id. */
  attribution: Record<string, string>;
  created_at: string;
}

export interface KeysQuery {
  /** Keys a page. 1 to 1000. */
  limit?: number;
}

export interface RevokeKeyQuery {
  /** `keep`: the keys issued below it stay, below its own issuer. For keys of the organization. One of keep. */
  children?: "keep";
}

export interface DeleteBudgetQuery {
  scope: BudgetScope;
  /** Of the sub-account or key; left out for scope client. */
  id?: string;
  period: Period;
  /** `sub_account`: the one that the sub-account's own keys have set. For keys of the organization. One of sub_account. */
  owner?: "sub_account";
}

export interface JobsQuery {
  /** `key`: jobs made with this key; `client`: those of the organization, for a key bound to a sub-account those of the sub-account. One of key, client; default key. */
  scope?: "key" | "client";
  /** Exactly this status. */
  status?: string;
  /** Exactly this kind. */
  kind?: string;
  /** Made after this instant, RFC 3339; a malformed one bounds nothing. */
  created_after?: string;
  /** Made before this instant, RFC 3339; a malformed one bounds nothing. */
  created_before?: string;
  /** Jobs a page, 1 to 500; what lies outside is moved to the nearer end. Default 100. */
  limit?: number;
}

export interface EvidenceQuery {
  /** Number of the first record; at most one past the last there is. */
  from_seq?: number;
  /** Number of the last record. */
  to_seq?: number;
  /** Records of this instant and later, RFC 3339; or how far back, as 30d or 24h. */
  since?: string;
  /** Records before this instant, RFC 3339; or before so long ago, as 30d or 24h. */
  until?: string;
  /** Records at most. `to_seq` of the header says where to go on. 1 to 100000; default 100000. */
  limit?: number;
}

export interface StatsQuery {
  /** `provider`, `model`, `model_slug`, `author`, `day`, `region`, or any attribution key. An attribution key that is spelled like one of these cannot be grouped on; one with more than 250,000 values in the time asked for is 400. Default provider. */
  group_by?: string;
  /** How far back: days as 30d, or a duration as 24h or 90m; at most 3650d. Default 30d. */
  since?: string;
  /** Exactly this provider. */
  provider?: string;
}

export interface UsageQuery {
  /** Exactly this provider. */
  provider?: string;
  /** Exactly this status. */
  parse_status?: string;
  /** How far back: days as 30d, or a duration as 24h or 90m. */
  since?: string;
  /** The call with this request id. */
  id?: string;
  /** Rows a page. 1 to 1000; default 100. */
  limit?: number;
}

export interface SeriesQuery {
  /** How far back: days as 30d, or a duration as 24h or 90m. Default 30d. */
  since?: string;
  /** Length of a span; hour for the last 62 days at most. Unasked, hours for windows up to three days. One of hour, day. */
  interval?: "hour" | "day";
  /** provider, model, model_slug, author, region or an attribution key, such as key_id and sub_account_id. */
  group_by?: string;
  /** What makes a group large. One of spend, requests, tokens; default spend. */
  top_by?: "spend" | "requests" | "tokens";
}

export interface ProcessorEventsQuery {
  status?: ExportStatus;
  /** 1 to 200; default 50. */
  limit?: number;
  /** Where the list goes on, taken from the page before. Keep the other parameters as they were. */
  cursor?: string;
}

/** The self-service API, /gw, for one key. */
export class Modelgate extends Transport {
  /** What the calling key may do. Any valid key. */
  me(): Promise<Me> {
    return this.json("GET", `/gw/me`, undefined, undefined);
  }

  /** The catalog. Any valid key. Every model, with whether the organization may call it. Where it runs is not shown. */
  models(): Promise<ModelList> {
    return this.json("GET", `/gw/models`, undefined, undefined);
  }

  /** What models cost. Any valid key. The prices that hold now for a call of which nothing else is known. For a key bound to a sub-account they are those it is billed. */
  prices(): Promise<Array<ModelPrices>> {
    return this.json("GET", `/gw/prices`, undefined, undefined);
  }

  /** The most that a key may be issued with. Scope `keys:manage`. For a key that is bound to a sub-account these are its own rights. */
  ceiling(): Promise<Ceiling> {
    return this.json("GET", `/gw/ceiling`, undefined, undefined);
  }

  /** The organization's keys, newest first. Scope `keys:manage`. Revoked and expired keys too. Without `limit` all of them at once. */
  keys(query: KeysQuery = {}): AsyncGenerator<Key> {
    return this.pages("GET", `/gw/keys`, query, undefined);
  }

  /** Issue a key. Scope `keys:manage`. Scopes and every rule must fit inside the ceiling, or nothing is issued (403). Without `entitlements` the key gets all of the ceiling; `[]` denies every model. The key is shown once, in this answer.  A key that is bound to a sub-account issues keys of the same sub-account, at most four generations below the one that the organization issued and 100 unless `max_keys` of the sub-account says otherwise. They end with it at the latest, share its budgets and the limits set on it, and are revoked with it. */
  issueKey(body: NewKey): Promise<IssuedKey> {
    return this.json("POST", `/gw/keys`, undefined, body);
  }

  /** Revoke a key. Scope `keys:manage`. At once on the instance that answers, within 30 seconds on all others. Its usage stays. Keys that were issued below a key of a sub-account are revoked with it. */
  async revokeKey(id: string, query: RevokeKeyQuery = {}): Promise<void> {
    await this.send("DELETE", `/gw/keys/${encodeURIComponent(id)}`, query, undefined);
  }

  /** The organization's sub-accounts. Scope `keys:manage`. Not for keys bound to a sub-account. */
  subAccounts(): Promise<Array<SubAccount>> {
    return this.json("GET", `/gw/subaccounts`, undefined, undefined);
  }

  /** Create a sub-account. Scope `keys:manage`. Not for keys bound to a sub-account. Active, without a markup. A slug that another one has is answered 409. */
  createSubAccount(body: NewSubAccount): Promise<SubAccount> {
    return this.json("POST", `/gw/subaccounts`, undefined, body);
  }

  /** Change a sub-account. Scope `keys:manage`. Not for keys bound to a sub-account. All members that are given, or none. Keys of a suspended sub-account are answered 401. */
  async updateSubAccount(id: string, body: SubAccountChange): Promise<void> {
    await this.send("PATCH", `/gw/subaccounts/${encodeURIComponent(id)}`, undefined, body);
  }

  /** Budgets and what is spent of them. Scope `keys:manage`. */
  budgets(): Promise<Array<Budget>> {
    return this.json("GET", `/gw/budgets`, undefined, undefined);
  }

  /** Set a budget. Scope `keys:manage`. One for each scope, id and period. A call is refused with 402 when any of the budgets that apply to it is used up. A key that is bound to a sub-account sets those of its own keys, beside the reseller's: all apply, so the smallest binds. A budget of a key is shared by the keys issued below it. A new budget counts all that this instance has answered before. */
  async putBudget(body: NewBudget): Promise<void> {
    await this.send("PUT", `/gw/budgets`, undefined, body);
  }

  /** Remove a budget. Scope `keys:manage`. One's own; that of somebody above is answered 403. */
  async deleteBudget(query: DeleteBudgetQuery): Promise<void> {
    await this.send("DELETE", `/gw/budgets`, query, undefined);
  }

  /** Begin a payment into the prepaid balance. Scope `keys:manage`. Not for keys bound to a sub-account. Send the payer to `checkout_url`. The balance is credited once the processor says that the payment is in. 400 for an organization that is invoiced; 503 where the gateway takes no payments or the processor does not answer, 502 where it answers anything but success. */
  checkout(body: NewCheckout): Promise<Checkout> {
    return this.json("POST", `/gw/billing/checkout`, undefined, body);
  }

  /** Asynchronous jobs, newest first. Scope `stats:read`. What this instance has answered before the request is among them. */
  jobs(query: JobsQuery = {}): AsyncGenerator<Job> {
    return this.pages("GET", `/gw/async`, query, undefined);
  }

  /** Calls and changes as a chain that cannot be altered unseen. Scope `stats:read`. Not for keys bound to a sub-account. A line for the header, one for each record, and one for the signed head; an answer that was cut has no head. The part is the smallest that holds every record asked for: records are in the order in which they were booked, so that one of another time may lie between them. `modelgate evidence verify` checks the file; the format is described in docs/evidence-format.md. One export of an organization at a time: 429 while another runs. 503 where the gateway has no signing key. Every export is itself a record. */
  evidence(query: EvidenceQuery = {}): Promise<Response> {
    return this.open("GET", `/gw/evidence`, query, undefined);
  }

  /** What calls come to, by a dimension. Scope `stats:read`. Sums of the rows of GET /gw/usage, the dearest first; days in the order of time. What this instance has answered before the request is among them. A key bound to a sub-account sees its own calls: billed prices, the author in place of the provider, the slug in place of the model, and no region. */
  stats(query: StatsQuery = {}): Promise<Array<StatsBucket>> {
    return this.json("GET", `/gw/stats`, query, undefined);
  }

  /** Booked calls, newest first. Scope `stats:read`. What this instance has answered before the request is among them. */
  usage(query: UsageQuery = {}): AsyncGenerator<UsageRow> {
    return this.pages("GET", `/gw/usage`, query, undefined);
  }

  /** How calls fared over time. Scope `stats:read`. Hours or days with calls, the oldest first; the first one is whole. A call failed when its status is 400 or more. Percentiles are estimates, an eighth up or down. With `group_by` a span tells what the groups come to: the seven largest of all the time, the same in every span. What is missing to the span's own sums is all others. */
  series(query: SeriesQuery = {}): Promise<Array<Span>> {
    return this.json("GET", `/gw/series`, query, undefined);
  }

  /** Whether usage is exported, and whose. Scope `stats:read`. Not for keys bound to a sub-account. Without any configuration the answer is 200 with everything false. The key is never shown, in no part. */
  processorConfig(): Promise<ProcessorConfig> {
    return this.json("GET", `/gw/processor/config`, undefined, undefined);
  }

  /** Leave the key of the payment processor, turn the export on or off. Scope `keys:manage`. Not for keys bound to a sub-account. With `api_key` the key is stored encrypted; 503 where the gateway has no master key. Without it only `enabled` changes: 400 when there is no key to enable. While the export is off nothing is queued; what is queued is still sent. */
  async putProcessorConfig(body: NewProcessorConfig): Promise<void> {
    await this.send("PUT", `/gw/processor/config`, undefined, body);
  }

  /** Map a sub-account to a customer of the processor. Scope `keys:manage`. Not for keys bound to a sub-account. From here on its usage is queued, with the markup of the moment. 404 for a sub-account that is not the organization's. */
  async putMapping(subAccountID: string, body: NewMapping): Promise<void> {
    await this.send("PUT", `/gw/processor/mappings/${encodeURIComponent(subAccountID)}`, undefined, body);
  }

  /** Unmap a sub-account. Scope `keys:manage`. Not for keys bound to a sub-account. What is queued is still sent. */
  async deleteMapping(subAccountID: string): Promise<void> {
    await this.send("DELETE", `/gw/processor/mappings/${encodeURIComponent(subAccountID)}`, undefined, undefined);
  }

  /** Make a customer at the processor and map a sub-account to it. Scope `keys:manage`. Not for keys bound to a sub-account. The same request again within a day makes no second customer. 400 for a sub-account that is not active; 503 where the processor does not answer, 502 where it answers anything but success. */
  createCustomer(body: NewCustomer): Promise<Customer> {
    return this.json("POST", `/gw/processor/customers`, undefined, body);
  }

  /** What was billed, the newest first. Scope `stats:read`. Not for keys bound to a sub-account. */
  processorEvents(query: ProcessorEventsQuery = {}): Promise<ExportEvents> {
    return this.json("GET", `/gw/processor/events`, query, undefined);
  }

  /** Queue all failed events again. Scope `keys:manage`. Not for keys bound to a sub-account. Each as by itself: those that the processor may have counted more than 23 hours ago stay failed, and `last_error` says so. */
  retryEvents(): Promise<RetriedEvents> {
    return this.json("POST", `/gw/processor/events/retry`, undefined, undefined);
  }

  /** Queue a failed event again. Scope `keys:manage`. Not for keys bound to a sub-account. 404 for an event that is not the organization's or has not failed. An event that the processor may have counted more than 23 hours ago stays failed, and `last_error` says so: sent again it could be billed twice. */
  async retryEvent(usageRecordID: string): Promise<void> {
    await this.send("POST", `/gw/processor/events/${encodeURIComponent(usageRecordID)}/retry`, undefined, undefined);
  }

  /** How the portal of end customers looks. Scope `keys:manage`. Not for keys bound to a sub-account. */
  branding(): Promise<Branding> {
    return this.json("GET", `/gw/branding`, undefined, undefined);
  }

  /** Set how the portal looks. Scope `keys:manage`. Not for keys bound to a sub-account. A portal_slug that another organization has is answered 409. */
  putBranding(body: NewBranding): Promise<Branding> {
    return this.json("PUT", `/gw/branding`, undefined, body);
  }

}
