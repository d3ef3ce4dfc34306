package billing

import (
	"context"
	"database/sql"
	"encoding/json"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

// ambiguous holds for an event of which a try may have been counted and whose
// identifier the processor may have forgotten by now; see forgotten.
const ambiguous = `unsure_at <> 0 AND (unsure_at <= $2 OR unsure_at > $3)`

const sqlExplainEvents = `UPDATE processor_event
SET last_error = $4
WHERE client_id = $1 AND status = 'failed' AND ` + ambiguous + `
-- sqlExplainEvents`

// sqlWakeQueues is sqlWakeQueue for every queue in which an event is queued
// again, in the one order in which queues are taken together.
const sqlWakeQueues = `INSERT INTO processor_queue (client_id, customer_id, next_at, claimed_until, holder)
SELECT DISTINCT client_id, customer_id, CAST($4 AS BIGINT), 0, ''
FROM processor_event
WHERE client_id = $1 AND status = 'failed' AND NOT (` + ambiguous + `)
ORDER BY customer_id
` + earlier + `
-- sqlWakeQueues`

const sqlRequeueEvents = `UPDATE processor_event
SET status = 'pending', attempts = 0, queued_at = $4, next_attempt_at = $4, last_error = ''
WHERE client_id = $1 AND status = 'failed' AND NOT (` + ambiguous + `)
-- sqlRequeueEvents`

// RetriedEvents says what became of an organization's failed events.
type RetriedEvents struct {
	Retried   int64 `json:"retried"`   // queued again
	Ambiguous int64 `json:"ambiguous"` // left failed: sent again they could be billed twice
}

// RetryEvents does RetryEvent for all failed events of an organization. What
// came of it is the change that the audit records.
func (s *Store) RetryEvents(ctx context.Context, client modelgate.ClientID, a modelgate.Audit) (RetriedEvents, error) {
	var done RetriedEvents
	err := s.db.Update(ctx, "queue billing events again", func(tx *sql.Tx) error {
		now := s.db.Now()
		of := []any{client, sqldb.Micros(now.Add(-modelgate.ExportUnsure)), sqldb.Micros(now.Add(ClockSlack))}
		var err error
		if done.Ambiguous, err = sqldb.Affected(ctx, tx, sqlExplainEvents, append(of, ReasonAmbiguous)...); err != nil {
			return err
		}
		// The queues first, as whoever sends takes them.
		if _, err := sqldb.Affected(ctx, tx, sqlWakeQueues, append(of, sqldb.Micros(now))...); err != nil {
			return err
		}
		if done.Retried, err = sqldb.Affected(ctx, tx, sqlRequeueEvents, append(of, sqldb.Micros(now))...); err != nil {
			return err
		}
		if a.Change, err = json.Marshal(done); err != nil {
			return err
		}
		return s.record(ctx, tx, client, a)
	})
	return done, err
}
