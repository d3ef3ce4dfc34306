package modelgate_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"modelgate"
)

// A refusal shows the figures of a budget to those whose business they are, and
// to an end customer as billed.
func TestRefusalFigures(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 12, 31, 23, 59, 0, 0, time.UTC)
	const limit, used, needed = 2 * modelgate.USD, modelgate.USD, modelgate.USD/2 + 1
	owner := &modelgate.Caller{}
	customer := &modelgate.Caller{SubAccountID: "s", Markup: 50_000_000}
	budget := func(l modelgate.Level, p modelgate.Period, generation int) modelgate.Budget {
		return modelgate.Budget{Level: l, ID: "i", Period: p, Limit: limit, Generation: generation}
	}
	for name, c := range map[string]struct {
		caller *modelgate.Caller
		budget modelgate.Budget
		want   string // "": no figures
	}{
		"client": {owner, budget(modelgate.LevelClient, modelgate.Month, 0),
			`{"kind":"budget","scope":"client","unit":"usd","period":"month","limit":2,"used":1,"remaining":1,"needed":0.500000001,"resets_at":"2027-01-01T00:00:00Z"}`},
		"balance": {owner, budget(modelgate.LevelClient, modelgate.Total, 0),
			`{"kind":"balance","scope":"client","unit":"usd","limit":2,"used":1,"remaining":1,"needed":0.500000001,"resets_at":null}`},
		"key": {owner, budget(modelgate.LevelKey, modelgate.Day, 0),
			`{"kind":"budget","scope":"key","id":"i","unit":"usd","period":"day","limit":2,"used":1,"remaining":1,"needed":0.500000001,"resets_at":"2027-01-01T00:00:00Z"}`},
		"customer's sub-account": {customer, budget(modelgate.LevelSubAccount, modelgate.Day, 0),
			`{"kind":"budget","scope":"sub_account","id":"i","unit":"usd","period":"day","limit":3,"used":1.5,"remaining":1.5,"needed":0.75,"resets_at":"2027-01-01T00:00:00Z"}`},
		"customer's organization": {customer, budget(modelgate.LevelClient, modelgate.Day, 0), ""},
		"customer's balance":      {customer, budget(modelgate.LevelClient, modelgate.Total, 0), ""},
		"customer's issuing key":  {customer, budget(modelgate.LevelKey, modelgate.Day, 1), ""},
	} {
		err := c.caller.Refuse(&c.budget, used, needed, at)
		if !errors.Is(err, c.budget.Refusal()) {
			t.Errorf("%s: %v", name, err)
		}
		limited, shown := errors.AsType[*modelgate.LimitError](err)
		if !shown {
			if c.want != "" {
				t.Errorf("%s: no figures", name)
			}
			continue
		}
		got, _ := json.Marshal(limited.State)
		if string(got) != c.want {
			t.Errorf("%s:\n%s, want\n%s", name, got, c.want)
		}
	}
}

// More than the limit may be used: then nothing remains.
func TestRefusalPastTheLimit(t *testing.T) {
	t.Parallel()
	b := modelgate.Budget{Level: modelgate.LevelKey, ID: "i", Period: modelgate.Day, Limit: 5}
	limited, ok := errors.AsType[*modelgate.LimitError](new(modelgate.Caller).Refuse(&b, 7, 1, time.Now()))
	if !ok || limited.State.Used != 7 || limited.State.Remaining != 0 {
		t.Errorf("%+v", limited)
	}
}
