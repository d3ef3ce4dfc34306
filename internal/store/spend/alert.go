package spend

import (
	"cmp"
	"context"
	"database/sql"
	"maps"
	"slices"
	"time"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

// Audience is who is told about a budget.
type Audience string

// Operator is told about every budget, Organization about its own if it has an
// AlertTarget when the part is used up.
const (
	Operator     Audience = "operator"
	Organization Audience = "organization"
)

// Alert says that a part of a budget is used up, or tells about a wallet. There
// is one for each audience, budget, period, value and part, whatever restarts and
// however many instances run.
type Alert struct {
	Audience Audience
	ClientID modelgate.ClientID
	Level    modelgate.Level
	ID       string
	Period   modelgate.Period
	Start    time.Time // of the period; zero where it has none
	Rule     int64     // the number of a budget with counters of its own; 0 for a plain one
	Value    string    // of a match that counts each value by itself
	Match    string    // "" where all calls count
	Percent  int
	Limit    modelgate.Nano
	Spend    modelgate.Nano // settled when it was noticed
	At       time.Time
	Tries    int // how often it was claimed
}

// Wallet is what an alert tells about a wallet, "" for one about a budget. Of a
// wallet Limit is the amount that the alert is about: the bound that the balance
// has passed or what was credited or taken. Spend is the balance.
func (a *Alert) Wallet() modelgate.WalletAlert {
	if a.Period != modelgate.Total {
		return ""
	}
	return modelgate.WalletAlert(a.Value)
}

// alertColumns are in the order of scanAlert.
const alertColumns = `audience, client_id, scope, scope_id, period, period_start, percent, amount, settled, at, tries, rule, value, match_text`

// alertInsert notes what has been passed of the budgets of some targets ($4 and
// on: client, scope and id) at the instant $3, in the day that begins at $1 and
// its month at $2. The sum is the percentage of the limit, rounded up and
// without an overflow.
func alertInsert(targets int) string {
	return sqldb.Tuples(`INSERT INTO alert (`+alertColumns+`, claimed_until)
SELECT a.audience, b.client_id, b.scope, b.scope_id, b.period, s.period_start, p.percent, b.amount, s.settled, CAST($3 AS BIGINT), 0, 0, '', '', 0
FROM budget b
JOIN spend s ON s.client_id = b.client_id AND s.scope = b.scope AND s.scope_id = b.scope_id AND s.period = b.period
  AND s.period_start = CASE b.period WHEN 'day' THEN CAST($1 AS BIGINT) ELSE CAST($2 AS BIGINT) END
JOIN (SELECT 50 AS percent UNION ALL SELECT 80 UNION ALL SELECT 100) p
  ON s.settled >= b.amount / 100 * p.percent + (b.amount % 100 * p.percent + 99) / 100
JOIN (SELECT 'operator' AS audience UNION ALL SELECT 'organization') a
  ON a.audience = 'operator' OR EXISTS (SELECT 1 FROM alert_target t WHERE t.client_id = b.client_id)
WHERE b.period <> 'total'
  AND (b.client_id, b.scope, b.scope_id) IN (VALUES `, targets, 3, 4) + `)
ON CONFLICT (audience, client_id, scope, scope_id, period, period_start, rule, value, percent) DO NOTHING
-- alertInsert`
}

const sqlAlertsDue = `SELECT EXISTS (
  SELECT 1
  FROM alert
  WHERE audience = $2 AND claimed_until <= $1)
-- sqlAlertsDue`

// sqlClaimAlerts takes at most $5 alerts of one organization, so that nobody's
// wait for those of another.
const sqlClaimAlerts = `UPDATE alert
SET claimed_until = $2, tries = tries + 1
WHERE audience = $4 AND claimed_until <= $1
  AND (client_id, scope, scope_id, period, period_start, rule, value, percent) IN (
    SELECT client_id, scope, scope_id, period, period_start, rule, value, percent
    FROM (
      SELECT client_id, scope, scope_id, period, period_start, rule, value, percent, claimed_until,
        ROW_NUMBER() OVER (PARTITION BY client_id ORDER BY claimed_until, percent) AS place
      FROM alert
      WHERE audience = $4 AND claimed_until <= $1) due
    WHERE place <= $5
    ORDER BY claimed_until
    LIMIT $3)
RETURNING ` + alertColumns + `
-- sqlClaimAlerts`

const sqlFinishAlert = `UPDATE alert
SET claimed_until = $9
WHERE client_id = $1 AND scope = $2 AND scope_id = $3 AND period = $4 AND period_start = $5 AND rule = $6 AND value = $7 AND percent = $8 AND audience = $10
-- sqlFinishAlert`

// noteAlerts looks at the budgets whose counters were just raised. Their rows
// are locked, so that two transactions never note the same.
func (s *Store) noteAlerts(ctx context.Context, tx *sql.Tx, spent amounts) error {
	byDay := make(map[int64][]counter)
	for k := range spent {
		if k.Period == modelgate.Day && k.Rule == 0 {
			byDay[k.Start] = append(byDay[k.Start], k)
		}
	}
	for _, day := range slices.Sorted(maps.Keys(byDay)) {
		targets := byDay[day]
		for len(targets) > 0 {
			part := targets[:sqldb.StatementRows(len(targets), sqldb.MaxRows)]
			targets = targets[len(part):]
			if err := s.noteAlertsOf(ctx, tx, sqldb.Instant(day), part); err != nil {
				return err
			}
		}
	}
	return nil
}

// noteAlertsOf looks at the budgets of some targets in the day and the month
// that hold an instant.
func (s *Store) noteAlertsOf(ctx context.Context, tx *sql.Tx, at time.Time, targets []counter) error {
	args := []any{modelgate.Day.Start(at).UnixMicro(), modelgate.Month.Start(at).UnixMicro(), sqldb.Micros(s.db.Now())}
	for _, k := range targets {
		args = append(args, k.args(nil)[:3]...)
	}
	_, err := tx.ExecContext(ctx, alertInsert(len(targets)), args...)
	return err
}

// ClaimAlerts takes alerts of an audience that nobody has delivered, for lease:
// after that another may take them. It takes at most most, and at most
// mostOfClient of one organization.
func (s *Store) ClaimAlerts(ctx context.Context, to Audience, most, mostOfClient int, lease time.Duration) ([]Alert, error) {
	var out []Alert
	now := s.db.Now()
	var due bool
	if err := s.db.Read.QueryRowContext(ctx, sqlAlertsDue, sqldb.Micros(now), string(to)).Scan(&due); err != nil || !due {
		return nil, sqldb.Wrap("look for alerts", err)
	}
	err := s.db.Update(ctx, "claim alerts", func(tx *sql.Tx) (err error) {
		out, err = sqldb.List(ctx, tx, scanAlert, sqlClaimAlerts, sqldb.Micros(now), sqldb.Micros(now.Add(lease)), most, string(to), mostOfClient)
		return err
	})
	slices.SortFunc(out, func(a, b Alert) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Percent, b.Percent)) })
	return out, err
}

func scanAlert(s sqldb.Scanner) (Alert, error) {
	var a Alert
	var start int64
	err := s.Scan(&a.Audience, &a.ClientID, &a.Level, &a.ID, &a.Period, &start, &a.Percent, &a.Limit, &a.Spend, sqldb.Moment{Into: &a.At}, &a.Tries,
		&a.Rule, &a.Value, &a.Match)
	if a.Period != modelgate.Ever {
		a.Start = sqldb.Instant(start)
	}
	return a, err
}

// startOf is how the beginning of an alert's period is stored.
func startOf(a *Alert) int64 {
	if a.Period == modelgate.Ever {
		return 0
	}
	return sqldb.Micros(a.Start)
}

// FinishAlert notes that an alert is delivered, or given up.
func (s *Store) FinishAlert(ctx context.Context, a Alert) error {
	_, err := s.db.Write.ExecContext(ctx, sqlFinishAlert, string(a.ClientID), string(a.Level), a.ID, string(a.Period), startOf(&a), a.Rule, a.Value, a.Percent, int64(sqldb.Never), string(a.Audience))
	return sqldb.Wrap("finish alert", err)
}
