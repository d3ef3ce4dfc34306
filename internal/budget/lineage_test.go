package budget

import (
	"errors"
	"fmt"
	"math/bits"
	"testing"
	"testing/synctest"

	"modelgate"
)

// A call of a key with four ancestors reserves on all of their budgets, beside
// its own seven, and a removed one of them is left out.
func TestHoldOfALineage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newMemoryStore()
		c := &modelgate.Caller{ClientID: "c", KeyID: "k0"}
		add := func(l modelgate.Level, id string, generation int, periods ...modelgate.Period) {
			for _, p := range periods {
				c.Budgets = append(c.Budgets, modelgate.Budget{Level: l, ID: id, Period: p, Generation: generation, Limit: modelgate.USD, Revision: 1})
				b.limits[limitKey{l, id, p}] = modelgate.USD
			}
		}
		add(modelgate.LevelClient, "c", 0, modelgate.Total, modelgate.Day, modelgate.Month)
		add(modelgate.LevelSubAccount, "s", 0, modelgate.Day, modelgate.Month)
		for generation := range 1 + modelgate.MaxLineage {
			add(modelgate.LevelKey, fmt.Sprint("k", generation), generation, modelgate.Day, modelgate.Month)
		}
		delete(b.limits, limitKey{modelgate.LevelKey, "k2", modelgate.Day})
		x := newTill(t, Strict, b)
		for range 2 { // from the store, then from the leases
			h, err := x.Reserve(t.Context(), c, new(modelgate.Traits), demand(1000))
			if err != nil {
				t.Fatal(err)
			}
			if n := bits.OnesCount16(uint16(h.Holds())); n != 14 || h.count != 14 || h.Holds().HasAbove(2, modelgate.Day) || !h.Holds().HasAbove(4, modelgate.Month) {
				t.Errorf("reserved on %d budgets, %d leases, %b; want 14 of 15", n, h.count, h.Holds())
			}
			h.Settle(used(1000))
		}
		b.limits[limitKey{modelgate.LevelKey, "k4", modelgate.Month}] = 1
		for i := range c.Budgets {
			c.Budgets[i].Revision = 2
		}
		if _, err := x.Reserve(t.Context(), c, new(modelgate.Traits), demand(1000)); !errors.Is(err, modelgate.ErrBudget) {
			t.Errorf("an ancestor's budget is used up: %v", err)
		}
	})
}
