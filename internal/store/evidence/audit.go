package evidence

import (
	"context"
	"encoding/json"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

// sqlAudits walks the primary key: ids are in the order of time.
const sqlAudits = `SELECT id, at, client_id, action, actor, target_type, target_id, COALESCE(change, ''), request_id
FROM audit
WHERE $1 = '' OR client_id = $1
ORDER BY id DESC
LIMIT $2
-- sqlAudits`

// AuditList selects records of changes.
type AuditList struct {
	ClientID modelgate.ClientID // "" for all organizations
	Limit    int                // 0 for all
}

// Audits lists records of changes, the newest first.
func (s *Store) Audits(ctx context.Context, l AuditList) ([]modelgate.Audit, error) {
	rows, err := sqldb.List(ctx, s.db.Read, scanAudit, sqlAudits, string(l.ClientID), sqldb.Fetch(l.Limit))
	rows, _ = sqldb.Page(rows, l.Limit)
	return rows, sqldb.Wrap("list audit records", err)
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
