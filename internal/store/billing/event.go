package billing

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

const sqlExportCounts = `SELECT
  (SELECT COUNT(*) FROM processor_event WHERE client_id = $1 AND status = 'pending'),
  (SELECT COUNT(*) FROM processor_event WHERE client_id = $1 AND status = 'sent' AND sent_at > $2),
  (SELECT COUNT(*) FROM processor_event WHERE client_id = $1 AND status = 'failed'),
  (SELECT COALESCE(MIN(queued_at), 0) FROM processor_event WHERE client_id = $1 AND status = 'pending')
-- sqlExportCounts`

const eventView = `usage_id, client_id, sub_account_id, customer_id, status, attempts, value, created_at, next_attempt_at, sent_at, last_error`

// sqlExportEvents walks the primary key; what is carried is left out of it.
const sqlExportEvents = `SELECT ` + eventView + `
FROM processor_event
WHERE client_id = $1 AND status <> 'carried' AND (created_at, usage_id) < ($3, $4)
ORDER BY created_at DESC, usage_id DESC
LIMIT $2
-- sqlExportEvents`

const sqlExportEventsOf = `SELECT ` + eventView + `
FROM processor_event
WHERE client_id = $1 AND status = $5 AND (created_at, usage_id) < ($3, $4)
ORDER BY created_at DESC, usage_id DESC
LIMIT $2
-- sqlExportEventsOf`

// sqlExportEventsOfAll sorts.
const sqlExportEventsOfAll = `SELECT ` + eventView + `
FROM processor_event
WHERE status <> 'carried' AND ($4 = '' OR status = $4) AND (created_at, usage_id) < ($2, $3)
ORDER BY created_at DESC, usage_id DESC
LIMIT $1
-- sqlExportEventsOfAll`

const sqlExportEvent = `SELECT ` + eventView + `, unsure_at
FROM processor_event
WHERE client_id = $1 AND created_at = $2 AND usage_id = $3
-- sqlExportEvent`

const sqlExportOwner = `SELECT client_id
FROM processor_event
WHERE usage_id = $1 AND created_at = $2
-- sqlExportOwner`

const sqlRequeueEvent = `UPDATE processor_event
SET status = 'pending', attempts = 0, queued_at = $4, next_attempt_at = $4, unsure_at = $5, last_error = ''
WHERE client_id = $1 AND created_at = $2 AND usage_id = $3 AND status = 'failed'
-- sqlRequeueEvent`

const sqlExplainEvent = `UPDATE processor_event
SET last_error = $4
WHERE client_id = $1 AND created_at = $2 AND usage_id = $3 AND status = 'failed'
-- sqlExplainEvent`

const sqlExportBacklog = `SELECT COUNT(*), COALESCE(MIN(queued_at), 0)
FROM processor_event
WHERE status = 'pending'
-- sqlExportBacklog`

// sqlDoubtEvents notes of events that no earlier try is known of that there
// may have been one, as early as can be and with the key of now.
const sqlDoubtEvents = `UPDATE processor_event
SET unsure_at = created_at, generation = COALESCE((
  SELECT c.generation
  FROM processor_config c
  WHERE c.client_id = processor_event.client_id), 0)
WHERE status IN ('pending', 'failed') AND unsure_at = 0
-- sqlDoubtEvents`

// sentWindow is the time that sent events are counted for.
const sentWindow = 24 * time.Hour

// EventCounts are how many events of an organization are in which state.
type EventCounts struct {
	Pending int64 `json:"pending"`
	Sent24h int64 `json:"sent_24h"`
	Failed  int64 `json:"failed"`
}

// EventList is a part of an organization's events.
type EventList struct {
	Counts EventCounts
	// OldestPending is for how long the oldest pending event has been queued,
	// 0 where none is.
	OldestPending time.Duration
	Events        []modelgate.ExportEvent // the newest first
	More          bool                    // others follow
}

// EventPage selects events.
type EventPage struct {
	Status modelgate.ExportStatus // "" for all
	Limit  int                    // 0 for all
	After  *sqldb.Cursor          // nil for the first page
}

func scanEvent(s sqldb.Scanner, more ...any) (modelgate.ExportEvent, error) {
	var e modelgate.ExportEvent
	err := s.Scan(append([]any{&e.UsageID, &e.ClientID, &e.SubAccountID, &e.CustomerID, &e.Status, &e.Attempts, &e.Value,
		sqldb.Moment{Into: &e.CreatedAt}, sqldb.Moment{Into: &e.NextAttemptAt}, sqldb.Moment{Into: &e.SentAt}, &e.LastError}, more...)...)
	return e, err
}

// ExportEvents lists an organization's events, and counts all of them.
func (s *Store) ExportEvents(ctx context.Context, client modelgate.ClientID, p EventPage) (EventList, error) {
	var l EventList
	err := s.db.Snapshot(ctx, "list billing events", func(tx *sql.Tx) error {
		var oldest int64
		now := s.db.Now()
		err := tx.QueryRowContext(ctx, sqlExportCounts, client, sqldb.Micros(now.Add(-sentWindow))).Scan(
			&l.Counts.Pending, &l.Counts.Sent24h, &l.Counts.Failed, &oldest)
		if err != nil {
			return err
		}
		l.OldestPending = age(now, oldest)
		at, id := p.After.Bound()
		query, args := sqlExportEvents, []any{client, sqldb.Fetch(p.Limit), at, id}
		if p.Status != "" {
			query, args = sqlExportEventsOf, append(args, string(p.Status))
		}
		events, err := sqldb.List(ctx, tx, func(row sqldb.Scanner) (modelgate.ExportEvent, error) { return scanEvent(row) }, query, args...)
		l.Events, l.More = sqldb.Page(events, p.Limit)
		return err
	})
	return l, err
}

// EventsOfAll lists the events of all organizations, the newest first, and reports
// whether more follow.
func (s *Store) EventsOfAll(ctx context.Context, p EventPage) ([]modelgate.ExportEvent, bool, error) {
	at, id := p.After.Bound()
	events, err := sqldb.List(ctx, s.db.Read, func(row sqldb.Scanner) (modelgate.ExportEvent, error) { return scanEvent(row) },
		sqlExportEventsOfAll, sqldb.Fetch(p.Limit), at, id, string(p.Status))
	events, more := sqldb.Page(events, p.Limit)
	return events, more, sqldb.Wrap("list billing events", err)
}

// age is how long ago an instant is, 0 for none.
func age(now time.Time, us int64) time.Duration {
	if us == 0 {
		return 0
	}
	return max(now.Sub(sqldb.Instant(us)), 0)
}

// ExportBacklog is how many events of all organizations are pending, and for
// how long the oldest of them has been.
func (s *Store) ExportBacklog(ctx context.Context) (pending int64, oldest time.Duration, err error) {
	var since int64
	err = s.db.Read.QueryRowContext(ctx, sqlExportBacklog).Scan(&pending, &since)
	return pending, age(s.db.Now(), since), sqldb.Wrap("read export backlog", err)
}

// RetryEvent queues a failed event again, its attempts at 0. One that may
// have been counted and whose identifier the processor has forgotten by now
// stays failed and says so: sent again it could be billed twice. Errors:
// not_found for an event that is not the organization's or has not failed.
func (s *Store) RetryEvent(ctx context.Context, client modelgate.ClientID, id modelgate.UUID, a modelgate.Audit) error {
	return s.requeue(ctx, client, id, a, func(unsure time.Time, now time.Time) (time.Time, bool) {
		return unsure, !forgotten(unsure, now)
	})
}

// ResendEvent queues a failed event again. With accept it does so whatever became of
// its earlier tries: the operator has looked at the processor and answers for it.
// Errors: not_found; without accept conflict for an event that may have been counted
// and whose identifier the processor has forgotten by now.
func (s *Store) ResendEvent(ctx context.Context, id modelgate.UUID, accept bool, a modelgate.Audit) error {
	var client modelgate.ClientID
	err := s.db.Read.QueryRowContext(ctx, sqlExportOwner, id.String(), sqldb.Micros(id.Time())).Scan(&client)
	if err != nil {
		return sqldb.Wrap("find billing event", sqldb.Missing(err, "billing event"))
	}
	ambiguous := false
	err = s.requeue(ctx, client, id, a, func(unsure, now time.Time) (time.Time, bool) {
		if accept {
			return time.Time{}, true
		}
		ambiguous = forgotten(unsure, now)
		return unsure, !ambiguous
	})
	if err == nil && ambiguous {
		return modelgate.Errorf(modelgate.Conflict, "the event may have been counted already; look at the processor, then accept that it may be billed twice")
	}
	return err
}

// DoubtEvents takes every event that is not sent for one that may have been
// counted since its call was made, and returns how many did not say so before.
// It is for a database that was restored: what was sent after its backup is
// forgotten there, also of calls that a spool has booked once more.
func (s *Store) DoubtEvents(ctx context.Context, a modelgate.Audit) (int64, error) {
	var doubted int64
	err := s.db.Update(ctx, "doubt billing events", func(tx *sql.Tx) error {
		r, err := tx.ExecContext(ctx, sqlDoubtEvents)
		if err != nil {
			return err
		}
		if doubted, err = r.RowsAffected(); err != nil {
			return err
		}
		return s.record(ctx, tx, "", a)
	})
	return doubted, err
}

// requeue queues a failed event again. judge says since when it is unsure from
// here on, and whether it may be sent.
func (s *Store) requeue(ctx context.Context, client modelgate.ClientID, id modelgate.UUID, a modelgate.Audit, judge func(unsure, now time.Time) (time.Time, bool)) error {
	at, text := sqldb.Micros(id.Time()), id.String()
	return s.db.Update(ctx, "queue billing event again", func(tx *sql.Tx) error {
		var unsure time.Time
		row := tx.QueryRowContext(ctx, sqlExportEvent, client, at, text)
		e, err := scanEvent(row, sqldb.Moment{Into: &unsure})
		if errors.Is(err, sql.ErrNoRows) || err == nil && e.Status != modelgate.ExportFailed {
			return modelgate.Errorf(modelgate.NotFound, "no failed billing event of that id")
		}
		if err != nil {
			return err
		}
		now := s.db.Now()
		unsure, may := judge(unsure, now)
		if !may {
			if _, err := tx.ExecContext(ctx, sqlExplainEvent, client, at, text, ReasonAmbiguous); err != nil {
				return err
			}
			return s.record(ctx, tx, client, a)
		}
		// The queue first, as whoever sends takes it.
		if _, err := tx.ExecContext(ctx, sqlWakeQueue, client, e.CustomerID, sqldb.Micros(now)); err != nil {
			return err
		}
		r, err := tx.ExecContext(ctx, sqlRequeueEvent, client, at, text, sqldb.Micros(now), sqldb.Micros(unsure))
		if err != nil {
			return err
		}
		if err := sqldb.OneRow(r, "failed billing event"); err != nil {
			return err // another request was faster
		}
		return s.record(ctx, tx, client, a)
	})
}
