package store

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"

	"modernc.org/sqlite/vtab"

	"modelgate"
	"modelgate/internal/store/sqldb"
	"modelgate/internal/store/sqlite"
	"modelgate/internal/yield"
)

// usageFeed hands usage rows to SQLite as two tables that exist in the writing
// connection only, so that one statement inserts many: its cursors stay
// where they are, where a statement for each row opens them anew and looks
// from the root of every tree. What many rows have in common is a row of
// feed_group; feed_row has the rest, with its group's number.
//
// A feed has one user at a time: whoever has the writing transaction.
type usageFeed struct {
	yielder *yield.Yielder
	tuples  *sqlite.Tuples // of any other kind of row
	loop    yield.Loop     // of the statement that is being run
	groups  []feedGroup
	small   int   // from here on groups have few rows
	err     error // why a row could not be handed over
}

// feedGroup are rows with much in common, in the order of the primary key.
type feedGroup []*modelgate.UsageRow

// The columns of the two tables, as Column numbers them. The group's number is
// the last of feed_row, and hidden.
const (
	feedRowColumns = 12

	feedGroupTable = `CREATE TABLE feed_group (client_id, sub_account_id, provider, model, slug, author, kind, region, door, via_sdk,
  status_code, parse_status, price_label)`
	feedRowTable = `CREATE TABLE feed_row (id, key_id, attribution, quantities, total_tokens, cost, stated_cost, latency_ms, first_byte_ms, created_at,
  wallet_markup, wallet_debit, group_number HIDDEN)`
)

const feedModule = "modelgate_feed"

const sqlSQLiteFeedGroups = `CREATE VIRTUAL TABLE IF NOT EXISTS temp.feed_group USING ` + feedModule + `(group)
-- sqlSQLiteFeedGroups`

const sqlSQLiteFeedRows = `CREATE VIRTUAL TABLE IF NOT EXISTS temp.feed_row USING ` + feedModule + `(row)
-- sqlSQLiteFeedRows`

// sqlSQLiteFeed inserts a large group, whose common columns are arguments.
// OR FAIL spares the copy of every page that it changes: who runs it takes back
// the transaction if it fails.
const sqlSQLiteFeed = `INSERT OR FAIL INTO usage_row (` + usageColumns + `)
SELECT id, $2, key_id, $3, $4, $5, $6, $7, $8, $9, $10, $11, attribution, $12, $13, quantities, total_tokens, cost, stated_cost, $14,
  latency_ms, first_byte_ms, created_at, wallet_markup, wallet_debit
FROM temp.feed_row
WHERE group_number = $1
ON CONFLICT (client_id, created_at, id) DO NOTHING
-- sqlSQLiteFeed`

// sqlSQLiteFeedSmall inserts all small groups. The limit keeps SQLite from
// asking for the group's columns anew for each of its rows.
const sqlSQLiteFeedSmall = `INSERT OR FAIL INTO usage_row (` + usageColumns + `)
SELECT r.id, g.client_id, r.key_id, g.sub_account_id, g.provider, g.model, g.slug, g.author, g.kind, g.region, g.door,
  g.via_sdk, r.attribution, g.status_code, g.parse_status, r.quantities, r.total_tokens, r.cost, r.stated_cost, g.price_label, r.latency_ms,
  r.first_byte_ms, r.created_at, r.wallet_markup, r.wallet_debit
FROM (
  SELECT rowid AS number, client_id, sub_account_id, provider, model, slug, author, kind, region, door, via_sdk,
    status_code, parse_status, price_label
  FROM temp.feed_group
  LIMIT -1) AS g
CROSS JOIN temp.feed_row AS r
WHERE r.group_number = g.number
ON CONFLICT (client_id, created_at, id) DO NOTHING
-- sqlSQLiteFeedSmall`

// feedLarge is from how many rows on a group has a statement of its own.
const feedLarge = 16

func newUsageFeed(y *yield.Yielder) *usageFeed {
	return &usageFeed{yielder: y, tuples: sqlite.NewTuples(y)}
}

// modules are for the pool that writes.
func (f *usageFeed) modules() []sqlite.Module {
	return []sqlite.Module{{Name: feedModule, Module: f, Tables: []string{sqlSQLiteFeedGroups, sqlSQLiteFeedRows}}, f.tuples.Module()}
}

// errKnown says that some of a batch's rows are there already: the feed
// cannot tell which.
var errKnown = errors.New("rows of the batch are booked already")

// insert is a usageInsertion of all rows or none: it fails with errKnown where
// there is one already.
func (f *usageFeed) insert(ctx context.Context, tx *sql.Tx, rows []modelgate.UsageRow, inserted func(*modelgate.UsageRow)) error {
	if len(rows) == 0 {
		return nil
	}
	defer f.clear()
	f.fill(rows)
	f.loop = f.yielder.Loop()
	var n int64
	for i, g := range f.groups[:f.small] {
		added, err := f.run(ctx, tx, sqlSQLiteFeed, append([]any{i}, g.common()...)...)
		if err != nil {
			return err
		}
		n += added
	}
	if f.small < len(f.groups) {
		added, err := f.run(ctx, tx, sqlSQLiteFeedSmall)
		if err != nil {
			return err
		}
		n += added
	}
	if n != int64(len(rows)) {
		return errKnown
	}
	for i := range rows {
		inserted(&rows[i])
	}
	return nil
}

// clear forgets what was handed over.
func (f *usageFeed) clear() { *f = usageFeed{yielder: f.yielder, tuples: f.tuples} }

func (f *usageFeed) run(ctx context.Context, tx *sql.Tx, text string, args ...any) (int64, error) {
	r, err := tx.ExecContext(ctx, text, args...)
	if err != nil {
		return 0, cmp.Or(f.err, err)
	}
	return r.RowsAffected()
}

// feedKey is what the rows of a group have in common.
type feedKey struct {
	client                                      modelgate.ClientID
	subAccount                                  modelgate.SubAccountID
	provider, model, slug, author, region, door string
	kind                                        modelgate.ModelKind
	viaSDK                                      bool
	status                                      int
	parsed                                      modelgate.ParseStatus
	price                                       string
}

func feedKeyOf(r *modelgate.UsageRow) feedKey {
	b, e := &r.CallBegin, &r.CallEnd
	return feedKey{b.ClientID, b.SubAccountID, b.Provider, b.Model, b.Slug, b.Author, b.Region, b.Door, b.Kind, b.ViaSDK, e.StatusCode,
		e.ParseStatus, e.PriceLabel}
}

// common are the columns of feed_group.
func (g feedGroup) common() []any {
	b, e := &g[0].CallBegin, &g[0].CallEnd
	viaSDK := int64(0)
	if b.ViaSDK {
		viaSDK = 1
	}
	return []any{sqldb.Clean(string(b.ClientID)), sqldb.Clean(string(b.SubAccountID)), sqldb.Clean(b.Provider), sqldb.Clean(b.Model), sqldb.Clean(b.Slug),
		sqldb.Clean(b.Author), sqldb.Clean(string(b.Kind)), sqldb.Clean(b.Region), sqldb.Clean(b.Door), viaSDK, int64(e.StatusCode), sqldb.Clean(string(e.ParseStatus)),
		sqldb.Clean(e.PriceLabel)}
}

// fill takes rows in: large groups first, and those of one client together.
func (f *usageFeed) fill(rows []modelgate.UsageRow) {
	numbers := make(map[feedKey]int)
	last, lastKey := -1, feedKey{}
	for i := range rows {
		r := &rows[i]
		if key := feedKeyOf(r); last < 0 || key != lastKey {
			n, known := numbers[key]
			if !known {
				n = len(f.groups)
				numbers[key] = n
				f.groups = append(f.groups, nil)
			}
			last, lastKey = n, key
		}
		f.groups[last] = append(f.groups[last], r)
	}
	for _, g := range f.groups {
		slices.SortFunc(g, func(a, b *modelgate.UsageRow) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	}
	f.small = 0
	for i, g := range f.groups {
		if len(g) >= feedLarge {
			f.groups[i], f.groups[f.small] = f.groups[f.small], g
			f.small++
		}
	}
	byClient := func(a, b feedGroup) int { return cmp.Compare(a[0].ClientID, b[0].ClientID) }
	slices.SortFunc(f.groups[:f.small], byClient)
	slices.SortFunc(f.groups[f.small:], byClient)
}

// Create implements vtab.Module.
func (f *usageFeed) Create(ctx vtab.Context, args []string) (vtab.Table, error) {
	if slices.Contains(args[3:], "group") {
		return feedTable{feed: f}, ctx.Declare(feedGroupTable)
	}
	return feedTable{feed: f, rows: true}, ctx.Declare(feedRowTable)
}

// Connect implements vtab.Module.
func (f *usageFeed) Connect(ctx vtab.Context, args []string) (vtab.Table, error) {
	return f.Create(ctx, args)
}

// feedTable is one of the two tables.
type feedTable struct {
	feed *usageFeed
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

// feedGroups walks over the small groups.
type feedGroups struct {
	feed   *usageFeed
	at     int
	common []any // of the present one
}

// Filter implements vtab.Cursor.
func (c *feedGroups) Filter(int, string, []vtab.Value) error {
	c.at = c.feed.small - 1
	return c.Next()
}

// Next implements vtab.Cursor.
func (c *feedGroups) Next() error {
	if c.at++; !c.Eof() {
		c.common = c.feed.groups[c.at].common()
	}
	return nil
}

// Eof implements vtab.Cursor.
func (c *feedGroups) Eof() bool { return c.at >= len(c.feed.groups) }

// Column implements vtab.Cursor.
func (c *feedGroups) Column(i int) (vtab.Value, error) { return c.common[i], nil }

// Rowid implements vtab.Cursor.
func (c *feedGroups) Rowid() (int64, error) { return int64(c.at), nil }

// Close implements vtab.Cursor.
func (c *feedGroups) Close() error { return nil }

// feedRows walks over the rows of a group.
type feedRows struct {
	feed  *usageFeed
	rows  feedGroup // from the present one on
	seen  int       // in all groups
	room  []byte
	texts string
	end   int // of the attribution in texts, the quantities follow
}

// Filter implements vtab.Cursor.
func (c *feedRows) Filter(_ int, _ string, args []vtab.Value) error {
	number, _ := args[0].(int64)
	c.rows = c.feed.groups[number]
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
	c.seen++
	c.feed.loop.Step()
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
		return sqldb.Clean(string(r.KeyID)), nil
	case 2:
		return c.texts[:c.end], nil
	case 3:
		return c.texts[c.end:], nil
	case 4:
		return r.Usage.TotalTokens(), nil
	case 5:
		return int64(r.Cost), nil
	case 6:
		return statedCost(&r.CallEnd), nil
	case 7:
		return r.LatencyMS, nil
	case 8:
		return r.FirstByteMS, nil
	case 9:
		return sqldb.Micros(r.At), nil
	case 10:
		return walletMarkup(&r.CallBegin), nil
	case 11:
		return int64(r.Debit(r.Cost)), nil
	}
	return nil, nil
}

// Rowid implements vtab.Cursor.
func (c *feedRows) Rowid() (int64, error) { return int64(c.seen), nil }

// Close implements vtab.Cursor.
func (c *feedRows) Close() error { return nil }
