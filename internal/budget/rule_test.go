package budget

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"modelgate"
)

// rule adds a rule to a caller and to the store.
func (b *memoryStore) rule(t testing.TB, c *modelgate.Caller, match string, p modelgate.Period, limit modelgate.Nano) *modelgate.Budget {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	r := &modelgate.Budget{Level: modelgate.LevelClient, ID: "c", Period: p, Limit: limit, Rule: int64(len(b.rules) + 1), Revision: 1}
	if match != "" {
		m, err := modelgate.ParseMatch(match)
		if err != nil {
			t.Fatal(err)
		}
		r.Match = m
	}
	b.rules[r.Rule] = limit
	c.Rules = append(c.Rules, r)
	modelgate.SortRules(c.Rules)
	return r
}

func tagged(pairs ...string) *modelgate.Traits {
	t := &modelgate.Traits{Slug: "openai/gpt-5", Attribution: map[string]string{}}
	for i := 0; i < len(pairs); i += 2 {
		t.Attribution[pairs[i]] = pairs[i+1]
	}
	return t
}

// Of a match of each value every value has the whole limit, and a call reserves
// on the rules that count it and on no other.
func TestReserveOnRules(t *testing.T) {
	t.Parallel()
	b := newMemoryStore()
	c := b.caller(budget(modelgate.LevelClient, modelgate.Day, modelgate.USD))
	each := b.rule(t, c, "tag:end_user=*", modelgate.Week, 1000)
	b.rule(t, c, "tag:team=other", modelgate.Ever, 1)
	b.rule(t, c, "", modelgate.Ever, 1).Mode = modelgate.Soft
	models := b.rule(t, c, "model:openai/*", modelgate.Month, modelgate.USD)
	x := newTill(t, Strict, b)
	for _, user := range []string{"u1", "u2"} {
		h, err := x.Reserve(t.Context(), c, tagged("end_user", user), demand(900))
		if err != nil {
			t.Fatal(err)
		}
		if got := h.Rules(); len(got) != 2 || h.count != 3 {
			t.Errorf("reserved on the rules %v, %d counters; want %d and %d beside the day", got, h.count, each.Rule, models.Rule)
		}
		k := each.ValueCounter("c", moment, user)
		if monday := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC).UnixMicro(); k.Start != monday || b.exposed(k) < 900 {
			t.Errorf("the counter of %s is %+v and has %v", user, k, b.exposed(k))
		}
		var limit *modelgate.LimitError
		c.SubAccountID = ""
		_, err = x.Reserve(t.Context(), c, tagged("end_user", user), demand(900))
		if !errors.As(err, &limit) || limit.State.Match != "tag:end_user=*" || limit.State.Window != "week" || limit.State.Period != "" || limit.State.Limit != 1000 {
			t.Errorf("a second call of %s: %v, %+v", user, err, limit)
		}
		h.Settle(used(900))
	}
	h, err := x.Reserve(t.Context(), c, new(modelgate.Traits), demand(900))
	if err != nil || h.count != 1 || h.Rules() != nil {
		t.Errorf("a call that no rule counts: %v, %d counters, rules %v", err, h.count, h.Rules())
	}
	// What is deleted meanwhile is left out.
	delete(b.rules, each.Rule)
	h, err = x.Reserve(t.Context(), c, tagged("end_user", "u3"), demand(900))
	if err != nil || h.count != 2 {
		t.Errorf("after the rule is gone: %v, %d counters", err, h.count)
	}
}

// The first calls of a new end user come at once, and the limit is below one.
func TestFirstCallsOfANewEndUser(t *testing.T) {
	t.Parallel()
	b := newMemoryStore()
	c := b.caller()
	each := b.rule(t, c, "tag:end_user=*", modelgate.Day, 999)
	x := newTill(t, Strict, b)
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() {
			if _, err := x.Reserve(t.Context(), c, tagged("end_user", "new"), demand(1000)); !errors.Is(err, modelgate.ErrBudget) {
				t.Errorf("a call above the limit: %v", err)
			}
		})
	}
	calls.Wait()
	if n := b.exposed(each.ValueCounter("c", moment, "new")); n != 0 {
		t.Errorf("%v is reserved", n)
	}
}

// More than MaxCounters never skips one.
func TestTooManyCounters(t *testing.T) {
	t.Parallel()
	b := newMemoryStore()
	c := threeLevels(b)
	for n := len(c.Budgets); n < MaxCounters; n++ {
		b.rule(t, c, fmt.Sprintf("tag:t%d=", n), modelgate.Day, modelgate.USD)
	}
	x := newTill(t, Strict, b)
	for range 2 {
		h, err := x.Reserve(t.Context(), c, tagged(), demand(10))
		if err != nil || h.count != MaxCounters {
			t.Fatalf("%d counters: %v, %d reserved", MaxCounters, err, h.count)
		}
		h.Settle(used(10))
	}
	b.rule(t, c, "tag:one=more", modelgate.Day, modelgate.USD)
	if _, err := x.Reserve(t.Context(), c, tagged(), demand(10)); err != nil {
		t.Errorf("with a rule that does not count the call: %v", err)
	}
	if _, err := x.Reserve(t.Context(), c, tagged("one", "more"), demand(10)); !errors.Is(err, errTooMany) {
		t.Errorf("%d counters: %v", MaxCounters+1, err)
	}
}

func TestWeekOf(t *testing.T) {
	t.Parallel()
	for d := range 800 {
		day := time.Date(2025, 12, 20+d, 0, 0, 0, 0, time.UTC)
		if got, want := weekOf(day.UnixMicro()), modelgate.Week.StartMicros(day); got != want {
			t.Fatalf("the week of %v begins %v, want %v", day, time.UnixMicro(got).UTC(), time.UnixMicro(want).UTC())
		}
	}
}

// BenchmarkReserveOn24 is BenchmarkReserve with as many counters as there may be.
func BenchmarkReserveOn24(b *testing.B) {
	memory := newMemoryStore()
	c := threeLevels(memory)
	for n := len(c.Budgets); n < MaxCounters; n++ {
		match := fmt.Sprintf("tag:t%d=*", n)
		memory.rule(b, c, match, modelgate.Week, 1000000*modelgate.USD)
	}
	call := tagged()
	for n := range MaxCounters {
		call.Attribution[fmt.Sprintf("t%d", n)] = "value"
	}
	p := New(Options{
		Store: memory, Instance: "i", Mode: Estimate, Log: slog.New(slog.DiscardHandler), Now: time.Now,
		Flushed: func(context.Context) error { return nil }, Unreachable: isLost,
	})
	if err := p.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		h, err := p.Reserve(b.Context(), c, call, demand(1000))
		if err != nil {
			b.Fatal(err)
		}
		if h.count != MaxCounters {
			b.Fatal(h.count)
		}
		h.Settle(used(1000))
	}
}
