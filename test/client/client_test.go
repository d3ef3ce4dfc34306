// Package outside uses the Go client as a program of another module does. It
// is run by the tests of cmd/modelgate, which start the gateway.
package outside

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"testing"

	"modelgate/client"
)

func connect(t *testing.T) *client.Client {
	t.Helper()
	url, key := os.Getenv("GATEWAY_URL"), os.Getenv("GATEWAY_KEY")
	if url == "" || key == "" {
		t.Skip("needs GATEWAY_URL and GATEWAY_KEY of a running gateway")
	}
	return client.New(url, key)
}

func TestKeys(t *testing.T) {
	c := connect(t)
	ctx := t.Context()
	me, err := c.Me(ctx)
	if err != nil || len(me.Scopes) != 3 {
		t.Fatalf("Me = %+v, %v", me, err)
	}
	issued := map[string]bool{}
	for range 5 {
		k, err := c.IssueKey(ctx, client.NewKey{Scopes: []client.Scope{client.ScopeStatsRead}, Entitlements: []client.Entitlement{}, ExpiresInSeconds: new(int64(3600))})
		if err != nil || k.ExpiresAt == nil {
			t.Fatalf("IssueKey = %+v, %v", k, err)
		}
		issued[k.APIKeyID] = true
	}
	pages := 0
	for k, err := range c.Keys(ctx, client.KeysQuery{Limit: 2}) {
		if err != nil {
			t.Fatal(err)
		}
		pages++
		delete(issued, k.ID)
		if k.SubAccountID != nil || k.CreatedAt.IsZero() {
			t.Errorf("key %+v", k)
		}
	}
	if len(issued) > 0 || pages < 6 {
		t.Errorf("%d keys listed, these not: %v", pages, issued)
	}
	for k, err := range c.Keys(ctx, client.KeysQuery{Limit: 1}) {
		if err != nil {
			t.Fatal(err)
		}
		if err := c.RevokeKey(ctx, k.ID, client.RevokeKeyQuery{}); err != nil {
			t.Fatal(err)
		}
		break // a list may be left at any time
	}
}

func TestErrors(t *testing.T) {
	c := connect(t)
	err := c.RevokeKey(t.Context(), "00000000-0000-7000-8000-000000000000", client.RevokeKeyQuery{})
	var e *client.Error
	if !errors.As(err, &e) || !errors.Is(err, client.ErrNotFound) || errors.Is(err, client.ErrConflict) || e.Status != 404 || e.RequestID == "" {
		t.Errorf("RevokeKey = %+v", err)
	}
	for _, err := range c.Keys(t.Context(), client.KeysQuery{Limit: 5000}) {
		if !errors.Is(err, client.ErrBadRequest) {
			t.Errorf("Keys = %v, want a bad request", err)
		}
	}
	if _, err := client.New(os.Getenv("GATEWAY_URL"), "gw_live_none").Me(t.Context()); !errors.Is(err, client.ErrUnauthorized) {
		t.Errorf("Me = %v, want unauthorized", err)
	}
}

func TestMoney(t *testing.T) {
	c := connect(t)
	ctx := t.Context()
	limit, err := client.ParseUSD("123456789.123456789")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.PutBudget(ctx, client.NewBudget{Scope: client.BudgetScopeClient, Period: client.PeriodMonth, LimitUSD: limit}); err != nil {
		t.Fatal(err)
	}
	budgets, err := c.Budgets(ctx)
	if err != nil || len(budgets) != 1 || budgets[0].LimitUSD != limit {
		t.Errorf("Budgets = %+v, %v", budgets, err)
	}
	if err := c.DeleteBudget(ctx, client.DeleteBudgetQuery{Scope: client.BudgetScopeClient, Period: client.PeriodMonth}); err != nil {
		t.Error(err)
	}
	sub, err := c.CreateSubAccount(ctx, client.NewSubAccount{Name: "From outside", Slug: "outside-go"})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.UpdateSubAccount(ctx, sub.ID, client.SubAccountChange{MarkupPct: new(12.5)}); err != nil {
		t.Error(err)
	}
	if _, err := c.CreateSubAccount(ctx, client.NewSubAccount{Name: "Again", Slug: "outside-go"}); !errors.Is(err, client.ErrConflict) {
		t.Errorf("a second slug = %v, want a conflict", err)
	}
}

func TestCall(t *testing.T) {
	c := connect(t)
	ctx := t.Context()
	resp, err := c.Call(ctx, "/v1/chat/completions", map[string]any{
		"model": "openai/gpt-5-mini", "messages": []any{map[string]string{"role": "user", "content": "hi"}},
	}, map[string]string{"team": "outside-go"})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(new(map[string]any)); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status, err)
	}
	for row, err := range c.Usage(ctx, client.UsageQuery{ID: resp.Header.Get("X-Gateway-Request-Id")}) {
		if err != nil || !row.ViaSDK || row.Attribution["team"] != "outside-go" || row.CostUSD == 0 {
			t.Errorf("row %+v, %v", row, err)
		}
		return
	}
	t.Error("the call is not among the usage")
}
