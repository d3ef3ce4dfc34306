package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"modelgate"
	"modelgate/internal/store"
)

const (
	// sequencePause is between two looks for records that are in no chain, and
	// sequenceLease for how long one instance keeps the others from looking.
	sequencePause = 500 * time.Millisecond
	sequenceLease = 10 * time.Second
	// sequenceTimeout bounds one call of the ledger.
	sequenceTimeout = 30 * time.Second
)

// EvidenceLedger is where records and their chains are; *store.DB is one.
type EvidenceLedger interface {
	EvidenceBacklog(context.Context) (oldest time.Time, err error)
	LeaseEvidence(ctx context.Context, instance string, d time.Duration) (bool, error)
	ChainEvidence(ctx context.Context, client modelgate.ClientID) (records int, more bool, err error)
	EvidenceWaiting(context.Context) ([]modelgate.ClientID, error)
}

// Sequencer takes the records of evidence into their chains. Of several
// instances one does it at a time; when that one dies, another goes on.
type Sequencer struct {
	Ledger   EvidenceLedger
	Instance string
	Now      func() time.Time
	Log      *slog.Logger

	leased  time.Time    // until when this instance is the one
	oldest  atomic.Int64 // unix milliseconds of the oldest record that waits; 0 for none
	records atomic.Int64
}

// SequencerStats are figures of the moment.
type SequencerStats struct {
	Records int64         // chained by this process
	Lag     time.Duration // age of the oldest record that is in no chain, of any instance
}

// Stats are the sequencer's figures. Safe for concurrent use.
func (s *Sequencer) Stats() SequencerStats {
	st := SequencerStats{Records: s.records.Load()}
	if oldest := s.oldest.Load(); oldest != 0 {
		st.Lag = max(0, s.Now().Sub(time.UnixMilli(oldest)))
	}
	return st
}

// Run chains until the context ends.
func (s *Sequencer) Run(ctx context.Context) {
	l := loop{first: sequencePause, pause: sequencePause, log: s.Log, trouble: "records of evidence wait"}
	l.run(ctx, s.pass)
}

// pass chains all that is there, if it is this instance's turn. Where nothing
// waits it only reads.
func (s *Sequencer) pass(ctx context.Context) error {
	for more := true; more; {
		oldest, err := s.backlog(ctx)
		if err != nil {
			return err
		}
		if oldest.IsZero() {
			s.oldest.Store(0)
			return nil
		}
		s.oldest.Store(oldest.UnixMilli())
		if mine, err := s.lease(ctx); err != nil || !mine {
			return err
		}
		if more, err = s.chain(ctx, ""); err != nil {
			return s.singly(ctx, err)
		}
	}
	s.oldest.Store(0)
	return nil
}

// singly chains client by client what together could not be chained: one whose
// records are damaged keeps none of the others waiting.
func (s *Sequencer) singly(ctx context.Context, together error) error {
	if ctx.Err() != nil || store.Unreachable(together) {
		return together
	}
	clients, err := s.waiting(ctx)
	if err != nil {
		return err
	}
	var failed []error
	for _, client := range clients {
		for more := true; more; {
			if mine, err := s.lease(ctx); err != nil || !mine {
				return errors.Join(append(failed, err)...)
			}
			if more, err = s.chain(ctx, client); err != nil {
				failed = append(failed, fmt.Errorf("client %s: %w", client, err))
				if ctx.Err() != nil || store.Unreachable(err) {
					return errors.Join(failed...)
				}
			}
		}
	}
	return errors.Join(failed...)
}

func (s *Sequencer) backlog(ctx context.Context) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, sequenceTimeout)
	defer cancel()
	return s.Ledger.EvidenceBacklog(ctx)
}

func (s *Sequencer) waiting(ctx context.Context) ([]modelgate.ClientID, error) {
	ctx, cancel := context.WithTimeout(ctx, sequenceTimeout)
	defer cancel()
	return s.Ledger.EvidenceWaiting(ctx)
}

// chain is one step, of one client or with "" of all.
func (s *Sequencer) chain(ctx context.Context, client modelgate.ClientID) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, sequenceTimeout)
	defer cancel()
	n, more, err := s.Ledger.ChainEvidence(ctx, client)
	s.records.Add(int64(n))
	return more && err == nil, err
}

// lease renews the turn when half of it is over.
func (s *Sequencer) lease(ctx context.Context) (bool, error) {
	now := s.Now()
	if now.Add(sequenceLease / 2).Before(s.leased) {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(ctx, sequenceTimeout)
	defer cancel()
	mine, err := s.Ledger.LeaseEvidence(ctx, s.Instance, sequenceLease)
	s.leased = time.Time{}
	if mine {
		s.leased = now.Add(sequenceLease)
	}
	return mine, err
}
