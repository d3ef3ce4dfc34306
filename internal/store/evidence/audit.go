package evidence

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"time"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

// The lists of records walk the primary key, audit_client or audit_action: ids are in
// the order of time. An empty filter matches all.
const (
	auditColumns = `id, at, client_id, action, actor, target_type, target_id, COALESCE(change, ''), request_id`

	auditFilter = `
  AND ($4 = '' OR target_id = $4)
  AND ($5 = '' OR actor LIKE '%' || $5 || '%')
  AND at >= $6 AND at < $7 AND id < $8
ORDER BY id DESC
LIMIT $3`

	sqlAudits = `SELECT ` + auditColumns + `
FROM audit
WHERE $1 = '' AND $2 = ''` + auditFilter + `
-- sqlAudits`

	sqlAuditsOfClient = `SELECT ` + auditColumns + `
FROM audit
WHERE client_id = $1 AND ($2 = '' OR action = $2)` + auditFilter + `
-- sqlAuditsOfClient`

	sqlAuditsOfAction = `SELECT ` + auditColumns + `
FROM audit
WHERE $1 = '' AND action = $2` + auditFilter + `
-- sqlAuditsOfAction`
)

// AuditList selects records of changes; zero fields select nothing away.
type AuditList struct {
	ClientID modelgate.ClientID // "" for all organizations
	Action   string
	TargetID string
	ActorID  modelgate.UUID // of a key, a token, a session or a person
	From, To time.Time      // To excluded
	Limit    int            // 0 for all
	After    string         // the id of the last record of the page before
}

// Audits lists records of changes, the newest first, and reports whether more
// follow.
func (s *Store) Audits(ctx context.Context, l AuditList) ([]modelgate.Audit, bool, error) {
	query := sqlAudits
	switch {
	case l.ClientID != "":
		query = sqlAuditsOfClient
	case l.Action != "":
		query = sqlAuditsOfAction
	}
	from, to, actor := int64(math.MinInt64), int64(math.MaxInt64), ""
	if !l.From.IsZero() {
		from = sqldb.Micros(l.From)
	}
	if !l.To.IsZero() {
		to = sqldb.Micros(l.To)
	}
	if l.ActorID != (modelgate.UUID{}) {
		actor = l.ActorID.String()
	}
	const behindAll = "~" // follows every id
	rows, err := sqldb.List(ctx, s.db.Read, scanAudit, query, string(l.ClientID), l.Action, sqldb.Fetch(l.Limit), l.TargetID, actor, from, to, cmp.Or(l.After, behindAll))
	rows, more := sqldb.Page(rows, l.Limit)
	return rows, more, sqldb.Wrap("list audit records", err)
}

func scanAudit(s sqldb.Scanner) (modelgate.Audit, error) {
	var a modelgate.Audit
	var actor, change string
	err := s.Scan(&a.ID, sqldb.Moment{Into: &a.At}, &a.ClientID, &a.Action, &actor, &a.TargetType, &a.TargetID, &change, &a.RequestID)
	if err != nil {
		return a, err
	}
	if change != "" {
		a.Change = json.RawMessage(change)
	}
	return a, json.Unmarshal([]byte(actor), &a.Actor)
}
