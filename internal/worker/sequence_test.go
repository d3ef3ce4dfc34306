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

// chainLedger has batches of one record for each client; those of the bad ones
// cannot be chained.
type chainLedger struct {
	waits map[modelgate.ClientID]int
	bad   map[modelgate.ClientID]bool
	held  bool // another instance has the lease
	away  error
	since time.Time
	done  []string
}

func (l *chainLedger) EvidenceBacklog(context.Context) (time.Time, error) {
	if len(clientsOf(l.waits)) == 0 {
		return time.Time{}, l.away
	}
	return l.since, l.away
}

func (l *chainLedger) LeaseEvidence(_ context.Context, instance string, _ time.Duration) (bool, error) {
	l.done = append(l.done, "lease "+instance)
	return !l.held, nil
}

func (l *chainLedger) EvidenceWaiting(context.Context) ([]modelgate.ClientID, error) {
	return clientsOf(l.waits), nil
}

func (l *chainLedger) ChainEvidence(_ context.Context, client modelgate.ClientID) (records int, more bool, err error) {
	l.done = append(l.done, fmt.Sprintf("chain %q", client))
	clients := clientsOf(l.waits)
	if client != "" {
		clients = []modelgate.ClientID{client}
	}
	if slices.ContainsFunc(clients, func(c modelgate.ClientID) bool { return l.bad[c] }) {
		return 0, false, errors.New("damaged")
	}
	for _, c := range clients {
		if l.waits[c] > 0 {
			l.waits[c]--
			return 1, true, nil
		}
	}
	return 0, false, nil
}

func TestSequencer(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		ledger chainLedger
		want   []string
		stats  SequencerStats
		fails  string
	}{
		"nothing": {},
		"all": {
			ledger: chainLedger{waits: map[modelgate.ClientID]int{"a": 1, "b": 1}},
			want:   []string{"lease i", `chain ""`, `chain ""`},
			stats:  SequencerStats{Records: 2},
		},
		"another's turn": {
			ledger: chainLedger{waits: map[modelgate.ClientID]int{"a": 1}, held: true},
			want:   []string{"lease i"},
			stats:  SequencerStats{Lag: 3 * time.Second},
		},
		"no database": {
			ledger: chainLedger{away: errors.New("no database")},
			fails:  "no database",
		},
		"one is damaged": {
			ledger: chainLedger{waits: map[modelgate.ClientID]int{"a": 1, "b": 1, "c": 2}, bad: map[modelgate.ClientID]bool{"b": true}},
			want:   []string{"lease i", `chain ""`, `chain "a"`, `chain "a"`, `chain "b"`, `chain "c"`, `chain "c"`, `chain "c"`},
			stats:  SequencerStats{Records: 3, Lag: 3 * time.Second},
			fails:  "client b: damaged",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := c.ledger
			l.since = now.Add(-3 * time.Second)
			var log strings.Builder
			s := Sequencer{Ledger: &l, Instance: "i", Now: func() time.Time { return now }, Log: slog.New(slog.NewTextHandler(&log, nil))}
			err := s.pass(t.Context())
			if c.fails == "" && err != nil || c.fails != "" && (err == nil || err.Error() != c.fails) {
				t.Errorf("pass = %v, want %q", err, c.fails)
			}
			if !slices.Equal(l.done, c.want) || s.Stats() != c.stats {
				t.Errorf("it did %q, %+v; want %q, %+v", l.done, s.Stats(), c.want, c.stats)
			}
			again := loop{log: s.Log, trouble: "records of evidence wait"}
			for range 2 {
				again.report(t.Context(), err)
			}
			if strings.Count(log.String(), "records of evidence wait") != map[bool]int{true: 1}[c.fails != ""] {
				t.Errorf("it logged %q", log.String())
			}
		})
	}
}
