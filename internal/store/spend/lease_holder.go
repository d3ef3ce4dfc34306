package spend

import (
	"context"
	"database/sql"
	"sync"
	"time"

	"modelgate/internal/store/sqldb"
)

// LeaseLife is how long a lease outlives the last sign of life of its
// instance. A call is shorter than that, so that what an instance still has
// under way is never given to another.
//
// Clocks of instances may be apart by any amount, so no instant is written
// down for others to judge. An instance raises a number; another that has seen
// the number unchanged for LeaseLife, by its own monotonic clock, knows that
// the last sign of life is at least as old. What it has seen it notes, so that
// one that restarts goes on from there.
const LeaseLife = time.Hour

// noteSilence is how long an instance must have been silent for others to
// write that down: more than between two signs of life.
const noteSilence = LeaseLife / 4

// sqlRenewLeases raises the number. It is 1 where the instance's leases were
// freed since the last time, or never were any.
const sqlRenewLeases = `INSERT INTO slice_holder (instance, beat, silent)
VALUES ($1, 1, 0)
ON CONFLICT (instance) DO UPDATE
SET beat = CASE WHEN slice_holder.beat < 1 THEN 1 ELSE slice_holder.beat + 1 END, silent = 0
RETURNING beat
-- sqlRenewLeases`

// sqlLeaseHolders lists the instances, those too of which only leases are there: an
// answer came after its instance was given up.
const sqlLeaseHolders = `SELECT instance, beat, silent
FROM slice_holder
UNION ALL
SELECT DISTINCT s.instance, CAST(0 AS BIGINT), CAST(0 AS BIGINT)
FROM slice s
WHERE NOT EXISTS (
    SELECT 1
    FROM slice_holder h
    WHERE h.instance = s.instance)
-- sqlLeaseHolders`

const sqlNoteSilence = `UPDATE slice_holder
SET silent = $3
WHERE instance = $1 AND beat = $2 AND silent < $3
-- sqlNoteSilence`

// sqlGiveUpHolder holds the row of an instance that is still as silent as it
// was seen, until the transaction ends, and lets it find out.
const sqlGiveUpHolder = `INSERT INTO slice_holder (instance, beat, silent)
VALUES ($1, -1, 0)
ON CONFLICT (instance) DO UPDATE
SET beat = -1
WHERE slice_holder.beat = $2 OR slice_holder.beat = -1
-- sqlGiveUpHolder`

const sqlForgetHolder = `DELETE FROM slice_holder
WHERE instance = $1 AND beat = -1
-- sqlForgetHolder`

// heartbeats is what this process has seen of other instances. The zero value is
// ready.
type heartbeats struct {
	mu   sync.Mutex
	seen map[string]heartbeat
}

// heartbeat is a number of an instance.
type heartbeat struct {
	beat int64
	at   time.Time // when this process first saw it
	// before is how long others had seen it by then.
	before time.Duration
}

// leaseHolder is an instance as the database has it.
type leaseHolder struct {
	instance string
	beat     int64
	silent   time.Duration // as far as it was noted
}

// silence notes which numbers are there and returns for how long each instance has
// surely been silent.
func (h *heartbeats) silence(holders []leaseHolder, now time.Time) []time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	seen, silent := make(map[string]heartbeat, len(holders)), make([]time.Duration, len(holders))
	for i, l := range holders {
		s, known := h.seen[l.instance]
		if !known || s.beat != l.beat {
			s = heartbeat{l.beat, now, l.silent}
		}
		seen[l.instance] = s
		silent[i] = max(s.before+now.Sub(s.at), l.silent)
	}
	h.seen = seen
	return silent
}

// RenewLeases says that an instance lives: it keeps what it holds for another
// LeaseLife. It reports whether the instance had kept it until now.
func (s *Store) RenewLeases(ctx context.Context, instance string) (kept bool, err error) {
	var beat int64
	err = s.db.Write.QueryRowContext(ctx, sqlRenewLeases, instance).Scan(&beat)
	return beat > 1, sqldb.Wrap("renew leases", err)
}

// EndExpiredLeases frees what instances hold that this process knows to have
// been silent for LeaseLife. It is called every now and then, and learns from
// each time.
func (s *Store) EndExpiredLeases(ctx context.Context) error {
	holders, err := sqldb.List(ctx, s.db.Read, func(s sqldb.Scanner) (leaseHolder, error) {
		var h leaseHolder
		var silent int64
		err := s.Scan(&h.instance, &h.beat, &silent)
		h.silent = time.Duration(silent) * time.Microsecond
		return h, err
	}, sqlLeaseHolders)
	if err != nil {
		return sqldb.Wrap("list holders of leases", err)
	}
	for i, silent := range s.heartbeats.silence(holders, s.db.Now()) {
		h := &holders[i]
		switch {
		case silent >= LeaseLife || h.beat == -1:
			err = s.giveUp(ctx, h)
		case silent >= noteSilence && h.beat > 0:
			_, err = s.db.Write.ExecContext(ctx, sqlNoteSilence, h.instance, h.beat, silent.Microseconds())
		}
		if err != nil {
			return sqldb.Wrap("end expired leases", err)
		}
	}
	return nil
}

// giveUp frees what a silent instance holds, unless it shows itself meanwhile.
func (s *Store) giveUp(ctx context.Context, h *leaseHolder) error {
	lives := false
	alive := func(tx *sql.Tx) (bool, error) {
		r, err := tx.ExecContext(ctx, sqlGiveUpHolder, h.instance, h.beat)
		if err != nil {
			return false, err
		}
		n, err := r.RowsAffected()
		lives = n == 0
		return lives, err
	}
	if err := s.endLeases(ctx, "end expired leases", h.instance, alive); err != nil || lives {
		return err
	}
	return s.db.Update(ctx, "forget a holder", func(tx *sql.Tx) error {
		if lives, err := alive(tx); err != nil || lives {
			return err
		}
		_, err := tx.ExecContext(ctx, sqlForgetHolder, h.instance)
		return err
	})
}
