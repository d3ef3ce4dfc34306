package invoice

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/url"
	"time"
)

// anthropicSpan is the longest range of one request.
const anthropicSpan = 31 * 24 * time.Hour

// anthropicGroup is what rows of Anthropic's cost and usage are told apart by.
type anthropicGroup struct {
	Workspace string `json:"workspace_id"`
	Key       string `json:"api_key_id"`
	Context   string `json:"context_window"`
	Model     string `json:"model"`
	Tier      string `json:"service_tier"`
	Speed     string `json:"speed"`
}

// anthropicUsage is where a quantity belongs.
type anthropicUsage struct {
	day   string
	group anthropicGroup
	what  string // token_type, or web_search
}

// anthropicUnits are the units by token type.
var anthropicUnits = map[string]string{
	"uncached_input_tokens": "input", "cache_read_input_tokens": "cached_input", "output_tokens": "output",
	"cache_creation.ephemeral_5m_input_tokens": "cache_write", "cache_creation.ephemeral_1h_input_tokens": "cache_write_1h",
}

// Anthropic reads the cost and usage of an organization at Anthropic.
// https://platform.claude.com/docs/en/api/beta/organization/analytics/cost/list
func (s *Source) Anthropic(ctx context.Context, from, to time.Time) (lines []Line, err error) {
	for ; from.Before(to); from = from.Add(anthropicSpan) {
		end := from.Add(anthropicSpan)
		if end.After(to) {
			end = to
		}
		used, err := s.anthropicUsage(ctx, from, end)
		if err != nil {
			return nil, err
		}
		some, err := s.anthropicCost(ctx, from, end, used)
		if err != nil {
			return nil, err
		}
		lines = append(lines, some...)
	}
	return lines, nil
}

// anthropicQuery asks for days by what cost depends on, and by what it may be
// somebody else's.
func (s *Source) anthropicQuery(from, to time.Time, more ...string) (url.Values, http.Header) {
	whose := "api_key_id"
	if s.ByProject {
		whose = "workspace_id"
	}
	return url.Values{
			"starting_at": {from.Format(time.RFC3339)}, "ending_at": {to.Format(time.RFC3339)}, "time_bucket_width": {"1d"},
			"group_by[]": append([]string{"model", whose, "service_tier", "context_window", "speed"}, more...),
		}, http.Header{
			"X-Api-Key": {s.Credential}, "Anthropic-Version": {"2023-06-01"}, "Anthropic-Beta": {"analytics-usage-cost-2026-08-24"},
		}
}

func (s *Source) anthropicUsage(ctx context.Context, from, to time.Time) (map[anthropicUsage]*big.Rat, error) {
	used := make(map[anthropicUsage]*big.Rat)
	query, header := s.anthropicQuery(from, to)
	err := s.pages(ctx, "/v1/organizations/analytics/usage", query, header, func(text json.RawMessage) error {
		var row struct {
			StartingAt time.Time      `json:"starting_at"`
			Group      anthropicGroup `json:"group"`
			Usage      struct {
				Uncached int64 `json:"uncached_input_tokens"`
				Cached   int64 `json:"cache_read_input_tokens"`
				Output   int64 `json:"output_tokens"`
				Written  struct {
					Short int64 `json:"ephemeral_5m_input_tokens"`
					Long  int64 `json:"ephemeral_1h_input_tokens"`
				} `json:"cache_creation"`
				Tools struct {
					Searches int64 `json:"web_search_requests"`
				} `json:"server_tool_use"`
			} `json:"usage"`
		}
		if err := json.Unmarshal(text, &row); err != nil {
			return err
		}
		for what, n := range map[string]int64{
			"uncached_input_tokens": row.Usage.Uncached, "cache_read_input_tokens": row.Usage.Cached, "output_tokens": row.Usage.Output,
			"cache_creation.ephemeral_5m_input_tokens": row.Usage.Written.Short, "cache_creation.ephemeral_1h_input_tokens": row.Usage.Written.Long,
			"web_search": row.Usage.Tools.Searches,
		} {
			key := anthropicUsage{dayOf(row.StartingAt), row.Group, what}
			if used[key] == nil {
				used[key] = new(big.Rat)
			}
			used[key].Add(used[key], big.NewRat(n, 1))
		}
		return nil
	})
	if status := errStatus(0); errors.As(err, &status) && status == http.StatusNotFound {
		return nil, errors.New("this account has no analytics API; use invoice source file")
	}
	return used, err
}

func (s *Source) anthropicCost(ctx context.Context, from, to time.Time, used map[anthropicUsage]*big.Rat) (lines []Line, err error) {
	query, header := s.anthropicQuery(from, to, "cost_type", "token_type")
	err = s.pages(ctx, "/v1/organizations/analytics/cost", query, header, func(text json.RawMessage) error {
		var row struct {
			StartingAt time.Time `json:"starting_at"`
			Group      struct {
				anthropicGroup
				CostType  string `json:"cost_type"`
				TokenType string `json:"token_type"`
			} `json:"group"`
			Cost struct {
				Amount   string `json:"amount"`
				Currency string `json:"currency"`
			} `json:"cost"`
		}
		if err := json.Unmarshal(text, &row); err != nil {
			return err
		}
		if row.Cost.Currency != "USD" {
			return fmt.Errorf("%s: %w", row.Cost.Currency, errCurrency)
		}
		g := row.Group
		what := cmp.Or(g.TokenType, g.CostType)
		l := Line{Day: dayOf(row.StartingAt), Name: g.Model + " " + what, Project: g.Workspace, Key: g.Key}
		var err error
		if l.Amount, l.Decimals, err = amount(row.Cost.Amount, 2); err != nil {
			return err
		}
		long := ""
		if g.Context != "" && g.Context != "0-200k" {
			long = Long
		}
		switch unit := anthropicUnits[g.TokenType]; {
		case unit != "":
			l.Class, l.Model, l.Unit, l.Variant = Usage, g.Model, unit, variantOf(g.Tier, g.Speed, long)
		case g.CostType == "web_search":
			l.Class, l.Unit = Usage, "search"
		case g.CostType == "code_execution":
			l.Class, l.Unit = Usage, "code_session"
		}
		l.Quantity = used[anthropicUsage{l.Day, g.anthropicGroup, what}]
		lines = append(lines, l)
		return nil
	})
	return lines, err
}
