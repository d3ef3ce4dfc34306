package client_test

// These tests are run by those of cmd/modelgate, which start the gateway.

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"testing"

	"modelgate/client"
)

func connect(t *testing.T) *client.Gateway {
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
	me, err := c.MeWithResponse(ctx)
	if err != nil || len(me.JSON200.Scopes) != 3 {
		t.Fatalf("Me = %+v, %v", me, err)
	}
	issued := map[string]bool{}
	for range 5 {
		k, err := c.IssueKeyWithResponse(ctx, client.NewKey{Scopes: []client.Scope{client.ScopeStatsRead}, Entitlements: &[]client.Entitlement{}, ExpiresInSeconds: new(3600)})
		if err != nil || k.JSON200.ExpiresAt == nil {
			t.Fatalf("IssueKey = %+v, %v", k, err)
		}
		issued[k.JSON200.APIKeyID] = true
	}
	pages := 0
	for k, err := range c.AllKeys(ctx, client.KeysParams{Limit: new(2)}) {
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
	for k, err := range c.AllKeys(ctx, client.KeysParams{Limit: new(1)}) {
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.RevokeKeyWithResponse(ctx, k.ID, nil); err != nil {
			t.Fatal(err)
		}
		break // a list may be left at any time
	}
}

func TestErrors(t *testing.T) {
	c := connect(t)
	_, err := c.RevokeKeyWithResponse(t.Context(), "00000000-0000-7000-8000-000000000000", nil)
	var e *client.Error
	if !errors.As(err, &e) || !errors.Is(err, client.ErrNotFound) || errors.Is(err, client.ErrConflict) || e.Status != 404 || e.RequestID == "" {
		t.Errorf("RevokeKey = %+v", err)
	}
	for _, err := range c.AllKeys(t.Context(), client.KeysParams{Limit: new(5000)}) {
		if !errors.Is(err, client.ErrBadRequest) {
			t.Errorf("Keys = %v, want a bad request", err)
		}
	}
	if _, err := client.New(os.Getenv("GATEWAY_URL"), "gw_live_none").MeWithResponse(t.Context()); !errors.Is(err, client.ErrUnauthorized) {
		t.Errorf("Me = %v, want unauthorized", err)
	}
}

func TestMoney(t *testing.T) {
	c := connect(t)
	ctx := t.Context()
	const limit = "123456789.123456789"
	month := client.PeriodMonth
	if _, err := c.PutBudgetWithResponse(ctx, client.NewBudget{Scope: client.BudgetScopeClient, Period: &month, LimitUSD: limit}); err != nil {
		t.Fatal(err)
	}
	budgets, err := c.BudgetsWithResponse(ctx)
	if err != nil || len(*budgets.JSON200) != 1 || (*budgets.JSON200)[0].LimitUSD != limit {
		t.Errorf("Budgets = %+v, %v", budgets, err)
	}
	if _, err := c.DeleteBudgetWithResponse(ctx, &client.DeleteBudgetParams{Scope: client.BudgetScopeClient, Period: &month}); err != nil {
		t.Error(err)
	}
	sub, err := c.CreateSubAccountWithResponse(ctx, client.NewSubAccount{Name: "From outside", Slug: "outside-go"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.UpdateSubAccountWithResponse(ctx, sub.JSON200.ID, client.SubAccountChange{MarkupPct: new(12.5)}); err != nil {
		t.Error(err)
	}
	if _, err := c.CreateSubAccountWithResponse(ctx, client.NewSubAccount{Name: "Again", Slug: "outside-go"}); !errors.Is(err, client.ErrConflict) {
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
	for row, err := range c.UsageRows(ctx, client.UsageParams{ID: new(resp.Header.Get("X-Gateway-Request-Id"))}) {
		if err != nil || !row.ViaSDK || row.Attribution["team"] != "outside-go" || row.CostUSD == "0" {
			t.Errorf("row %+v, %v", row, err)
		}
		return
	}
	t.Error("the call is not among the usage")
}
