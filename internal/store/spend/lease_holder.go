package spend

import (
	"context"
	"database/sql"
	"sync"
	"time"

	"modelgate/internal/store/sqldb"
)

// SliceLife is how long a slice outlives the last sign of life of its
// instance. A call is shorter than that, so that what an instance still has
// under way is never given to another.
//
// Clocks of instances may be apart by any amount, so no instant is written
// down for others to judge. An instance raises a number; another that has seen
// the number unchanged for SliceLife, by its own monotonic clock, knows that
// the last sign of life is at least as old. What it has seen it notes, so that
// one that restarts goes on from there.
const SliceLife = time.Hour

// noteSilence is how long an instance must have been silent for others to
// write that down: more than between two signs of life.
const noteSilence = SliceLife / 4

// sqlRenewSlices raises the number. It is 1 where the instance's slices were
// freed since the last time, or never were any.
const sqlRenewSlices = `INSERT INTO slice_holder (instance, beat, silent)
VALUES ($1, 1, 0)
ON CONFLICT (instance) DO UPDATE
SET beat = CASE WHEN slice_holder.beat < 1 THEN 1 ELSE slice_holder.beat + 1 END, silent = 0
RETURNING beat
-- sqlRenewSlices`

// sqlHolders lists the instances, those too of which only slices are there: an
// answer came after its instance was given up.
const sqlHolders = `SELECT instance, beat, silent
FROM slice_holder
UNION ALL
SELECT DISTINCT s.instance, CAST(0 AS BIGINT), CAST(0 AS BIGINT)
FROM slice s
WHERE NOT EXISTS (
    SELECT 1
    FROM slice_holder h
    WHERE h.instance = s.instance)
-- sqlHolders`

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

// watch is what this process has seen of other instances. The zero value is
// ready.
type watch struct {
	mu   sync.Mutex
	seen map[string]sighting
}

// sighting is a number of an instance.
type sighting struct {
	beat int64
	at   time.Time // when this process first saw it
	// before is how long others had seen it by then.
	before time.Duration
}

// holder is an instance as the database has it.
type holder struct {
	instance string
	beat     int64
	silent   time.Duration // as far as it was noted
}

// look notes which numbers are there and returns for how long each instance has
// surely been silent.
func (w *watch) look(holders []holder, now time.Time) []time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen, silence := make(map[string]sighting, len(holders)), make([]time.Duration, len(holders))
	for i, h := range holders {
		s, known := w.seen[h.instance]
		if !known || s.beat != h.beat {
			s = sighting{h.beat, now, h.silent}
		}
		seen[h.instance] = s
		silence[i] = max(s.before+now.Sub(s.at), h.silent)
	}
	w.seen = seen
	return silence
}

// RenewSlices says that an instance lives: it keeps what it holds for another
// SliceLife. It reports whether the instance had kept it until now.
func (s *Store) RenewSlices(ctx context.Context, instance string) (kept bool, err error) {
	var beat int64
	err = s.db.Write.QueryRowContext(ctx, sqlRenewSlices, instance).Scan(&beat)
	return beat > 1, sqldb.Wrap("renew slices", err)
}

// EndExpiredSlices frees what instances hold that this process knows to have
// been silent for SliceLife. It is called every now and then, and learns from
// each time.
func (s *Store) EndExpiredSlices(ctx context.Context) error {
	holders, err := sqldb.List(ctx, s.db.Read, func(s sqldb.Scanner) (holder, error) {
		var h holder
		var silent int64
		err := s.Scan(&h.instance, &h.beat, &silent)
		h.silent = time.Duration(silent) * time.Microsecond
		return h, err
	}, sqlHolders)
	if err != nil {
		return sqldb.Wrap("list holders of slices", err)
	}
	for i, silence := range s.watch.look(holders, s.db.Now()) {
		h := &holders[i]
		switch {
		case silence >= SliceLife || h.beat == -1:
			err = s.giveUp(ctx, h)
		case silence >= noteSilence && h.beat > 0:
			_, err = s.db.Write.ExecContext(ctx, sqlNoteSilence, h.instance, h.beat, silence.Microseconds())
		}
		if err != nil {
			return sqldb.Wrap("end expired slices", err)
		}
	}
	return nil
}

// giveUp frees what a silent instance holds, unless it shows itself meanwhile.
func (s *Store) giveUp(ctx context.Context, h *holder) error {
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
	if err := s.endSlices(ctx, "end expired slices", h.instance, alive); err != nil || lives {
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
