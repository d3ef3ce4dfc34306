package billing

import (
	"context"
	"database/sql"
	"time"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

const sqlQueuesDue = `SELECT EXISTS (
  SELECT 1
  FROM processor_queue
  WHERE next_at <= $1 AND claimed_until <= $1)
-- sqlQueuesDue`

const sqlClaimQueues = `UPDATE processor_queue
SET claimed_until = $2, holder = $3
WHERE next_at <= $1 AND claimed_until <= $1
  AND (client_id, customer_id) IN (
    SELECT client_id, customer_id
    FROM processor_queue
    WHERE next_at <= $1 AND claimed_until <= $1
    ORDER BY next_at
    LIMIT $4)
RETURNING client_id, customer_id
-- sqlClaimQueues`

const sqlFreeQueues = `UPDATE processor_queue
SET claimed_until = 0
WHERE holder = $1 AND claimed_until > 0
-- sqlFreeQueues`

// sqlLockQueue keeps whoever queues for a queue out until it has been looked
// through, and finds out whether it is still the holder's.
const sqlLockQueue = `UPDATE processor_queue
SET holder = holder
WHERE client_id = $1 AND customer_id = $2 AND holder = $3 AND claimed_until = $4
-- sqlLockQueue`

const sqlNextInQueue = `SELECT COALESCE(MIN(next_attempt_at), $3)
FROM processor_event
WHERE client_id = $1 AND customer_id = $2 AND status = 'pending'
-- sqlNextInQueue`

const sqlFreeQueue = `UPDATE processor_queue
SET claimed_until = 0, next_at = $3
WHERE client_id = $1 AND customer_id = $2
-- sqlFreeQueue`

// sqlPendingEvents walks processor_event_pending.
const sqlPendingEvents = `SELECT usage_id, sub_account_id, value, created_at, attempts, unsure_at, generation
FROM processor_event
WHERE client_id = $1 AND customer_id = $2 AND status = 'pending' AND next_attempt_at <= $3
ORDER BY next_attempt_at
LIMIT $4
-- sqlPendingEvents`

const sqlTryEvent = `UPDATE processor_event
SET attempts = attempts + 1, unsure_at = CASE WHEN unsure_at = 0 THEN $4 ELSE unsure_at END, generation = $5
WHERE client_id = $1 AND created_at = $2 AND usage_id = $3 AND status = 'pending'
-- sqlTryEvent`

// eventTries is sqlTryEvent for a number of events. The first tuple says what
// type the others have.
func eventTries(events int) string {
	if events == 1 {
		return sqlTryEvent
	}
	return sqldb.Tuples(`UPDATE processor_event
SET attempts = attempts + 1, unsure_at = CASE WHEN unsure_at = 0 THEN k.column4 ELSE unsure_at END, generation = k.column5
FROM (VALUES (CAST($1 AS TEXT), CAST($2 AS BIGINT), CAST($3 AS TEXT), CAST($4 AS BIGINT), CAST($5 AS BIGINT)), `, events-1, 5, 6) + `) AS k
WHERE client_id = k.column1 AND created_at = k.column2 AND usage_id = k.column3 AND status = 'pending'
-- eventTries`
}

// sqlSettleEvent leaves an event alone that is no longer pending: somebody
// else has settled it.
const sqlSettleEvent = `UPDATE processor_event
SET status = $4, attempts = $5, unsure_at = $6, next_attempt_at = $7, sent_at = $8, last_error = $9
WHERE client_id = $1 AND created_at = $2 AND usage_id = $3 AND status = 'pending'
-- sqlSettleEvent`

// eventSettlements is sqlSettleEvent for a number of events.
func eventSettlements(events int) string {
	if events == 1 {
		return sqlSettleEvent
	}
	return sqldb.Tuples(`UPDATE processor_event
SET status = k.column4, attempts = k.column5, unsure_at = k.column6, next_attempt_at = k.column7, sent_at = k.column8, last_error = k.column9
FROM (VALUES (CAST($1 AS TEXT), CAST($2 AS BIGINT), CAST($3 AS TEXT), CAST($4 AS TEXT), CAST($5 AS BIGINT), CAST($6 AS BIGINT), CAST($7 AS BIGINT),
  CAST($8 AS BIGINT), CAST($9 AS TEXT)), `, events-1, 9, 10) + `) AS k
WHERE client_id = k.column1 AND created_at = k.column2 AND usage_id = k.column3 AND status = 'pending'
-- eventSettlements`
}

// Queue is a customer of an organization's processor, claimed by one instance:
// as long as it is, nobody else sends to that customer.
type Queue struct {
	ClientID   modelgate.ClientID
	CustomerID string
	Holder     string
	Until      time.Time // when the claim ends by itself
}

// FreeQueues gives up what an earlier life of an instance has claimed.
func (s *Store) FreeQueues(ctx context.Context, holder string) error {
	_, err := s.db.Write.ExecContext(ctx, sqlFreeQueues, holder)
	return sqldb.Wrap("free queues", err)
}

// ClaimQueues takes queues in which something is due, those that have waited
// longest first.
func (s *Store) ClaimQueues(ctx context.Context, holder string, most int, lease time.Duration) ([]Queue, error) {
	now := s.db.Now()
	until := sqldb.Stored(now.Add(lease))
	var due bool
	if err := s.db.Read.QueryRowContext(ctx, sqlQueuesDue, sqldb.Micros(now)).Scan(&due); err != nil || !due {
		return nil, sqldb.Wrap("look for queues", err)
	}
	var queues []Queue
	err := s.db.Update(ctx, "claim queues", func(tx *sql.Tx) (err error) {
		queues, err = sqldb.List(ctx, tx, func(row sqldb.Scanner) (Queue, error) {
			l := Queue{Holder: holder, Until: until}
			err := row.Scan(&l.ClientID, &l.CustomerID)
			return l, err
		}, sqlClaimQueues, sqldb.Micros(now), sqldb.Micros(until), holder, most)
		return err
	})
	return queues, err
}

// Sending is an event that is about to be sent.
type Sending struct {
	UsageID      modelgate.UsageID
	SubAccountID modelgate.SubAccountID
	Value        modelgate.Micro
	CreatedAt    time.Time
	// Attempts counts this try too.
	Attempts int
	// UnsureAt is when the first try was made whose outcome is unknown, zero
	// where there was none before this one.
	UnsureAt time.Time
}

// Settled is what became of a try.
type Settled struct {
	Sending
	// Status is the event's new one; a pending one is sent again.
	Status modelgate.ExportStatus
	// At is when it was sent, or when a pending one is tried again.
	At        time.Time
	LastError string // "" for none; never holds a secret
}

// The reasons for which an event fails without another try.
const (
	ReasonAmbiguous = "ambiguous: a try without an answer is too long ago to be made again safely"
	ReasonOtherKey  = "ambiguous: a try without an answer was made with another key"
	ReasonExpired   = "expired: the call is too old for the processor"
)

// BeginSending takes the events of a queue that are due, at most so many, and
// notes that they are being tried with the key of this generation, before any
// of them is sent: whatever happens from here on, an event that may have
// reached the processor says so. Those that must not be sent any more have
// failed with that; their number comes second.
func (s *Store) BeginSending(ctx context.Context, l Queue, generation int64, most int) (out []Sending, failed int, err error) {
	err = s.db.Update(ctx, "begin sending", func(tx *sql.Tx) error {
		out, failed = nil, 0
		if held, err := lockQueue(ctx, tx, l); err != nil || !held {
			return err
		}
		now := s.db.Now()
		due, err := sqldb.List(ctx, tx, scanSending, sqlPendingEvents, l.ClientID, l.CustomerID, sqldb.Micros(now), most)
		if err != nil {
			return err
		}
		var refused []Settled
		for _, d := range due {
			if reason := d.refuse(now, generation); reason != "" {
				refused = append(refused, Settled{Sending: d.Sending, Status: modelgate.ExportFailed, LastError: reason})
				continue
			}
			d.Attempts++
			out = append(out, d.Sending)
		}
		failed = len(refused)
		err = s.db.Batch(ctx, tx, sqldb.BatchExec{Text: eventTries, N: len(out), Args: func(dst []any, i int) []any {
			return append(dst, l.ClientID, sqldb.Micros(out[i].CreatedAt), string(out[i].UsageID), sqldb.Micros(now), generation)
		}})
		if err != nil {
			return err
		}
		return s.settleEvents(ctx, tx, l, refused)
	})
	return out, failed, err
}

// dueEvent is a pending event with the generation of its last try.
type dueEvent struct {
	Sending
	generation int64
}

func scanSending(s sqldb.Scanner) (dueEvent, error) {
	var d dueEvent
	err := s.Scan(&d.UsageID, &d.SubAccountID, &d.Value, sqldb.Moment{Into: &d.CreatedAt}, &d.Attempts, sqldb.Moment{Into: &d.UnsureAt}, &d.generation)
	return d, err
}

// refuse is why an event must not be sent any more, "" where it may.
func (d *dueEvent) refuse(now time.Time, generation int64) string {
	switch {
	case forgotten(d.UnsureAt, now):
		return ReasonAmbiguous
	case !d.UnsureAt.IsZero() && d.generation != generation:
		return ReasonOtherKey // maybe another account, which would count it again
	case now.Sub(d.CreatedAt) >= modelgate.ExportLife:
		return ReasonExpired
	}
	return ""
}

// forgotten reports whether the processor may have forgotten a try of unknown
// outcome, zero for none. One that is yet to come was noted by a clock that was
// ahead, and nobody knows how long ago it was.
func forgotten(unsure, now time.Time) bool {
	age := now.Sub(unsure)
	return !unsure.IsZero() && (age >= modelgate.ExportUnsure || age < -ClockSlack)
}

// FinishSending notes what became of tries and frees the queue, in which
// nothing is due before the given instant. Of a claim that was lost only what
// was sent is noted: whoever has the queue now may be trying the rest, and what
// this claim knows of them must not hide that they may be counted.
func (s *Store) FinishSending(ctx context.Context, l Queue, settled []Settled, rest time.Time) error {
	return s.db.Update(ctx, "finish sending", func(tx *sql.Tx) error {
		// First, and in a statement of its own: what was queued meanwhile is
		// seen by the ones that follow.
		held, err := lockQueue(ctx, tx, l)
		if err != nil {
			return err
		}
		if !held {
			return s.settleEvents(ctx, tx, l, sentOf(settled))
		}
		if err := s.settleEvents(ctx, tx, l, settled); err != nil {
			return err
		}
		var next int64
		if err := tx.QueryRowContext(ctx, sqlNextInQueue, l.ClientID, l.CustomerID, int64(sqldb.Never)).Scan(&next); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, sqlFreeQueue, l.ClientID, l.CustomerID, max(next, sqldb.Micros(rest)))
		return err
	})
}

func sentOf(settled []Settled) (sent []Settled) {
	for _, s := range settled {
		if s.Status == modelgate.ExportSent {
			sent = append(sent, s)
		}
	}
	return sent
}

// lockQueue locks a queue and reports whether the claim still stands.
func lockQueue(ctx context.Context, tx *sql.Tx, l Queue) (bool, error) {
	r, err := tx.ExecContext(ctx, sqlLockQueue, l.ClientID, l.CustomerID, l.Holder, sqldb.Micros(l.Until))
	if err != nil {
		return false, err
	}
	n, err := r.RowsAffected()
	return n > 0, err
}

func (s *Store) settleEvents(ctx context.Context, tx *sql.Tx, l Queue, settled []Settled) error {
	return s.db.Batch(ctx, tx, sqldb.BatchExec{Text: eventSettlements, N: len(settled), Args: func(dst []any, i int) []any {
		s := &settled[i]
		var next, sent int64
		switch s.Status {
		case modelgate.ExportPending:
			next = sqldb.Micros(s.At)
		case modelgate.ExportSent:
			sent = sqldb.Micros(s.At)
		}
		return append(dst, l.ClientID, sqldb.Micros(s.CreatedAt), string(s.UsageID), string(s.Status), s.Attempts, sqldb.Micros(s.UnsureAt), next, sent, sqldb.Clean(s.LastError))
	}})
}
