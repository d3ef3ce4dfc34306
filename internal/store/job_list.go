package store

import (
	"context"
	"math"
	"time"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

// The lists of jobs walk the primary key, async_job_key or
// async_job_sub_account. An empty filter matches all.
const (
	sqlJobs = `SELECT ` + jobColumns + `
FROM async_job
WHERE client_id = $1` + jobsPage + `
-- sqlJobs`

	// sqlJobsOfAll sorts: there are fewer jobs than calls, and fewer questions for all.
	sqlJobsOfAll = `SELECT ` + jobColumns + `
FROM async_job
WHERE ($1 = '' OR status = $1) AND (created_at, id) < ($2, $3)
ORDER BY created_at DESC, id DESC
LIMIT $4
-- sqlJobsOfAll`

	sqlJobsOfKey = `SELECT ` + jobColumns + `
FROM async_job
WHERE client_id = $1 AND key_id = $9` + jobsPage + `
-- sqlJobsOfKey`

	sqlJobsOfSubAccount = `SELECT ` + jobColumns + `
FROM async_job
WHERE sub_account_id = $9
  AND sub_account_id <> ''
  AND (client_id = $1) IS TRUE` + jobsPage + `
-- sqlJobsOfSubAccount`

	jobsPage = `
  AND ($2 = '' OR status = $2)
  AND ($3 = '' OR kind = $3)
  AND created_at > $4 AND created_at < $5
  AND (created_at, id) < ($6, $7)
ORDER BY created_at DESC, id DESC
LIMIT $8`
)

// JobList selects jobs; zero fields select nothing away.
type JobList struct {
	KeyID         modelgate.KeyID        // made with this key
	SubAccountID  modelgate.SubAccountID // made for it; not beside KeyID
	Status        modelgate.JobStatus
	Kind          modelgate.ModelKind
	CreatedAfter  time.Time
	CreatedBefore time.Time
	Limit         int           // 0 for all
	After         *sqldb.Cursor // nil for the first page
}

// Jobs lists an organization's jobs, the newest first, and reports whether
// more follow.
func (db *DB) Jobs(ctx context.Context, client modelgate.ClientID, l JobList) ([]modelgate.Job, bool, error) {
	at, id := l.After.Bound()
	until := int64(math.MaxInt64)
	if !l.CreatedBefore.IsZero() {
		until = sqldb.Micros(l.CreatedBefore)
	}
	after := int64(math.MinInt64)
	if !l.CreatedAfter.IsZero() {
		after = sqldb.Micros(l.CreatedAfter)
	}
	query, args := sqlJobs, []any{string(client), string(l.Status), string(l.Kind), after, until, at, id, sqldb.Fetch(l.Limit)}
	switch {
	case l.KeyID != "":
		query, args = sqlJobsOfKey, append(args, string(l.KeyID))
	case l.SubAccountID != "":
		query, args = sqlJobsOfSubAccount, append(args, string(l.SubAccountID))
	}
	rows, err := sqldb.List(ctx, db.read, scanJob, query, args...)
	rows, more := sqldb.Page(rows, l.Limit)
	return rows, more, sqldb.Wrap("list jobs", err)
}

// JobsOfAll lists the jobs of all organizations, the newest first, and reports
// whether more follow. Of the list it reads the status, the limit and the position.
func (db *DB) JobsOfAll(ctx context.Context, l JobList) ([]modelgate.Job, bool, error) {
	at, id := l.After.Bound()
	rows, err := sqldb.List(ctx, db.read, scanJob, sqlJobsOfAll, string(l.Status), at, id, sqldb.Fetch(l.Limit))
	rows, more := sqldb.Page(rows, l.Limit)
	return rows, more, sqldb.Wrap("list jobs", err)
}
