package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

// jobColumns are in the order of jobValues and scanJob.
const jobColumns = `id, client_id, key_id, sub_account_id, task_id, provider, model, slug, author, kind, protocol,
  credential, price, attribution, holds, rules, quantities, status, reason, provisional_cost, final_cost, reserve,
  created_at, deadline, finalized_at`

// sqlInsertJob does nothing where the organization has a job of that name at
// the provider already.
const sqlInsertJob = `INSERT INTO async_job (` + jobColumns + `, next_poll, pause)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27)
ON CONFLICT (client_id, task_id, provider) DO NOTHING
-- sqlInsertJob`

// sqlJob walks the unique key.
const sqlJob = `SELECT ` + jobColumns + `
FROM async_job
WHERE client_id = $1 AND task_id = $2 AND ($3 = '' OR provider = $3)
ORDER BY created_at DESC
LIMIT 1
-- sqlJob`

// sqlFinishJob is the compare-and-set that every transition is.
const sqlFinishJob = `UPDATE async_job
SET status = $4, reason = $5, final_cost = $6, finalized_at = $7
WHERE client_id = $1 AND created_at = $2 AND id = $3
  AND status = 'pending'
-- sqlFinishJob`

const sqlFinishUsage = `UPDATE usage_row
SET parse_status = $4, quantities = $5, total_tokens = $6, cost = $7, price_label = $8
WHERE client_id = $1 AND created_at = $2 AND id = $3
  AND parse_status = 'provisional'
RETURNING ` + usageColumns + `
-- sqlFinishUsage`

const sqlFinishDebit = `UPDATE usage_row
SET wallet_debit = $4
WHERE client_id = $1 AND created_at = $2 AND id = $3
-- sqlFinishDebit`

// sqlUnfollowed is a row whose job is not followed.
const sqlUnfollowed = `UPDATE usage_row
SET parse_status = 'partial'
WHERE client_id = $1 AND created_at = $2 AND id = $3
-- sqlUnfollowed`

// Job finds an organization's job, at one provider or, for "", at any of
// them; then it is the newest of that name. Errors: modelgate.ErrNoTask.
func (db *DB) Job(ctx context.Context, client modelgate.ClientID, provider string, task modelgate.TaskID) (*modelgate.Job, error) {
	j, err := scanJob(db.read.QueryRowContext(ctx, sqlJob, string(client), sqldb.Clean(string(task)), sqldb.Clean(provider)))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, modelgate.ErrNoTask
	}
	return &j, sqldb.Wrap("find job", err)
}

// insertJobs adds the jobs of new rows. A provider that names two jobs alike
// leaves the second without one: nothing would tell it from the first. Its
// row becomes a partial one, and the list holds it as it is then; what the job
// was to keep reserved is free.
func (db *DB) insertJobs(ctx context.Context, tx *sql.Tx, b *booked) error {
	for i, r := range b.rows {
		if r.Job == nil {
			continue
		}
		values, err := db.jobValues(r)
		if err != nil {
			return err
		}
		done, err := tx.ExecContext(ctx, sqlInsertJob, values...)
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil {
			return err
		} else if n == 1 {
			continue
		}
		plain := *r
		plain.Job, plain.ParseStatus = nil, modelgate.ParsePartial
		if _, err := tx.ExecContext(ctx, sqlUnfollowed, string(r.ClientID), sqldb.Micros(r.At), r.ID.String()); err != nil {
			return err
		}
		b.rows[i] = &plain
		b.unfollowed = append(b.unfollowed, r)
	}
	return nil
}

func (db *DB) jobValues(r *modelgate.UsageRow) ([]any, error) {
	j := r.Job
	attribution, err := pairsText(r.Attribution)
	if err != nil {
		return nil, err
	}
	quantities, err := usageText(&r.Usage)
	if err != nil {
		return nil, err
	}
	rules, err := sqldb.JSON(slices.Concat([]int64{}, r.Rules))
	if err != nil {
		return nil, err
	}
	if j.Reserve < 0 {
		return nil, fmt.Errorf("job %s: %w: reserve %s", r.ID, sqldb.ErrValue, j.Reserve)
	}
	return []any{
		r.ID.String(), sqldb.Clean(string(r.ClientID)), sqldb.Clean(string(r.KeyID)), sqldb.Clean(string(r.SubAccountID)), sqldb.Clean(string(j.TaskID)),
		sqldb.Clean(r.CallBegin.Provider), sqldb.Clean(r.CallBegin.Model), sqldb.Clean(r.Slug), sqldb.Clean(r.Author), sqldb.Clean(string(j.Kind)), sqldb.Clean(j.Protocol),
		sqldb.Clean(j.Credential), sqldb.Clean(j.Price), attribution, int64(r.Holds), rules, quantities, string(modelgate.JobPending), "",
		int64(r.Cost), 0, int64(j.Reserve), sqldb.Micros(r.At), sqldb.Micros(j.Deadline), 0,
		sqldb.Micros(r.At.Add(firstPause)), firstPause.Microseconds(),
	}, nil
}

func scanJob(s sqldb.Scanner) (modelgate.Job, error) {
	var j modelgate.Job
	var id string
	var holds int64
	err := s.Scan(&id, &j.ClientID, &j.KeyID, &j.SubAccountID, &j.TaskID, &j.Provider, &j.Model, &j.Slug, &j.Author, &j.Kind, &j.Protocol,
		&j.Credential, &j.Price, sqldb.Document{Into: &j.Attribution}, &holds, sqldb.Document{Into: &j.Rules}, sqldb.Document{Into: &j.Usage}, &j.Status, &j.Reason, &j.Provisional, &j.Final,
		&j.Reserve, sqldb.Moment{Into: &j.CreatedAt}, sqldb.Moment{Into: &j.Deadline}, sqldb.Moment{Into: &j.FinalizedAt})
	if err != nil {
		return j, err
	}
	parsed, ok := modelgate.ParseUUID(id)
	if !ok {
		return j, fmt.Errorf("job with the id %q", id)
	}
	j.ID, j.Holds = parsed, modelgate.Holds(holds)
	return j, nil
}

// FinishJobs ends jobs, each with its usage row and all that is kept about
// rows, in one transaction. It returns those that it ended: a job that was
// ended before stays as it is.
func (db *DB) FinishJobs(ctx context.Context, finals []modelgate.JobFinal) (ended []modelgate.JobFinal, err error) {
	finals = slices.SortedFunc(slices.Values(finals), func(a, b modelgate.JobFinal) int {
		return cmp.Or(cmp.Compare(a.Job.ClientID, b.Job.ClientID), a.Job.CreatedAt.Compare(b.Job.CreatedAt),
			slices.Compare(a.Job.ID[:], b.Job.ID[:]))
	})
	err = db.update(ctx, "finish jobs", func(tx *sql.Tx) error {
		ended = nil
		var b booked
		for i := range finals {
			done, row, err := db.finishJob(ctx, tx, &finals[i])
			if err != nil {
				return err
			}
			if done {
				ended = append(ended, finals[i])
			}
			if row != nil {
				b.finals = append(b.finals, *row)
			}
		}
		if len(ended) == 0 {
			return nil
		}
		return db.book(ctx, tx, &b)
	})
	if err != nil {
		return nil, err
	}
	return ended, nil
}

// finishJob ends one job; false where it was ended before. The row is nil
// where there is none any more.
func (db *DB) finishJob(ctx context.Context, tx *sql.Tx, f *modelgate.JobFinal) (bool, *final, error) {
	j := f.Job
	if f.Cost < 0 {
		return false, nil, fmt.Errorf("job %s: %w: cost %s", j.ID, sqldb.ErrValue, f.Cost)
	}
	where := []any{string(j.ClientID), sqldb.Micros(j.CreatedAt), j.ID.String()}
	r, err := tx.ExecContext(ctx, sqlFinishJob, append(slices.Clone(where), string(f.Status), string(f.Reason), int64(f.Cost), sqldb.Micros(db.now()))...)
	if err != nil {
		return false, nil, err
	}
	if n, err := r.RowsAffected(); err != nil || n == 0 {
		return false, nil, err
	}
	quantities, err := usageText(&f.Usage)
	if err != nil {
		return false, nil, err
	}
	row, err := scanUsage(tx.QueryRowContext(ctx, sqlFinishUsage, append(where, string(f.ParseStatus), quantities, f.Usage.TotalTokens(),
		int64(f.Cost), sqldb.Clean(f.PriceLabel))...))
	if errors.Is(err, sql.ErrNoRows) {
		return true, nil, nil
	}
	if err != nil {
		return false, nil, err
	}
	if row.WalletMarkup != nil {
		if _, err := tx.ExecContext(ctx, sqlFinishDebit, append(where[:3:3], int64(row.Debit(f.Cost)))...); err != nil {
			return false, nil, err
		}
	}
	row.Holds, row.Rules = j.Holds, j.Rules
	use := modelgate.Amounts{Input: f.Usage.PromptTokens() - j.Usage.PromptTokens(), Output: f.Usage.CompletionTokens() - j.Usage.CompletionTokens()}
	return true, &final{&row, f.Cost - j.Provisional, f.Usage.TotalTokens() - j.Usage.TotalTokens(), use, j.Reserve}, nil
}

// The pauses between two polls of a job grow from the first to the last of
// these, each twice the one before, and up to a quarter more.
const (
	firstPause = 5 * time.Second
	lastPause  = 5 * time.Minute
)

// sqlClaimJobs moves the next poll of jobs that are due ($1), at most to their
// deadline: until then they are whoever's who claims them here, and nothing
// more is written when they still run. $3 is the longest pause. The subquery
// walks async_job_due.
const sqlClaimJobs = `UPDATE async_job
SET next_poll = CASE
    WHEN deadline > CAST($1 AS BIGINT) AND deadline < CAST($1 AS BIGINT) + pause THEN deadline
    ELSE CAST($1 AS BIGINT) + pause + (created_at / 1000 + pause / 1000000) % 997 * pause / 4000
  END,
  pause = CASE WHEN pause * 2 > CAST($3 AS BIGINT) THEN CAST($3 AS BIGINT) ELSE pause * 2 END
WHERE status = 'pending' AND next_poll <= $1
  AND (client_id, created_at, id) IN (
    SELECT client_id, created_at, id
    FROM async_job
    WHERE status = 'pending' AND next_poll <= $1
    ORDER BY next_poll
    LIMIT $2)
RETURNING ` + jobColumns + `
-- sqlClaimJobs`

const sqlJobsDue = `SELECT EXISTS (
  SELECT 1
  FROM async_job
  WHERE status = 'pending' AND next_poll <= $1)
-- sqlJobsDue`

// ClaimJobs takes pending jobs that are due to be polled, in no particular
// order. Nobody else gets them before their next poll is due.
func (db *DB) ClaimJobs(ctx context.Context, most int) ([]modelgate.Job, error) {
	now := sqldb.Micros(db.now())
	var due bool
	if err := db.read.QueryRowContext(ctx, sqlJobsDue, now).Scan(&due); err != nil || !due {
		return nil, sqldb.Wrap("look for jobs", err)
	}
	var out []modelgate.Job
	err := db.update(ctx, "claim jobs", func(tx *sql.Tx) (err error) {
		out, err = sqldb.List(ctx, tx, scanJob, sqlClaimJobs, now, most, lastPause.Microseconds())
		return err
	})
	return out, err
}

const sqlPendingJobs = `SELECT COUNT(*), COALESCE(MIN(created_at), 0)
FROM async_job
WHERE status = 'pending'
-- sqlPendingJobs`

// PendingJobs is how many jobs are pending, and when the oldest of them was
// made; the zero time without any.
func (db *DB) PendingJobs(ctx context.Context) (n int64, oldest time.Time, err error) {
	err = db.read.QueryRowContext(ctx, sqlPendingJobs).Scan(&n, sqldb.Moment{Into: &oldest})
	return n, oldest, sqldb.Wrap("count pending jobs", err)
}
