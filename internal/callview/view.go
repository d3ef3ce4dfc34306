// Package callview is what callers are shown of booked calls, as JSON and as the
// rows of a file. An end customer is shown the billed price in place of the
// cost, author and slug in place of provider and native model, and nothing of
// its reseller's margin.
package callview

import (
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"modelgate"
	"modelgate/internal/null"
)

// Viewer is who is shown calls, and the names that they are shown with.
type Viewer struct {
	Customer bool             // an end customer
	All      bool             // whoever runs the gateway
	Markup   modelgate.Markup // of the customer
	Keys     map[modelgate.KeyID]string
	Accounts map[modelgate.SubAccountID]modelgate.SubAccount
	// Organizations are the names of all.
	Organizations map[modelgate.ClientID]string
}

// Row is a booked call.
type Row struct {
	ID          string                `json:"id"`
	ClientID    modelgate.ClientID    `json:"client_id"`
	Provider    string                `json:"provider"`
	Model       string                `json:"model"`
	Slug        string                `json:"model_slug,omitzero"`
	Author      string                `json:"author,omitzero"`
	Cost        modelgate.Nano        `json:"cost_usd"`
	TotalTokens int64                 `json:"total_tokens"`
	StatusCode  int                   `json:"status_code"`
	LatencyMS   int64                 `json:"latency_ms"`
	ParseStatus modelgate.ParseStatus `json:"parse_status"`
	ViaSDK      bool                  `json:"via_sdk"`
	Attribution map[string]string     `json:"attribution"`
	CreatedAt   time.Time             `json:"created_at"`

	StatedCost  *modelgate.Nano      `json:"stated_cost_usd,omitzero"` // where the cost is the provider's word; not for end customers
	Debited     *modelgate.Nano      `json:"debited_usd,omitzero"`     // nil where no wallet has paid
	Tokens      modelgate.TokenKinds `json:"tokens"`
	FirstByteMS *int64               `json:"first_byte_ms"` // null where none came
	KeyName     *string              `json:"key_name"`
}

// Row shows a row.
func (by *Viewer) Row(row *modelgate.UsageRow) Row {
	v := Row{
		row.ID.String(), row.ClientID, row.CallBegin.Provider, row.CallBegin.Model, row.Slug, row.Author, row.Cost.Billed(by.Markup),
		row.Usage.TotalTokens(), row.StatusCode, row.LatencyMS, row.ParseStatus, row.ViaSDK, row.Attribution, row.At,
		nil, nil, row.Usage.TokenKinds(), null.IfZero(row.FirstByteMS), null.IfZero(by.Keys[row.KeyID]),
	}
	if !by.Customer && row.PriceLabel == modelgate.StatedLabel {
		v.StatedCost = row.StatedCost
	}
	if row.WalletMarkup != nil {
		debited := row.Debit(row.Cost)
		v.Debited = &debited
	}
	if by.Customer && row.Slug != "" {
		v.Provider, v.Model = row.Author, row.Slug
	}
	return v
}

// Call is a booked call with all that the caller may see of it.
type Call struct {
	Row
	KeyID          modelgate.KeyID         `json:"key_id"`
	SubAccountID   *modelgate.SubAccountID `json:"sub_account_id"`
	SubAccountName *string                 `json:"sub_account_name"`
	Kind           *modelgate.ModelKind    `json:"kind"`
	Door           string                  `json:"door"`
	Units          map[string]float64      `json:"units"`
	Billed         *modelgate.Nano         `json:"billed_usd"` // null for the organization's own calls
}

// OwnCall is a call as the organization sees it.
type OwnCall struct {
	Call
	Margin *modelgate.Nano `json:"margin_usd"` // null for its own calls
	Region *string         `json:"region"`
	Rates  *string         `json:"rates"`
}

// Own shows a call to the organization, Own(row).Call to an end customer.
func (by *Viewer) Own(row *modelgate.UsageRow) OwnCall {
	v := Call{
		Row: by.Row(row), KeyID: row.KeyID, SubAccountID: null.IfZero(row.SubAccountID), Kind: null.IfZero(row.Kind), Door: row.Door, Units: unitsOf(&row.Usage),
	}
	if by.Customer {
		v.Door = CustomersDoor(v.Door, row.CallBegin.Provider)
	}
	own := OwnCall{Region: null.IfZero(row.CallBegin.Region), Rates: null.IfZero(row.PriceLabel)}
	if account := by.Accounts[row.SubAccountID]; row.SubAccountID != "" {
		billed := row.Cost.Billed(account.Markup)
		margin := billed - row.Cost
		v.SubAccountName, v.Billed, own.Margin = null.IfZero(account.Name), &billed, &margin
	}
	own.Call = v
	return own
}

// CustomersDoor is a door as end customers are shown it: the path of the provider
// proxy begins with the provider, which is the organization's affair.
func CustomersDoor(door, provider string) string { return strings.TrimPrefix(door, "/"+provider) }

// AnyCall is a call as whoever runs the gateway sees it.
type AnyCall struct {
	OwnCall
	Organization     modelgate.ClientID `json:"organization_id"`
	OrganizationName string             `json:"organization_name"`
}

// Any shows a call to whoever runs the gateway.
func (by *Viewer) Any(row *modelgate.UsageRow) AnyCall {
	return AnyCall{by.Own(row), row.ClientID, by.Organizations[row.ClientID]}
}

// unitsOf is what a call has used, by the name of its counter: seconds and
// megapixels in whole ones, all else as it is counted.
func unitsOf(u *modelgate.Usage) map[string]float64 {
	out := map[string]float64{}
	for i, n := range u.Counters() {
		if n == nil || *n == 0 {
			continue
		}
		name := modelgate.CounterName(i)
		out[name] = float64(*n)
		if name == "seconds" || name == "megapixels" {
			out[name] /= 1_000_000
		}
	}
	return out
}

// Column is a column of a file of calls.
type Column struct {
	Name string
	Text func(*AnyCall) string
}

// Columns are fixed, for one side and for the other.
func (by *Viewer) Columns() []Column {
	integer := func(n int64) string { return strconv.FormatInt(n, 10) }
	columns := []Column{
		{"id", func(v *AnyCall) string { return v.ID }},
		{"created_at", func(v *AnyCall) string { return v.CreatedAt.UTC().Format(time.RFC3339Nano) }},
		{"key_id", func(v *AnyCall) string { return string(v.KeyID) }},
		{"key_name", func(v *AnyCall) string { return orEmpty(v.KeyName) }},
		{"sub_account_id", func(v *AnyCall) string { return string(orEmpty(v.SubAccountID)) }},
		{"sub_account_name", func(v *AnyCall) string { return orEmpty(v.SubAccountName) }},
		{"provider", func(v *AnyCall) string { return v.Provider }},
		{"model", func(v *AnyCall) string { return v.Model }},
		{"model_slug", func(v *AnyCall) string { return v.Slug }},
		{"author", func(v *AnyCall) string { return v.Author }},
		{"kind", func(v *AnyCall) string { return string(orEmpty(v.Kind)) }},
		{"door", func(v *AnyCall) string { return v.Door }},
		{"status_code", func(v *AnyCall) string { return strconv.Itoa(v.StatusCode) }},
		{"parse_status", func(v *AnyCall) string { return string(v.ParseStatus) }},
		{"via_sdk", func(v *AnyCall) string { return strconv.FormatBool(v.ViaSDK) }},
		{"latency_ms", func(v *AnyCall) string { return integer(v.LatencyMS) }},
		{"first_byte_ms", func(v *AnyCall) string { return textOf(v.FirstByteMS, integer) }},
		{"total_tokens", func(v *AnyCall) string { return integer(v.TotalTokens) }},
		{"input_tokens", func(v *AnyCall) string { return integer(v.Tokens.Input) }},
		{"cached_input_tokens", func(v *AnyCall) string { return integer(v.Tokens.CachedInput) }},
		{"cache_write_tokens", func(v *AnyCall) string { return integer(v.Tokens.CacheWrite) }},
		{"output_tokens", func(v *AnyCall) string { return integer(v.Tokens.Output) }},
		{"audio_input_tokens", func(v *AnyCall) string { return integer(v.Tokens.AudioInput) }},
		{"audio_output_tokens", func(v *AnyCall) string { return integer(v.Tokens.AudioOutput) }},
		{"units", func(v *AnyCall) string { return jsonText(v.Units) }},
		{"attribution", func(v *AnyCall) string { return jsonText(v.Attribution) }},
		{"cost_usd", func(v *AnyCall) string { return v.Cost.String() }},
		{"billed_usd", func(v *AnyCall) string { return textOf(v.Billed, modelgate.Nano.String) }},
		{"debited_usd", func(v *AnyCall) string { return textOf(v.Debited, modelgate.Nano.String) }},
	}
	if !by.Customer {
		columns = append(columns,
			Column{"margin_usd", func(v *AnyCall) string { return textOf(v.Margin, modelgate.Nano.String) }},
			Column{"region", func(v *AnyCall) string { return orEmpty(v.Region) }},
			Column{"rates", func(v *AnyCall) string { return orEmpty(v.Rates) }})
	}
	if by.All {
		columns = append(columns,
			Column{"organization_id", func(v *AnyCall) string { return string(v.Organization) }},
			Column{"organization_name", func(v *AnyCall) string { return v.OrganizationName }})
	}
	return columns
}

func orEmpty[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// textOf is "" for null.
func textOf[T any](p *T, text func(T) string) string {
	if p == nil {
		return ""
	}
	return text(*p)
}

func jsonText(v any) string {
	text, _ := json.Marshal(v, json.Deterministic(true)) // maps of plain values always marshal
	return string(text)
}
