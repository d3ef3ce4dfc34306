package store

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"modernc.org/sqlite"
	"modernc.org/sqlite/vtab"

	"modelgate"
)

// feed hands usage rows to SQLite as two tables that exist in the writing
// connection only, so that one statement inserts a batch: its cursors stay
// where they are, where a statement for each row opens them anew and looks
// from the root of every tree. What many rows have in common is a row of
// feed_group; feed_row has the rest, with its group's number.
//
// A feed has one user at a time: whoever has the writing transaction.
type feed struct {
	groups []feedGroup
	err    error // why a row could not be handed over
}

// feedGroup is what some rows have in common, and they, in the order of the
// primary key.
type feedGroup struct {
	client modelgate.ClientID
	values [feedGroupColumns]driver.Value
	rows   []*modelgate.UsageRow
}

// The columns of the two tables, as Column numbers them. The group's number is
// the last of feed_row, and hidden.
const (
	feedGroupColumns = 13
	feedRowColumns   = 9

	feedGroupTable = `CREATE TABLE feed_group (client_id, sub_account_id, provider, model, slug, author, kind, region, door, via_sdk,
  status_code, parse_status, price_label)`
	feedRowTable = `CREATE TABLE feed_row (id, key_id, attribution, quantities, total_tokens, cost, latency_ms, first_byte_ms, created_at,
  group_number HIDDEN)`
)

const feedModule = "modelgate_feed"

const sqlSQLiteFeedGroups = `CREATE VIRTUAL TABLE IF NOT EXISTS temp.feed_group USING ` + feedModule + `(group)
-- sqlSQLiteFeedGroups`

const sqlSQLiteFeedRows = `CREATE VIRTUAL TABLE IF NOT EXISTS temp.feed_row USING ` + feedModule + `(row)
-- sqlSQLiteFeedRows`

// sqlSQLiteFeed inserts what is in the feed. The limit keeps SQLite from asking for the
// group's columns anew for each of its rows. OR FAIL spares the copy of every
// page that it changes: who runs it takes back the transaction if it fails.
const sqlSQLiteFeed = `INSERT OR FAIL INTO usage_row (` + usageColumns + `)
SELECT r.id, g.client_id, r.key_id, g.sub_account_id, g.provider, g.model, g.slug, g.author, g.kind, g.region, g.door,
  g.via_sdk, r.attribution, g.status_code, g.parse_status, r.quantities, r.total_tokens, r.cost, g.price_label, r.latency_ms,
  r.first_byte_ms, r.created_at
FROM (
  SELECT rowid AS number, client_id, sub_account_id, provider, model, slug, author, kind, region, door, via_sdk,
    status_code, parse_status, price_label
  FROM temp.feed_group
  LIMIT -1) AS g
CROSS JOIN temp.feed_row AS r
WHERE r.group_number = g.number
ON CONFLICT (client_id, created_at, id) DO NOTHING
-- sqlSQLiteFeed`

// driver makes connections that know the tables.
func (f *feed) driver() (*sqlite.Driver, error) {
	d := new(sqlite.Driver)
	return d, d.RegisterModule(feedModule, f)
}

// attach makes the tables in a connection.
func (f *feed) attach(ctx context.Context, c driver.ExecerContext) error {
	for _, text := range []string{sqlSQLiteFeedGroups, sqlSQLiteFeedRows} {
		if _, err := c.ExecContext(ctx, text, nil); err != nil {
			return fmt.Errorf("attach the feed: %w", err)
		}
	}
	return nil
}

// errKnown says that some of a batch's rows are there already: the feed
// cannot tell which.
var errKnown = errors.New("rows of the batch are booked already")

// insert is a usageInsertion of all rows or none: it fails with errKnown where
// there is one already.
func (f *feed) insert(ctx context.Context, tx *sql.Tx, rows []modelgate.UsageRow, inserted func(*modelgate.UsageRow)) error {
	if len(rows) == 0 {
		return nil
	}
	defer func() { *f = feed{} }()
	f.fill(rows)
	r, err := tx.ExecContext(ctx, sqlSQLiteFeed)
	if err != nil {
		return cmp.Or(f.err, err)
	}
	if n, err := r.RowsAffected(); err != nil {
		return err
	} else if n != int64(len(rows)) {
		return errKnown
	}
	for i := range rows {
		inserted(&rows[i])
	}
	return nil
}

// fill takes rows in.
func (f *feed) fill(rows []modelgate.UsageRow) {
	numbers := make(map[[feedGroupColumns]driver.Value]int)
	last := -1
	for i := range rows {
		r := &rows[i]
		key := groupValues(r)
		if last < 0 || f.groups[last].values != key {
			n, known := numbers[key]
			if !known {
				n = len(f.groups)
				numbers[key] = n
				f.groups = append(f.groups, feedGroup{client: r.ClientID, values: key})
			}
			last = n
		}
		f.groups[last].rows = append(f.groups[last].rows, r)
	}
	slices.SortFunc(f.groups, func(a, b feedGroup) int { return cmp.Compare(a.client, b.client) })
	for i := range f.groups {
		slices.SortFunc(f.groups[i].rows, func(a, b *modelgate.UsageRow) int { return slices.Compare(a.ID[:], b.ID[:]) })
	}
}

// groupValues are the columns of feed_group.
func groupValues(r *modelgate.UsageRow) [feedGroupColumns]driver.Value {
	b, e := &r.CallBegin, &r.CallEnd
	viaSDK := int64(0)
	if b.ViaSDK {
		viaSDK = 1
	}
	return [...]driver.Value{clean(string(b.ClientID)), clean(string(b.SubAccountID)), clean(b.Provider), clean(b.Model), clean(b.Slug),
		clean(b.Author), clean(string(b.Kind)), clean(b.Region), clean(b.Door), viaSDK, int64(e.StatusCode), clean(string(e.ParseStatus)),
		clean(e.PriceLabel)}
}

// Create implements vtab.Module.
func (f *feed) Create(ctx vtab.Context, args []string) (vtab.Table, error) {
	if slices.Contains(args[3:], "group") {
		return feedTable{feed: f}, ctx.Declare(feedGroupTable)
	}
	return feedTable{feed: f, rows: true}, ctx.Declare(feedRowTable)
}

// Connect implements vtab.Module.
func (f *feed) Connect(ctx vtab.Context, args []string) (vtab.Table, error) {
	return f.Create(ctx, args)
}

// feedTable is one of the two tables.
type feedTable struct {
	feed *feed
	rows bool // it is feed_row
}

// BestIndex implements vtab.Table: rows are looked for by their group.
func (t feedTable) BestIndex(info *vtab.IndexInfo) error {
	if !t.rows {
		return nil
	}
	for i := range info.Constraints {
		c := &info.Constraints[i]
		if c.Column == feedRowColumns && c.Op == vtab.OpEQ && c.Usable {
			c.ArgIndex, c.Omit = 0, true
			return nil
		}
	}
	return errors.New("feed_row is read by its group")
}

// Open implements vtab.Table.
func (t feedTable) Open() (vtab.Cursor, error) {
	if t.rows {
		return &feedRows{feed: t.feed}, nil
	}
	return &feedGroups{feed: t.feed}, nil
}

// Disconnect implements vtab.Table.
func (feedTable) Disconnect() error { return nil }

// Destroy implements vtab.Table.
func (feedTable) Destroy() error { return nil }

// feedGroups walks over the groups.
type feedGroups struct {
	feed *feed
	at   int
}

// Filter implements vtab.Cursor.
func (c *feedGroups) Filter(int, string, []vtab.Value) error {
	c.at = 0
	return nil
}

// Next implements vtab.Cursor.
func (c *feedGroups) Next() error {
	c.at++
	return nil
}

// Eof implements vtab.Cursor.
func (c *feedGroups) Eof() bool { return c.at >= len(c.feed.groups) }

// Column implements vtab.Cursor.
func (c *feedGroups) Column(i int) (vtab.Value, error) { return c.feed.groups[c.at].values[i], nil }

// Rowid implements vtab.Cursor.
func (c *feedGroups) Rowid() (int64, error) { return int64(c.at), nil }

// Close implements vtab.Cursor.
func (c *feedGroups) Close() error { return nil }

// feedRows walks over the rows of a group.
type feedRows struct {
	feed  *feed
	rows  []*modelgate.UsageRow // from the present one on
	seen  int                   // in all groups
	room  []byte
	texts string
	end   int // of the attribution in texts, the quantities follow
}

// Filter implements vtab.Cursor.
func (c *feedRows) Filter(_ int, _ string, args []vtab.Value) error {
	number, _ := args[0].(int64)
	c.rows = c.feed.groups[number].rows
	return c.read()
}

// Next implements vtab.Cursor.
func (c *feedRows) Next() error {
	c.rows = c.rows[1:]
	return c.read()
}

// read makes the texts of the present row.
func (c *feedRows) read() error {
	if len(c.rows) == 0 {
		return nil
	}
	if c.seen++; c.seen%yieldRows == 0 { // see yieldRows
		runtime.Gosched()
	}
	var err error
	c.room, c.end, err = usageTexts(c.room[:0], c.rows[0])
	if err != nil {
		c.feed.err = err // SQLite passes a text on only
		return err
	}
	c.texts = string(c.room)
	return nil
}

// Eof implements vtab.Cursor.
func (c *feedRows) Eof() bool { return len(c.rows) == 0 }

// Column implements vtab.Cursor.
func (c *feedRows) Column(i int) (vtab.Value, error) {
	r := c.rows[0]
	switch i {
	case 0:
		return r.ID.String(), nil
	case 1:
		return clean(string(r.KeyID)), nil
	case 2:
		return c.texts[:c.end], nil
	case 3:
		return c.texts[c.end:], nil
	case 4:
		return r.Usage.TotalTokens(), nil
	case 5:
		return int64(r.Cost), nil
	case 6:
		return r.LatencyMS, nil
	case 7:
		return r.FirstByteMS, nil
	case 8:
		return micros(r.At), nil
	}
	return nil, nil
}

// Rowid implements vtab.Cursor.
func (c *feedRows) Rowid() (int64, error) { return int64(c.seen), nil }

// Close implements vtab.Cursor.
func (c *feedRows) Close() error { return nil }
