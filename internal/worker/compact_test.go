package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"modelgate"
)

// compactionLedger has deltas of clients; those of the bad ones cannot be merged.
type compactionLedger struct {
	deltas map[modelgate.ClientID]int
	bad    map[modelgate.ClientID]bool
	away   error
	done   []string
}

func (l *compactionLedger) DeltaClients(context.Context) ([]modelgate.ClientID, error) {
	return clientsOf(l.deltas), l.away
}

func (l *compactionLedger) CompactRollups(_ context.Context, clients []modelgate.ClientID, most int) (bool, error) {
	l.done = append(l.done, fmt.Sprint(clients, " ", most))
	for _, c := range clients {
		if l.bad[c] {
			return false, errors.New("damaged")
		}
	}
	for _, c := range clients {
		if l.deltas[c] > 0 {
			l.deltas[c]--
			return true, nil
		}
	}
	return false, nil
}

func TestCompactor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		deltas map[modelgate.ClientID]int
		bad    map[modelgate.ClientID]bool
		away   error
		want   []string
		logged string
	}{
		"all":  {deltas: map[modelgate.ClientID]int{"b": 2, "c": 1}, want: []string{"[b c] 400", "[b c] 400", "[b c] 400", "[b c] 400"}},
		"none": {},
		"away": {away: errors.New("no database"), logged: "no database"},
		"one fails": {
			deltas: map[modelgate.ClientID]int{"a": 1, "b": 1, "c": 0}, bad: map[modelgate.ClientID]bool{"b": true},
			want: []string{"[a b] 400", "[a] 400", "[a] 400", "[b] 400"}, logged: "client b: damaged",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &compactionLedger{deltas: c.deltas, bad: c.bad, away: c.away}
			var log strings.Builder
			looks := 0
			f := Compactor{Ledger: l, Log: slog.New(slog.NewTextHandler(&log, nil)), wait: func(_ context.Context, d time.Duration) error {
				looks++
				if least := map[bool]time.Duration{false: compactPause, true: compactRetry}[looks > 1 && c.logged != ""]; d < least/2 {
					t.Errorf("look %d after %v, want at least %v", looks, d, least/2)
				}
				if looks > 1 {
					return context.Canceled
				}
				return nil
			}}
			f.Run(t.Context())
			if !slices.Equal(l.done, c.want) || looks != 2 {
				t.Errorf("it did %v in %d looks, want %v in 2", l.done, looks, c.want)
			}
			if c.logged == "" && log.Len() > 0 || !strings.Contains(log.String(), c.logged) {
				t.Errorf("it logged %q, want %q", log.String(), c.logged)
			}
		})
	}
}
