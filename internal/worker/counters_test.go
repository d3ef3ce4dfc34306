package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"modelgate"
)

// counterStore has clients with a number of old counters each.
type counterStore struct {
	old    map[modelgate.ClientID]int64
	before time.Time
	steps  []string
	fault  error
}

func (s *counterStore) ClientsWithRules(context.Context) (out []modelgate.ClientID, err error) {
	for c := range s.old {
		out = append(out, c)
	}
	slices.Sort(out)
	return out, nil
}

func (s *counterStore) ForgetCounters(_ context.Context, c modelgate.ClientID, before time.Time, most int) (int64, error) {
	n := min(s.old[c], int64(most))
	s.old[c] -= n
	s.before = before
	s.steps = append(s.steps, fmt.Sprintf("%s %d", c, n))
	return n, s.fault
}

// Counters go in small steps, until none is left of any client.
func TestCounterPruner(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	store := &counterStore{old: map[modelgate.ClientID]int64{"a": 1200, "b": 0, "c": 500}}
	var waits []time.Duration
	p := &CounterPruner{Store: store, Now: func() time.Time { return now }, wait: func(_ context.Context, d time.Duration) error {
		waits = append(waits, d)
		return nil
	}}
	if err := p.round(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := []string{"a 500", "a 500", "a 200", "b 0", "c 500", "c 0"}; !slices.Equal(store.steps, want) {
		t.Errorf("steps %v, want %v", store.steps, want)
	}
	if want := now.Add(-7 * 24 * time.Hour); !store.before.Equal(want) {
		t.Errorf("before %v, want %v", store.before, want)
	}
	if want := []time.Duration{pruneStep, pruneStep, pruneStep}; !slices.Equal(waits, want) {
		t.Errorf("waits %v, want %v", waits, want)
	}
	store.fault = errors.New("away")
	if err := p.round(t.Context()); !errors.Is(err, store.fault) {
		t.Errorf("error %v", err)
	}
}
