package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"testing"
	"time"

	"modelgate"
)

// pruneLedger has clients with a number of steps left for each.
type pruneLedger struct {
	prunable map[modelgate.ClientID]int
	before   time.Time
	done     []string
	fault    error
}

func clientsOf(steps map[modelgate.ClientID]int) (out []modelgate.ClientID) {
	for c, n := range steps {
		if n > 0 {
			out = append(out, c)
		}
	}
	slices.Sort(out)
	return out
}

func (l *pruneLedger) Prunable(_ context.Context, before time.Time) ([]modelgate.ClientID, error) {
	l.before = before
	return clientsOf(l.prunable), l.fault
}

func (l *pruneLedger) Prune(_ context.Context, c modelgate.ClientID, _ time.Time, _ int) (int64, bool, error) {
	l.prunable[c]--
	l.done = append(l.done, "prune "+string(c))
	return 10, l.prunable[c] > 0, nil
}

func TestRetentionPruner(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		keep   time.Duration
		fault  error
		refuse error
		spare  map[modelgate.ClientID]error
		want   []string
	}{
		"all":                   {keep: 400 * 24 * time.Hour, want: []string{"first", "prune b", "prune b", "prune c"}},
		"for ever":              {},
		"what goes first fails": {keep: time.Hour, refuse: errors.New("no"), want: []string{"first"}},
		"of one it fails": {
			keep: time.Hour, spare: map[modelgate.ClientID]error{"b": errors.New("no"), "x": errors.New("no")},
			want: []string{"first", "prune c"},
		},
		"no database": {keep: time.Hour, fault: errors.New("away"), want: []string{"first"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &pruneLedger{prunable: map[modelgate.ClientID]int{"b": 2, "c": 1}, fault: c.fault}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			rows, dones := int64(0), 0
			var pauses []time.Duration
			k := RetentionPruner{
				Ledger: l, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Now: func() time.Time { return now }, Keep: c.keep,
				First: []PruneFirst{func(context.Context, time.Time) (map[modelgate.ClientID]error, error) {
					l.done = append(l.done, "first")
					return c.spare, c.refuse
				}},
				Pruned: func(n int64) { rows += n },
				Done:   func() { dones++ },
				wait: func(ctx context.Context, d time.Duration) error {
					if d > pruneStep {
						pauses = append(pauses, d)
						stop()
					}
					return ctx.Err()
				},
			}
			k.Run(ctx)
			if !slices.Equal(l.done, c.want) {
				t.Errorf("it did %v, want %v", l.done, c.want)
			}
			well := c.fault == nil && c.refuse == nil && c.spare == nil
			if got := fmt.Sprint(dones == 1, len(pauses) == 1 && pauses[0] >= prunePause/2); got != fmt.Sprint(well, well) {
				t.Errorf("done %d times, pauses %v; all well: %t", dones, pauses, well)
			}
			if want := now.Add(-c.keep); well && c.keep > 0 && (!l.before.Equal(want) || rows != 30) {
				t.Errorf("%d rows from before %v, want 30 from before %v", rows, l.before, want)
			}
		})
	}
}
