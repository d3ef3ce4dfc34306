// Code generated from internal/openapi/api; DO NOT EDIT.
//
// go test ./internal/openapi -run Generated -update makes it anew.

package client

import (
	"context"
	"io"
	"iter"
	"net/url"
	"time"
)

var _ io.Reader // not every contract has answers that are read as they come

// ModelPrices is a value of the API.
type ModelPrices struct {
	Slug string `json:"slug"`
	// Whether a call can cost more or less: by the length of its prompt, the time of day, or what its reply says it was.
	Varies bool `json:"varies"`
	// Path of the first door that serves the model, as /v1/chat/completions or /v1/messages; empty where none does.
	Door string `json:"door"`
	// Empty where no price is known.
	Prices []UnitPrice `json:"prices"`
}

// UnitPrice is a value of the API.
type UnitPrice struct {
	// One of input, cached_input, cache_write, cache_write_1h, output, reasoning, audio_input, audio_output, image, second, characters, search, file_search, code_session, grounded_request, megapixel, request.
	Unit string `json:"unit"`
	// How much of the unit the price is for.
	Per int64 `json:"per"`
	USD USD   `json:"usd"`
}

// Scope: A right of a key.
type Scope string

// The values of Scope.
const (
	ScopeInferenceUse Scope = "inference:use"
	ScopeStatsRead    Scope = "stats:read"
	ScopeKeysManage   Scope = "keys:manage"
)

// Entitlement: One rule of what may be called. Nothing is allowed by default, and any rule that denies wins.
type Entitlement struct {
	// What the rule selects by. One of provider, vendor, kind; default provider.
	Axis string `json:"axis,omitzero"`
	// Axis provider: the provider's name. Axis vendor: a glob over the author of the slug. Axis kind: a glob over the kind.
	Provider string `json:"provider"`
	// Axis provider: a glob over the provider's own model id. Otherwise over the slug after its first slash.
	ModelPattern string `json:"model_pattern"`
	// One of allow, deny.
	Effect string `json:"effect"`
}

// Me is a value of the API.
type Me struct {
	Scopes       []Scope       `json:"scopes"`
	Entitlements []Entitlement `json:"entitlements"`
}

// ModelKind: What a model makes.
type ModelKind string

// The values of ModelKind.
const (
	ModelKindLLM       ModelKind = "llm"
	ModelKindImage     ModelKind = "image"
	ModelKindVideo     ModelKind = "video"
	ModelKind3d        ModelKind = "3d"
	ModelKindEmbedding ModelKind = "embedding"
	ModelKindRerank    ModelKind = "rerank"
	ModelKindAudio     ModelKind = "audio"
)

// Model is a value of the API.
type Model struct {
	// author/model, the name that doors take.
	Slug        string `json:"slug"`
	DisplayName string `json:"display_name"`
	// Who made the model, wherever it runs.
	Author string    `json:"author"`
	Kind   ModelKind `json:"kind"`
	// Whether the ceiling permits calling it on a route that the routing policy leaves; the calling key may be allowed less.
	Allowed bool `json:"allowed"`
	// Tokens; models of kind llm only.
	ContextLength int64 `json:"context_length,omitzero"`
}

// ModelList is a value of the API.
type ModelList struct {
	Models []Model `json:"models"`
}

// Ceiling is a value of the API.
type Ceiling struct {
	MaxScopes    []Scope       `json:"max_scopes"`
	Entitlements []Entitlement `json:"entitlements"`
}

// JobPage is a value of the API.
type JobPage struct {
	Data []Job `json:"data"`
	// The cursor of the next page, empty on the last one.
	NextCursor string `json:"next_cursor"`
}

// Job is a value of the API.
type Job struct {
	// The provider's id of the job.
	TaskID string `json:"task_id"`
	// The vendor of the model, other where the route is not in the catalog.
	Provider string `json:"provider"`
	// The provider's own id; for a key bound to a sub-account the slug.
	Model string `json:"model"`
	// One of video, image, 3d, audio.
	Kind string `json:"kind"`
	// One of pending, succeeded, failed, cancelled, expired.
	Status string `json:"status"`
	// What the job will probably cost; for a key bound to a sub-account the price billed.
	ProvisionalCostUSD USD `json:"provisional_cost_usd"`
	// What it has cost, 0 while it is pending; for a key bound to a sub-account the price billed.
	FinalCostUSD USD `json:"final_cost_usd"`
	// Why it expired: deadline, credential_rotated, or provider where the provider has given it up.
	ExpirationReason *string `json:"expiration_reason"`
	// What the caller sent in X-Gateway-Attribution, and key_id.
	Attribution map[string]string `json:"attribution"`
	CreatedAt   time.Time         `json:"created_at"`
	// Null while it is pending.
	FinalizedAt *time.Time `json:"finalized_at"`
}

// Branding is a value of the API.
type Branding struct {
	ClientID       string    `json:"client_id"`
	PortalSlug     string    `json:"portal_slug"`
	ProductName    string    `json:"product_name"`
	LogoURL        *string   `json:"logo_url"`
	AccentColor    *string   `json:"accent_color"`
	AllowSelfIssue bool      `json:"allow_self_issue"`
	CreatedAt      time.Time `json:"created_at"`
	UpdatedAt      time.Time `json:"updated_at"`
}

// NewBranding is a value of the API.
type NewBranding struct {
	// The portal is at /p/{portal_slug}; unique in the service.
	PortalSlug  string `json:"portal_slug"`
	ProductName string `json:"product_name"`
	// Begins with https://; "" clears it, and left out or null it stays.
	LogoURL *string `json:"logo_url,omitzero"`
	// #RRGGBB; "" clears it, and left out or null it stays.
	AccentColor *string `json:"accent_color,omitzero"`
	// Whether end customers may issue keys for themselves.
	AllowSelfIssue bool `json:"allow_self_issue"`
}

// BudgetScope: Whose spend a budget bounds.
type BudgetScope string

// The values of BudgetScope.
const (
	BudgetScopeClient     BudgetScope = "client"
	BudgetScopeSubAccount BudgetScope = "sub_account"
	BudgetScopeKey        BudgetScope = "key"
)

// Period: A calendar month or day, UTC.
type Period string

// The values of Period.
const (
	PeriodMonth Period = "month"
	PeriodDay   Period = "day"
)

// Budget is a value of the API.
type Budget struct {
	Scope BudgetScope `json:"scope"`
	// Absent for scope client.
	ID       string `json:"id,omitzero"`
	Period   Period `json:"period"`
	LimitUSD USD    `json:"limit_usd"`
	// The exact sum of the period's usage, that of the keys issued below a key included.
	SpendUSD USD `json:"spend_usd"`
	// Who has set it; absent for one's own. A key bound to a sub-account reads reseller. One of operator, organization, sub_account, reseller.
	Owner string `json:"owner,omitzero"`
}

// NewBudget is a value of the API.
type NewBudget struct {
	Scope BudgetScope `json:"scope"`
	// Of the sub-account or key; left out for scope client.
	ID     *string `json:"id,omitzero"`
	Period Period  `json:"period"`
	// At most nine decimals. At most 1000000000.
	LimitUSD USD `json:"limit_usd"`
}

// Key is a value of the API.
type Key struct {
	ID string `json:"id"`
	// How the key begins.
	KeyPrefix string `json:"key_prefix"`
	// A key that has expired stays active here and authenticates no more. One of active, revoked.
	Status string  `json:"status"`
	Scopes []Scope `json:"scopes"`
	// The sub-account that the key is bound to.
	SubAccountID *string   `json:"sub_account_id"`
	CreatedAt    time.Time `json:"created_at"`
	// To about a minute; null until the first use.
	LastUsedAt *time.Time `json:"last_used_at"`
	ExpiresAt  *time.Time `json:"expires_at"`
	// The key of the sub-account that it was issued by; absent where the organization or its operator did.
	IssuedBy string `json:"issued_by,omitzero"`
	// True for a key that a customer issued in its reseller's portal; absent for all others.
	SelfIssued bool `json:"self_issued,omitzero"`
}

// NewKey is a value of the API.
type NewKey struct {
	// What the key may do; [] for nothing.
	Scopes []Scope `json:"scopes,omitzero"`
	// What it may call. Absent all that the ceiling allows.
	Entitlements []Entitlement `json:"entitlements,omitzero"`
	// Binds the key to an active sub-account.
	SubAccountID *string `json:"sub_account_id,omitzero"`
	// Absent never, or with the issuing key where that is bound to a sub-account and ends. 1 to 315360000.
	ExpiresInSeconds *int64 `json:"expires_in_seconds,omitzero"`
}

// IssuedKey is a value of the API.
type IssuedKey struct {
	APIKeyID string `json:"api_key_id"`
	// The key itself. It is never shown again.
	Key          string     `json:"key"`
	Scopes       []Scope    `json:"scopes"`
	SubAccountID string     `json:"sub_account_id,omitzero"`
	ExpiresAt    *time.Time `json:"expires_at,omitzero"`
}

// ExportStatus: State of a billing event.
type ExportStatus string

// The values of ExportStatus.
const (
	ExportStatusPending ExportStatus = "pending"
	ExportStatusSent    ExportStatus = "sent"
	ExportStatusFailed  ExportStatus = "failed"
)

// Mapping is a value of the API.
type Mapping struct {
	SubAccountID     string `json:"sub_account_id"`
	StripeCustomerID string `json:"stripe_customer_id"`
}

// ProcessorConfig is a value of the API.
type ProcessorConfig struct {
	// Whether usage of mapped sub-accounts is queued.
	Enabled bool `json:"enabled"`
	// Whether the organization has left a key.
	Configured bool      `json:"configured"`
	Mappings   []Mapping `json:"mappings"`
}

// NewProcessorConfig is a value of the API.
type NewProcessorConfig struct {
	Enabled bool `json:"enabled"`
	// Of the payment processor; write-only.
	APIKey *string `json:"api_key,omitzero"`
}

// NewMapping is a value of the API.
type NewMapping struct {
	StripeCustomerID string `json:"stripe_customer_id"`
}

// NewCustomer is a value of the API.
type NewCustomer struct {
	// Must be active.
	SubAccountID string `json:"sub_account_id"`
	// The sub-account's name where it is left out.
	Name *string `json:"name,omitzero"`
}

// Customer is a value of the API.
type Customer struct {
	StripeCustomerID string `json:"stripe_customer_id"`
}

// ExportCounts is a value of the API.
type ExportCounts struct {
	Pending int64 `json:"pending"`
	// Sent in the last 24 hours.
	Sent24h int64 `json:"sent_24h"`
	Failed  int64 `json:"failed"`
}

// ExportEvent is a value of the API.
type ExportEvent struct {
	// Of the usage row; the event's identifier at the processor.
	UsageRecordID string `json:"usage_record_id"`
	SubAccountID  string `json:"sub_account_id"`
	// As it was mapped when the event was queued.
	StripeCustomerID string       `json:"stripe_customer_id"`
	Status           ExportStatus `json:"status"`
	Attempts         int64        `json:"attempts"`
	// As billed, in whole millionths of a dollar.
	AmountUSD USD `json:"amount_usd"`
	// When the call was made.
	CreatedAt     time.Time  `json:"created_at"`
	NextAttemptAt *time.Time `json:"next_attempt_at"`
	SentAt        *time.Time `json:"sent_at"`
	LastError     *string    `json:"last_error"`
}

// RetriedEvents is a value of the API.
type RetriedEvents struct {
	// Queued again.
	Retried int64 `json:"retried"`
	// Left as they are, since sent again they could be billed twice.
	Ambiguous int64 `json:"ambiguous"`
}

// ExportEvents is a value of the API.
type ExportEvents struct {
	Counts ExportCounts `json:"counts"`
	// 0 where nothing is pending.
	OldestPendingAgeSeconds int64         `json:"oldest_pending_age_seconds"`
	Events                  []ExportEvent `json:"events"`
}

// NewCheckout is a value of the API.
type NewCheckout struct {
	// Whole cents. 5 to 10000.
	AmountUSD USD `json:"amount_usd"`
}

// Checkout is a value of the API.
type Checkout struct {
	CheckoutURL string    `json:"checkout_url"`
	OrderID     string    `json:"order_id"`
	ExpiresAt   time.Time `json:"expires_at"`
}

// SubAccount is a value of the API.
type SubAccount struct {
	ID string `json:"id"`
	// The organization.
	ClientID string `json:"client_id"`
	Name     string `json:"name"`
	Slug     string `json:"slug"`
	// One of active, suspended.
	Status string `json:"status"`
	// What is billed is the cost and so many per cent of it. 0 to 10000.
	MarkupPct float64 `json:"markup_pct"`
	// Active keys bound to it at most. Absent: 100 where one of its own keys issues. 1 to 1000.
	MaxKeys   int64     `json:"max_keys,omitzero"`
	CreatedAt time.Time `json:"created_at"`
}

// NewSubAccount is a value of the API.
type NewSubAccount struct {
	// One that can be seen.
	Name string `json:"name"`
	// Unique within the organization.
	Slug string `json:"slug"`
}

// SubAccountChange is a value of the API.
type SubAccountChange struct {
	// One of active, suspended.
	Status *string `json:"status,omitzero"`
	// One that can be seen.
	Name *string `json:"name,omitzero"`
	// Any decimal; kept to six places, rounded half to even. 0 to 10000.
	MarkupPct *float64 `json:"markup_pct,omitzero"`
	// 1 to 1000.
	MaxKeys *int64 `json:"max_keys,omitzero"`
}

// Span is a value of the API.
type Span struct {
	// Where the span begins, UTC.
	At       time.Time `json:"at"`
	Requests int64     `json:"requests"`
	// Requests that were answered with a status of 400 or more.
	Errors      int64 `json:"errors"`
	TotalTokens int64 `json:"total_tokens"`
	// The cost; for a key bound to a sub-account the price billed.
	TotalCostUSD USD     `json:"total_cost_usd"`
	LatencyMs    Latency `json:"latency_ms"`
	// Only with group_by. The largest groups that have calls in the span, the largest of all the time first.
	Groups []StatsBucket `json:"groups,omitzero"`
}

// Latency: In whole milliseconds.
type Latency struct {
	Mean int64 `json:"mean"`
	// Half of the requests took no longer; an estimate.
	P50 int64 `json:"p50"`
	// 95 of 100 requests took no longer; an estimate.
	P95 int64 `json:"p95"`
	// Requests by about how many milliseconds they took. Counts of several spans added up tell the percentiles of all of them.
	Counts map[string]string `json:"counts"`
}

// StatsBucket is a value of the API.
type StatsBucket struct {
	// The value; a day as YYYY-MM-DD in UTC; other for calls whose route is not in the catalog, unknown for calls without a region, empty for calls without the attribution key.
	Key string `json:"key"`
	// Calls, failed ones too.
	Requests    int64 `json:"requests"`
	TotalTokens int64 `json:"total_tokens"`
	// The cost; for a key bound to a sub-account the price billed, rounded once.
	TotalCostUSD USD `json:"total_cost_usd"`
}

// UsageRow is a value of the API.
type UsageRow struct {
	// The request id of the call.
	ID       string `json:"id"`
	ClientID string `json:"client_id"`
	// Where the call ran; for a key bound to a sub-account the author.
	Provider string `json:"provider"`
	// The provider's own id; for a key bound to a sub-account the slug.
	Model string `json:"model"`
	// Absent where the route is not in the catalog.
	ModelSlug string `json:"model_slug,omitzero"`
	// Absent where the route is not in the catalog.
	Author string `json:"author,omitzero"`
	// The cost; for a key bound to a sub-account the price billed.
	CostUSD     USD   `json:"cost_usd"`
	TotalTokens int64 `json:"total_tokens"`
	StatusCode  int64 `json:"status_code"`
	LatencyMs   int64 `json:"latency_ms"`
	// How sure the books are of what was used. One of ok, partial, unknown, provisional, failed, cancelled, expired.
	ParseStatus string `json:"parse_status"`
	// Whether the User-Agent names an official SDK; a hint, not a proof.
	ViaSDK bool `json:"via_sdk"`
	// What the caller sent in X-Gateway-Attribution, and key_id.
	Attribution map[string]string `json:"attribution"`
	CreatedAt   time.Time         `json:"created_at"`
}

// Me: What the calling key may do. Any valid key.
func (c *Client) Me(ctx context.Context) (Me, error) {
	return get[Me](ctx, c, request{method: "GET", path: "/gw/me"})
}

// Models: The catalog. Any valid key.
// Every model, with whether the organization may call it. Where it runs is not shown.
func (c *Client) Models(ctx context.Context) (ModelList, error) {
	return get[ModelList](ctx, c, request{method: "GET", path: "/gw/models"})
}

// Prices: What models cost. Any valid key.
// The prices that hold now for a call of which nothing else is known. For a key bound to a sub-account they are those it is billed.
func (c *Client) Prices(ctx context.Context) ([]ModelPrices, error) {
	return get[[]ModelPrices](ctx, c, request{method: "GET", path: "/gw/prices"})
}

// Ceiling: The most that a key may be issued with. Scope keys:manage.
// For a key that is bound to a sub-account these are its own rights.
func (c *Client) Ceiling(ctx context.Context) (Ceiling, error) {
	return get[Ceiling](ctx, c, request{method: "GET", path: "/gw/ceiling"})
}

// KeysQuery narrows Client.Keys; what is zero is left out.
type KeysQuery struct {
	// Keys a page. 1 to 1000.
	Limit int64
}

// Keys: The organization's keys, newest first. Scope keys:manage.
// Revoked and expired keys too. Without limit all of them at once.
func (c *Client) Keys(ctx context.Context, q KeysQuery) iter.Seq2[Key, error] {
	v := values{}
	v.number("limit", q.Limit)
	return pages(ctx, c, request{method: "GET", path: "/gw/keys", query: url.Values(v)}, byHeader[Key])
}

// IssueKey: Issue a key. Scope keys:manage.
// Scopes and every rule must fit inside the ceiling, or nothing is issued (403). Without entitlements the key gets all
// of the ceiling; [] denies every model. The key is shown once, in this answer.
//
// A key that is bound to a sub-account issues keys of the same sub-account, at most four generations below the one that the
// organization issued and 100 unless max_keys of the sub-account says otherwise. They end with it at the latest, share its
// budgets and the limits set on it, and are revoked with it.
func (c *Client) IssueKey(ctx context.Context, in NewKey) (IssuedKey, error) {
	return get[IssuedKey](ctx, c, request{method: "POST", path: "/gw/keys", body: in})
}

// RevokeKeyQuery narrows Client.RevokeKey; what is zero is left out.
type RevokeKeyQuery struct {
	// keep: the keys issued below it stay, below its own issuer. For keys of the organization. One of keep.
	Children string
}

// RevokeKey: Revoke a key. Scope keys:manage.
// At once on the instance that answers, within 30 seconds on all others. Its usage stays. Keys that were issued below a key
// of a sub-account are revoked with it.
func (c *Client) RevokeKey(ctx context.Context, id string, q RevokeKeyQuery) error {
	v := values{}
	v.text("children", string(q.Children))
	return c.do(ctx, request{method: "DELETE", path: "/gw/keys/" + url.PathEscape(id), query: url.Values(v)})
}

// SubAccounts: The organization's sub-accounts. Scope keys:manage. Not for keys bound to a sub-account.
func (c *Client) SubAccounts(ctx context.Context) ([]SubAccount, error) {
	return get[[]SubAccount](ctx, c, request{method: "GET", path: "/gw/subaccounts"})
}

// CreateSubAccount: Create a sub-account. Scope keys:manage. Not for keys bound to a sub-account.
// Active, without a markup. A slug that another one has is answered 409.
func (c *Client) CreateSubAccount(ctx context.Context, in NewSubAccount) (SubAccount, error) {
	return get[SubAccount](ctx, c, request{method: "POST", path: "/gw/subaccounts", body: in})
}

// UpdateSubAccount: Change a sub-account. Scope keys:manage. Not for keys bound to a sub-account.
// All members that are given, or none. Keys of a suspended sub-account are answered 401.
func (c *Client) UpdateSubAccount(ctx context.Context, id string, in SubAccountChange) error {
	return c.do(ctx, request{method: "PATCH", path: "/gw/subaccounts/" + url.PathEscape(id), body: in})
}

// Budgets: Budgets and what is spent of them. Scope keys:manage.
func (c *Client) Budgets(ctx context.Context) ([]Budget, error) {
	return get[[]Budget](ctx, c, request{method: "GET", path: "/gw/budgets"})
}

// PutBudget: Set a budget. Scope keys:manage.
// One for each scope, id and period. A call is refused with 402 when any of the budgets that apply to it is used up. A key
// that is bound to a sub-account sets those of its own keys, beside the reseller's: all apply, so the smallest binds. A budget
// of a key is shared by the keys issued below it. A new budget counts all that this instance has answered before.
func (c *Client) PutBudget(ctx context.Context, in NewBudget) error {
	return c.do(ctx, request{method: "PUT", path: "/gw/budgets", body: in})
}

// DeleteBudgetQuery narrows Client.DeleteBudget; what is zero is left out.
type DeleteBudgetQuery struct {
	Scope BudgetScope
	// Of the sub-account or key; left out for scope client.
	ID     string
	Period Period
	// sub_account: the one that the sub-account's own keys have set. For keys of the organization. One of sub_account.
	Owner string
}

// DeleteBudget: Remove a budget. Scope keys:manage.
// One's own; that of somebody above is answered 403.
func (c *Client) DeleteBudget(ctx context.Context, q DeleteBudgetQuery) error {
	v := values{}
	v.text("scope", string(q.Scope))
	v.text("id", string(q.ID))
	v.text("period", string(q.Period))
	v.text("owner", string(q.Owner))
	return c.do(ctx, request{method: "DELETE", path: "/gw/budgets", query: url.Values(v)})
}

// Checkout: Begin a payment into the prepaid balance. Scope keys:manage. Not for keys bound to a sub-account.
// Send the payer to checkout_url. The balance is credited once the processor says that the payment is in. 400 for an
// organization that is invoiced; 503 where the gateway takes no payments or the processor does not answer, 502 where it answers
// anything but success.
func (c *Client) Checkout(ctx context.Context, in NewCheckout) (Checkout, error) {
	return get[Checkout](ctx, c, request{method: "POST", path: "/gw/billing/checkout", body: in})
}

// JobsQuery narrows Client.Jobs; what is zero is left out.
type JobsQuery struct {
	// key: jobs made with this key; client: those of the organization, for a key bound to a sub-account those of the sub-account. One of key, client; default key.
	Scope string
	// Exactly this status.
	Status string
	// Exactly this kind.
	Kind string
	// Made after this instant, RFC 3339; a malformed one bounds nothing.
	CreatedAfter string
	// Made before this instant, RFC 3339; a malformed one bounds nothing.
	CreatedBefore string
	// Jobs a page, 1 to 500; what lies outside is moved to the nearer end. Default 100.
	Limit int64
}

// Jobs: Asynchronous jobs, newest first. Scope stats:read.
// What this instance has answered before the request is among them.
func (c *Client) Jobs(ctx context.Context, q JobsQuery) iter.Seq2[Job, error] {
	v := values{}
	v.text("scope", string(q.Scope))
	v.text("status", string(q.Status))
	v.text("kind", string(q.Kind))
	v.text("created_after", string(q.CreatedAfter))
	v.text("created_before", string(q.CreatedBefore))
	v.number("limit", q.Limit)
	return pages(ctx, c, request{method: "GET", path: "/gw/async", query: url.Values(v)}, byBody[Job])
}

// EvidenceQuery narrows Client.Evidence; what is zero is left out.
type EvidenceQuery struct {
	// Number of the first record; at most one past the last there is.
	FromSeq int64
	// Number of the last record.
	ToSeq int64
	// Records of this instant and later, RFC 3339; or how far back, as 30d or 24h.
	Since string
	// Records before this instant, RFC 3339; or before so long ago, as 30d or 24h.
	Until string
	// Records at most. to_seq of the header says where to go on. 1 to 100000; default 100000.
	Limit int64
}

// Evidence: Calls and changes as a chain that cannot be altered unseen. Scope stats:read. Not for keys bound to a sub-account.
// A line for the header, one for each record, and one for the signed head; an answer that was cut has no
// head. The part is the smallest that holds every record asked for: records are in the order in which they were booked, so that
// one of another time may lie between them. modelgate evidence verify checks the file; the format is described in
// docs/evidence-format.md. One export of an organization at a time: 429 while another runs. 503 where the gateway has no signing
// key. Every export is itself a record.
func (c *Client) Evidence(ctx context.Context, q EvidenceQuery) (io.ReadCloser, error) {
	v := values{}
	v.number("from_seq", q.FromSeq)
	v.number("to_seq", q.ToSeq)
	v.text("since", string(q.Since))
	v.text("until", string(q.Until))
	v.number("limit", q.Limit)
	return c.open(ctx, request{method: "GET", path: "/gw/evidence", query: url.Values(v)})
}

// StatsQuery narrows Client.Stats; what is zero is left out.
type StatsQuery struct {
	// provider, model, model_slug, author, day, region, or any attribution key. An attribution key that is spelled like one of these cannot be grouped on; one with more than 250,000 values in the time asked for is 400. Default provider.
	GroupBy string
	// How far back: days as 30d, or a duration as 24h or 90m; at most 3650d. Default 30d.
	Since string
	// Exactly this provider.
	Provider string
}

// Stats: What calls come to, by a dimension. Scope stats:read.
// Sums of the rows of GET /gw/usage, the dearest first; days in the order of time. What this instance has answered before the request is among them. A key bound to a sub-account sees its own calls: billed prices, the author in place of the provider, the slug in place of the model, and no region.
func (c *Client) Stats(ctx context.Context, q StatsQuery) ([]StatsBucket, error) {
	v := values{}
	v.text("group_by", string(q.GroupBy))
	v.text("since", string(q.Since))
	v.text("provider", string(q.Provider))
	return get[[]StatsBucket](ctx, c, request{method: "GET", path: "/gw/stats", query: url.Values(v)})
}

// UsageQuery narrows Client.Usage; what is zero is left out.
type UsageQuery struct {
	// Exactly this provider.
	Provider string
	// Exactly this status.
	ParseStatus string
	// How far back: days as 30d, or a duration as 24h or 90m.
	Since string
	// The call with this request id.
	ID string
	// Rows a page. 1 to 1000; default 100.
	Limit int64
}

// Usage: Booked calls, newest first. Scope stats:read.
// What this instance has answered before the request is among them.
func (c *Client) Usage(ctx context.Context, q UsageQuery) iter.Seq2[UsageRow, error] {
	v := values{}
	v.text("provider", string(q.Provider))
	v.text("parse_status", string(q.ParseStatus))
	v.text("since", string(q.Since))
	v.text("id", string(q.ID))
	v.number("limit", q.Limit)
	return pages(ctx, c, request{method: "GET", path: "/gw/usage", query: url.Values(v)}, byHeader[UsageRow])
}

// SeriesQuery narrows Client.Series; what is zero is left out.
type SeriesQuery struct {
	// How far back: days as 30d, or a duration as 24h or 90m. Default 30d.
	Since string
	// Length of a span; hour for the last 62 days at most. Unasked, hours for windows up to three days. One of hour, day.
	Interval string
	// provider, model, model_slug, author, region or an attribution key, such as key_id and sub_account_id.
	GroupBy string
	// What makes a group large. One of spend, requests, tokens; default spend.
	TopBy string
}

// Series: How calls fared over time. Scope stats:read.
// Hours or days with calls, the oldest first; the first one is whole. A call failed when its status is 400 or more. Percentiles are estimates, an eighth up or down. With group_by a span tells what the groups come to: the seven largest of all the time, the same in every span. What is missing to the span's own sums is all others.
func (c *Client) Series(ctx context.Context, q SeriesQuery) ([]Span, error) {
	v := values{}
	v.text("since", string(q.Since))
	v.text("interval", string(q.Interval))
	v.text("group_by", string(q.GroupBy))
	v.text("top_by", string(q.TopBy))
	return get[[]Span](ctx, c, request{method: "GET", path: "/gw/series", query: url.Values(v)})
}

// ProcessorConfig: Whether usage is exported, and whose. Scope stats:read. Not for keys bound to a sub-account.
// Without any configuration the answer is 200 with everything false. The key is never shown, in no part.
func (c *Client) ProcessorConfig(ctx context.Context) (ProcessorConfig, error) {
	return get[ProcessorConfig](ctx, c, request{method: "GET", path: "/gw/processor/config"})
}

// PutProcessorConfig: Leave the key of the payment processor, turn the export on or off. Scope keys:manage. Not for keys bound to a sub-account.
// With api_key the key is stored encrypted; 503 where the gateway has no master key. Without it only enabled changes: 400
// when there is no key to enable. While the export is off nothing is queued; what is queued is still sent.
func (c *Client) PutProcessorConfig(ctx context.Context, in NewProcessorConfig) error {
	return c.do(ctx, request{method: "PUT", path: "/gw/processor/config", body: in})
}

// PutMapping: Map a sub-account to a customer of the processor. Scope keys:manage. Not for keys bound to a sub-account.
// From here on its usage is queued, with the markup of the moment. 404 for a sub-account that is not the organization's.
func (c *Client) PutMapping(ctx context.Context, subAccountID string, in NewMapping) error {
	return c.do(ctx, request{method: "PUT", path: "/gw/processor/mappings/" + url.PathEscape(subAccountID), body: in})
}

// DeleteMapping: Unmap a sub-account. Scope keys:manage. Not for keys bound to a sub-account.
// What is queued is still sent.
func (c *Client) DeleteMapping(ctx context.Context, subAccountID string) error {
	return c.do(ctx, request{method: "DELETE", path: "/gw/processor/mappings/" + url.PathEscape(subAccountID)})
}

// CreateCustomer: Make a customer at the processor and map a sub-account to it. Scope keys:manage. Not for keys bound to a sub-account.
// The same request again within a day makes no second customer. 400 for a sub-account that is not active; 503 where the
// processor does not answer, 502 where it answers anything but success.
func (c *Client) CreateCustomer(ctx context.Context, in NewCustomer) (Customer, error) {
	return get[Customer](ctx, c, request{method: "POST", path: "/gw/processor/customers", body: in})
}

// ProcessorEventsQuery narrows Client.ProcessorEvents; what is zero is left out.
type ProcessorEventsQuery struct {
	Status ExportStatus
	// 1 to 200; default 50.
	Limit int64
	// Where the list goes on, taken from the page before. Keep the other parameters as they were.
	Cursor string
}

// ProcessorEvents: What was billed, the newest first. Scope stats:read. Not for keys bound to a sub-account.
func (c *Client) ProcessorEvents(ctx context.Context, q ProcessorEventsQuery) (ExportEvents, error) {
	v := values{}
	v.text("status", string(q.Status))
	v.number("limit", q.Limit)
	v.text("cursor", string(q.Cursor))
	return get[ExportEvents](ctx, c, request{method: "GET", path: "/gw/processor/events", query: url.Values(v)})
}

// RetryEvents: Queue all failed events again. Scope keys:manage. Not for keys bound to a sub-account.
// Each as by itself: those that the processor may have counted more than 23 hours ago stay failed, and last_error says so.
func (c *Client) RetryEvents(ctx context.Context) (RetriedEvents, error) {
	return get[RetriedEvents](ctx, c, request{method: "POST", path: "/gw/processor/events/retry"})
}

// RetryEvent: Queue a failed event again. Scope keys:manage. Not for keys bound to a sub-account.
// 404 for an event that is not the organization's or has not failed. An event that the processor may have counted more than
// 23 hours ago stays failed, and last_error says so: sent again it could be billed twice.
func (c *Client) RetryEvent(ctx context.Context, usageRecordID string) error {
	return c.do(ctx, request{method: "POST", path: "/gw/processor/events/" + url.PathEscape(usageRecordID) + "/retry"})
}

// Branding: How the portal of end customers looks. Scope keys:manage. Not for keys bound to a sub-account.
func (c *Client) Branding(ctx context.Context) (Branding, error) {
	return get[Branding](ctx, c, request{method: "GET", path: "/gw/branding"})
}

// PutBranding: Set how the portal looks. Scope keys:manage. Not for keys bound to a sub-account.
// A portal_slug that another organization has is answered 409.
func (c *Client) PutBranding(ctx context.Context, in NewBranding) (Branding, error) {
	return get[Branding](ctx, c, request{method: "PUT", path: "/gw/branding", body: in})
}
