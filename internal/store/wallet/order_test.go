package wallet

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

var full = flag.Bool("full", false, "run at the size that the documentation states")

// naive is a wallet that hands each debit out at once.
type naive struct {
	credits []*naiveCredit
	debt    modelgate.Nano // what no credit has covered yet
}

type naiveCredit struct {
	id        string
	grant     bool
	expires   time.Time
	at        time.Time
	remaining modelgate.Nano
}

// before says in words of its own which credit is used first.
func (c *naiveCredit) before(o *naiveCredit) bool {
	switch {
	case c.expires.IsZero() != o.expires.IsZero():
		return o.expires.IsZero()
	case !c.expires.Equal(o.expires):
		return c.expires.Before(o.expires)
	case c.grant != o.grant:
		return c.grant
	case !c.at.Equal(o.at):
		return c.at.Before(o.at)
	}
	return c.id < o.id
}

func (n *naive) debit(amount modelgate.Nano) {
	for amount > 0 {
		var first *naiveCredit
		for _, c := range n.credits {
			if c.remaining > 0 && (first == nil || c.before(first)) {
				first = c
			}
		}
		if first == nil {
			n.debt += amount
			return
		}
		taken := min(amount, first.remaining)
		first.remaining -= taken
		amount -= taken
	}
}

func (n *naive) credit(c naiveCredit) {
	n.credits = append(n.credits, &c)
	debt := n.debt
	n.debt = 0
	n.debit(debt)
}

// TestOrderOfUseAgainstCallByCall lives through histories in two ways: as the
// store does, which hands debits out when the credits change, and call by call.
func TestOrderOfUseAgainstCallByCall(t *testing.T) {
	t.Parallel()
	histories := 2000
	if *full {
		histories = 200_000
	}
	for seed := range histories {
		if err := history(rand.New(rand.NewPCG(uint64(seed), 7))); err != nil {
			t.Fatalf("history %d: %v", seed, err)
		}
	}
}

func history(random *rand.Rand) error {
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	db := &sqldb.DB{Now: func() time.Time { return now }}
	l := &ledger{Store: NewStore(db, nil), before: map[string]modelgate.Nano{}}
	l.CreditLine = modelgate.Nano(random.IntN(2) * 50)
	var model naive
	amount := func() modelgate.Nano { return modelgate.Nano(1 + random.IntN(100)) }
	for range 10 + random.IntN(40) {
		now = now.Add(time.Duration(random.IntN(90)) * time.Minute)
		switch random.IntN(6) {
		case 0, 1, 2: // a call: the store only counts it
			n := amount()
			l.settled += n
			model.debit(n)
			continue
		case 3:
			e := Entry{Kind: []Kind{Purchase, GrantKind, Adjustment}[random.IntN(3)], Amount: amount()}
			c := naiveCredit{grant: e.Kind == GrantKind, remaining: e.Amount}
			if e.Kind == GrantKind && random.IntN(2) == 0 {
				c.expires = now.Add(time.Duration(random.IntN(10)) * time.Hour)
				e.ExpiresAt = &c.expires
			}
			l.spread()
			l.add(&e)
			c.id, c.at = e.ID, e.At
			model.credit(c)
		case 4:
			n := amount()
			l.spread()
			l.add(&Entry{Kind: Adjustment, Amount: -n})
			model.debit(n)
		case 5: // the sweep, while something is reserved
			l.Held = modelgate.Nano(random.IntN(30))
			l.spread()
			free := max(l.Limit()-l.settled-l.Held, 0)
			slices.SortFunc(model.credits, func(a, b *naiveCredit) int {
				if a.before(b) {
					return -1
				}
				return 1
			})
			for _, c := range model.credits {
				if !c.expires.IsZero() && !c.expires.After(now) {
					taken := min(c.remaining, free)
					c.remaining -= taken
					free -= taken
				}
			}
			l.expire(now)
		}
		l.spread()
		if err := same(l, &model); err != nil {
			return err
		}
	}
	return nil
}

// same compares what remains of each credit, and the balance.
func same(l *ledger, model *naive) error {
	left := make(map[string]modelgate.Nano)
	var sum modelgate.Nano
	for _, g := range l.Grants {
		left[g.ID] = g.Remaining
		sum += g.Remaining
	}
	for _, c := range model.credits {
		if left[c.id] != c.remaining {
			return fmt.Errorf("%d remains of %s, %d call by call", left[c.id], c.id, c.remaining)
		}
		delete(left, c.id)
	}
	switch {
	case len(left) > 0:
		return fmt.Errorf("unknown credits %v", left)
	case l.credited-l.allocated != sum:
		return fmt.Errorf("%d credited, %d allocated, %d remain", l.credited, l.allocated, sum)
	case l.settled-l.allocated != model.debt:
		return fmt.Errorf("%d settled, %d allocated, %d owed", l.settled, l.allocated, model.debt)
	}
	return nil
}
