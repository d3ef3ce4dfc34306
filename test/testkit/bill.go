package testkit

import (
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// BillKey is what lines of a bill are told apart by.
type BillKey struct {
	Day               string // UTC, YYYY-MM-DD
	Model, Unit, Tier string // Unit is the name of a unit of price
	Long              bool   // a prompt above a threshold
	Project, APIKey   string
	Item              string // of OpenAI: a line that is no usage, as it is spelled
}

type billEntry struct {
	quantity int64
	amount   *big.Rat // USD
}

// Bill is a ledger of a provider, as its API of costs shows it. Fill it before
// it is served.
type Bill struct {
	lines map[BillKey]*billEntry
	// PageSize is how many rows a page of Anthropic's has.
	PageSize int
}

// Add adds a quantity and its price in USD to a line.
func (b *Bill) Add(key BillKey, quantity int64, amount *big.Rat) {
	if b.lines == nil {
		b.lines = make(map[BillKey]*billEntry)
	}
	e := b.lines[key]
	if e == nil {
		e = &billEntry{amount: new(big.Rat)}
		b.lines[key] = e
	}
	e.quantity += quantity
	e.amount.Add(e.amount, amount)
}

// Times is the bill at a discount or surcharge.
func (b *Bill) Times(factor *big.Rat) *Bill {
	made := &Bill{PageSize: b.PageSize}
	for k, e := range b.lines {
		made.Add(k, e.quantity, new(big.Rat).Mul(e.amount, factor))
	}
	return made
}

func (b *Bill) keys() []BillKey {
	keys := make([]BillKey, 0, len(b.lines))
	for k := range b.lines {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b BillKey) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return keys
}

// openAIItem is a line as OpenAI spells it.
func openAIItem(k BillKey) string {
	switch k.Unit {
	case "":
		return k.Item
	case "search":
		return "web search tool calls"
	}
	item := k.Model + ", " + map[string]string{"input": "input", "cached_input": "cached input", "cache_write": "cache writes", "output": "output"}[k.Unit]
	if k.Tier != "" {
		item = k.Tier + " | " + item
	}
	if k.Long {
		item += ", long context"
	}
	return item
}

// OpenAI serves GET /v1/organization/costs to the holder of the key.
func (b *Bill) OpenAI(key string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if r.URL.Path != "/v1/organization/costs" || r.Header.Get("Authorization") != "Bearer "+key || q.Get("bucket_width") != "1d" {
			http.Error(w, "{}", http.StatusUnauthorized)
			return
		}
		start, _ := strconv.ParseInt(q.Get("start_time"), 10, 64)
		end, _ := strconv.ParseInt(q.Get("end_time"), 10, 64)
		limit, _ := strconv.Atoi(q.Get("limit"))
		if page := q.Get("page"); page != "" {
			start, _ = strconv.ParseInt(strings.TrimPrefix(page, "page_"), 10, 64)
		}
		type object map[string]any
		var buckets []object
		for ; start < end && len(buckets) < limit; start += 86400 {
			results := []object{}
			for _, k := range b.keys() {
				if k.Day != time.Unix(start, 0).UTC().Format(time.DateOnly) {
					continue
				}
				e := b.lines[k]
				one := object{"object": "organization.costs.result", "amount": object{"value": json.Number(e.amount.FloatString(18)), "currency": "usd"},
					"line_item": openAIItem(k), "project_id": k.Project, "api_key_id": k.APIKey}
				if e.quantity > 0 {
					one["quantity"], one["quantity_unit"] = e.quantity, "tokens"
				}
				results = append(results, one)
			}
			buckets = append(buckets, object{"object": "bucket", "start_time": start, "end_time": start + 86400, "results": results})
		}
		page := object{"object": "page", "data": buckets, "has_more": start < end, "next_page": nil}
		if start < end {
			page["next_page"] = "page_" + strconv.FormatInt(start, 10)
		}
		_ = json.NewEncoder(w).Encode(page)
	})
}

// Anthropic serves the cost and usage of the analytics API to the holder of the
// key.
func (b *Bill) Anthropic(key string) http.Handler {
	tokenTypes := map[string]string{"input": "uncached_input_tokens", "cached_input": "cache_read_input_tokens", "output": "output_tokens",
		"cache_write": "cache_creation.ephemeral_5m_input_tokens", "cache_write_1h": "cache_creation.ephemeral_1h_input_tokens"}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		from, fault := time.Parse(time.RFC3339, q.Get("starting_at"))
		to, other := time.Parse(time.RFC3339, q.Get("ending_at"))
		if r.Header.Get("X-Api-Key") != key || fault != nil || other != nil || to.Sub(from) > 31*24*time.Hour || r.Header.Get("Anthropic-Beta") != "analytics-usage-cost-2026-08-24" {
			http.Error(w, "{}", http.StatusBadRequest)
			return
		}
		type object map[string]any
		rows := []object{}
		for _, k := range b.keys() {
			day, _ := time.Parse(time.DateOnly, k.Day)
			if day.Before(from) || !day.Before(to) {
				continue
			}
			e := b.lines[k]
			tier, window := k.Tier, "0-200k"
			if tier == "" {
				tier = "standard"
			}
			if k.Long {
				window = "200k-1M"
			}
			group := object{"model": k.Model, "service_tier": tier, "context_window": window, "speed": "standard"}
			if slices.Contains(q["group_by[]"], "workspace_id") {
				group["workspace_id"] = k.Project
			} else {
				group["api_key_id"] = k.APIKey
			}
			row := object{"starting_at": day.Format(time.RFC3339), "ending_at": day.AddDate(0, 0, 1).Format(time.RFC3339), "group": group}
			kind := tokenTypes[k.Unit]
			switch r.URL.Path {
			case "/v1/organizations/analytics/cost":
				group["cost_type"], group["token_type"] = "tokens", kind
				if kind == "" {
					group["cost_type"], group["token_type"] = "web_search", nil
				}
				cents := new(big.Rat).Mul(e.amount, big.NewRat(100, 1))
				row["cost"] = object{"amount": cents.FloatString(16), "list_amount": cents.FloatString(16), "currency": "USD", "requests": nil}
			case "/v1/organizations/analytics/usage":
				used := object{"cache_creation": object{}, "server_tool_use": object{}}
				written, _ := used["cache_creation"].(object)
				tools, _ := used["server_tool_use"].(object)
				switch name, found := strings.CutPrefix(kind, "cache_creation."); {
				case kind == "":
					tools["web_search_requests"] = e.quantity
				case found:
					written[name] = e.quantity
				default:
					used[kind] = e.quantity
				}
				row["usage"] = used
			}
			rows = append(rows, row)
		}
		at, _ := strconv.Atoi(q.Get("page"))
		last := min(at+max(b.PageSize, 1), len(rows))
		page := object{"data": rows[at:last], "has_more": last < len(rows), "next_page": nil}
		if last < len(rows) {
			page["next_page"] = strconv.Itoa(last)
		}
		_ = json.NewEncoder(w).Encode(page)
	})
}
