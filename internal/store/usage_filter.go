package store

import (
	"context"
	"strconv"
	"strings"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

// A page of usage with a filter must not walk over the rows that the filter
// leaves out, of which there may be millions. So two indexes have provider and
// parse_status in front of the time: usage_row_provider for an organization,
// usage_row_shown for an end customer. A page is the newest rows of the
// entries that the filters leave: one for each provider and status, which are
// few. Only the rows that are listed are read.

// shownProvider is what an end customer sees as the provider of a row; the
// index has it letter for letter.
const shownProvider = `CASE WHEN slug <> '' THEN author ELSE provider END`

// The queries hop from one provider of the index to the next.
const (
	sqlProvidersUsed = `WITH RECURSIVE used(name) AS (
  SELECT MIN(provider) FROM usage_row WHERE client_id = $1
  UNION ALL
  SELECT (SELECT MIN(provider) FROM usage_row WHERE client_id = $1 AND provider > used.name)
  FROM used
  WHERE used.name IS NOT NULL
)
SELECT name
FROM used
WHERE name IS NOT NULL
-- sqlProvidersUsed`

	sqlProvidersShown = `WITH RECURSIVE used(name) AS (
  SELECT MIN(` + shownProvider + `) FROM usage_row WHERE sub_account_id = $1 AND sub_account_id <> ''
  UNION ALL
  SELECT (SELECT MIN(` + shownProvider + `) FROM usage_row
    WHERE sub_account_id = $1 AND sub_account_id <> '' AND ` + shownProvider + ` > used.name)
  FROM used
  WHERE used.name IS NOT NULL
)
SELECT name
FROM used
WHERE name IS NOT NULL
-- sqlProvidersShown`
)

// filteredUsage is a page of a list with a filter.
func (db *DB) filteredUsage(ctx context.Context, client modelgate.ClientID, l UsageList) ([]modelgate.UsageRow, error) {
	statuses := modelgate.AllParseStatuses()
	if l.ParseStatus != "" {
		statuses = []modelgate.ParseStatus{l.ParseStatus}
	}
	providers := []string{l.Provider}
	if l.Provider == "" {
		query, of := sqlProvidersUsed, string(client)
		if l.SubAccountID != "" {
			query, of = sqlProvidersShown, string(l.SubAccountID)
		}
		var err error
		if providers, err = sqldb.List(ctx, db.read, sqldb.ScanText, query, of); err != nil {
			return nil, err
		}
	}
	if len(providers) == 0 {
		return []modelgate.UsageRow{}, nil
	}
	at, id := l.After.Bound()
	args := []any{string(client), string(l.SubAccountID), sqldb.Micros(l.Since), at, id, sqldb.Fetch(l.Limit)}
	for _, p := range providers {
		args = append(args, p)
	}
	for _, s := range statuses {
		args = append(args, string(s))
	}
	return sqldb.List(ctx, db.read, scanUsage, usageFiltered(l.SubAccountID != "", len(providers), len(statuses)), args...)
}

// usageFiltered reads a page of the rows with any of some providers and any of
// some statuses, of a sub-account or of all of an organization. Of each entry
// it reads as many places of the index as a page has rows, downwards from the
// cursor and not beyond the status, and only then looks which of them are young
// enough: the rest of a page that is not full would else be looked for among
// all that lies below. The status is in the range and in the order, so that no other
// index has that order: an engine that expects such rows to be frequent would
// walk the primary key. The provider is not in the range, because SQLite takes
// none that begins with an expression. CROSS JOIN has SQLite read the rows by
// what was found; it would read all of the client's where there are many
// entries.
func usageFiltered(shown bool, providers, statuses int) string {
	owner, provider := "client_id = $1 AND $2 = ''", "provider"
	if shown {
		owner, provider = "sub_account_id = $2 AND sub_account_id <> ''", shownProvider // whose client is looked at below
	}
	var b strings.Builder
	b.WriteString("SELECT " + prefixed(usageColumns, "r.") + "\nFROM (\n  SELECT created_at, id\n  FROM (")
	for i := range providers {
		for j := range statuses {
			if i+j > 0 {
				b.WriteString("\n    UNION ALL")
			}
			p, s := "$"+strconv.Itoa(7+i), "$"+strconv.Itoa(7+providers+j)
			b.WriteString("\n    SELECT created_at, id FROM (\n      SELECT parse_status, created_at, id FROM usage_row" +
				"\n      WHERE " + owner + " AND " + provider + " = " + p +
				"\n        AND parse_status >= " + s + " AND (parse_status, created_at, id) < (" + s + ", $4, $5)" +
				"\n      ORDER BY parse_status DESC, created_at DESC, id DESC" +
				"\n      LIMIT $6) AS p" + strconv.Itoa(i*statuses+j) +
				"\n    WHERE parse_status = " + s + " AND created_at >= $3")
		}
	}
	b.WriteString("\n  ) AS found\n  ORDER BY created_at DESC, id DESC\n  LIMIT $6\n) AS u" +
		"\nCROSS JOIN usage_row r\nWHERE r.client_id = $1 AND r.created_at = u.created_at AND r.id = u.id" +
		"\nORDER BY r.created_at DESC, r.id DESC\n-- usageFiltered")
	return b.String()
}

// prefixed puts a prefix before each of some columns.
func prefixed(columns, prefix string) string {
	names := strings.Split(columns, ",")
	for i, name := range names {
		names[i] = prefix + strings.TrimSpace(name)
	}
	return strings.Join(names, ", ")
}
