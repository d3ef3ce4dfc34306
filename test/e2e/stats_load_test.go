package e2e

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"modelgate"
	"modelgate/internal/store"
	"modelgate/internal/store/stats"
)

// history is usage of one organization over many days, made rather than
// booked: rows of the real schema by the fastest way that a database has, and
// rollups by the program's own code.
type history struct {
	t        *testing.T
	world    *world
	db       *store.DB
	now      time.Time
	days     int
	customer string // a sub-account, and a key that is bound to it
	custKey  string
	rows     int
}

const (
	historyProviders   = 4
	historyModels      = 40
	historySubAccounts = 20
	historyKeys        = 200
	historyValues      = 1000 // of each of three attribution keys
)

// usageColumns of the table, as the loader fills them.
func usageColumns() []string {
	return []string{"id", "client_id", "key_id", "sub_account_id", "provider", "model", "slug", "author", "kind", "region", "door",
		"via_sdk", "attribution", "status_code", "parse_status", "quantities", "total_tokens", "cost", "stated_cost", "price_label", "latency_ms",
		"first_byte_ms", "created_at"}
}

// historyProvider is where the n-th share of calls goes: the first has most,
// the last one call of a thousand.
func historyProvider(r *rand.Rand) string {
	switch n := r.IntN(1000); {
	case n < 600:
		return "provider-0"
	case n < 900:
		return "provider-1"
	case n < 999:
		return "provider-2"
	}
	return "provider-3"
}

func historyStatus(r *rand.Rand) modelgate.ParseStatus {
	switch n := r.IntN(10000); {
	case n < 9500:
		return modelgate.ParseOK
	case n < 9990:
		return modelgate.ParsePartial
	}
	return modelgate.ParseUnknown
}

// historyID is a UUIDv7 of an instant.
func historyID(at time.Time, r *rand.Rand) modelgate.UUID {
	var id modelgate.UUID
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(at.UnixMilli()))
	copy(id[:6], ms[2:])
	binary.BigEndian.PutUint64(id[8:], r.Uint64())
	binary.BigEndian.PutUint16(id[6:], 0x7000|uint16(r.Uint32()&0xfff))
	id[8] = id[8]&0x3f | 0x80
	return id
}

// call makes the n-th call of the client at an instant.
func (h *history) call(at time.Time, r *rand.Rand) modelgate.UsageRow {
	b := modelgate.CallBegin{
		ID: historyID(at, r), At: at, ClientID: h.world.client, KeyID: modelgate.KeyID(fmt.Sprintf("key-%d", r.IntN(historyKeys))),
		Provider: historyProvider(r), Kind: modelgate.LLM, Region: [...]string{"us", "eu-west", ""}[r.IntN(3)], Door: "/v1/chat/completions",
		Attribution: map[string]string{
			"team": fmt.Sprint("team-", r.IntN(historyValues)), "user": fmt.Sprint("user-", r.IntN(historyValues)),
			"feature": fmt.Sprint("feature-", r.IntN(historyValues)),
		},
	}
	model := r.IntN(historyModels)
	if b.Model = fmt.Sprint("model-", model); model%4 > 0 {
		b.Author = fmt.Sprint("author-", model%7)
		b.Slug = b.Author + "/" + b.Model
	}
	switch sub := r.IntN(2 * historySubAccounts); {
	case sub == 0:
		b.SubAccountID = modelgate.SubAccountID(h.customer)
	case sub < historySubAccounts:
		b.SubAccountID = modelgate.SubAccountID(fmt.Sprintf("sub-%d", sub))
	}
	if r.IntN(5) == 0 {
		delete(b.Attribution, "feature")
	}
	return modelgate.Row(b, modelgate.CallEnd{
		StatusCode: 200, ParseStatus: historyStatus(r), Usage: modelgate.Usage{Input: r.Int64N(2000), Output: r.Int64N(500)},
		Cost: modelgate.Nano(r.Int64N(10_000_000)), PriceLabel: "input=0.25 output=2", LatencyMS: r.Int64N(5000), FirstByteMS: 40,
	})
}

// values are those of the columns.
func historyColumns(r *modelgate.UsageRow) []any {
	b := &r.CallBegin
	pairs := "{"
	for k, v := range b.Attribution {
		if pairs != "{" {
			pairs += ","
		}
		pairs += `"` + k + `":"` + v + `"`
	}
	return []any{b.ID.String(), string(b.ClientID), string(b.KeyID), string(b.SubAccountID), b.Provider, b.Model, b.Slug, b.Author,
		string(b.Kind), b.Region, b.Door, b.ViaSDK, pairs + "}", int64(r.StatusCode), string(r.ParseStatus),
		fmt.Sprintf(`{"input":%d,"output":%d}`, r.Usage.Input, r.Usage.Output), r.Usage.TotalTokens(), int64(r.Cost), nil, r.PriceLabel,
		r.LatencyMS, r.FirstByteMS, b.At.UnixMicro()}
}

// add loads more rows, evenly over all days, and rolls everything up.
func (h *history) add(n int) {
	h.t.Helper()
	began := time.Now()
	span := time.Duration(h.days) * 24 * time.Hour
	step := span / time.Duration(n)
	random := rand.New(rand.NewPCG(uint64(h.rows), 1))
	first := h.now.Add(-span)
	made := 0
	next := func() []any {
		if made == n {
			return nil
		}
		at := first.Add(time.Duration(made)*step + rand.N(step)).Truncate(time.Microsecond)
		made++
		row := h.call(at, random)
		return historyColumns(&row)
	}
	raw, err := sql.Open(h.world.driver, h.world.source)
	if err != nil {
		h.t.Fatal(err)
	}
	defer raw.Close()
	raw.SetMaxOpenConns(1)
	indexes := h.dropIndexes(raw)
	if h.world.driver == "pgx" {
		h.copyIn(next)
	} else {
		h.insert(raw, next)
	}
	for _, index := range indexes {
		h.exec(raw, index)
	}
	loaded := time.Since(began)
	h.rows += n
	if h.world.driver == "pgx" {
		h.exec(raw, "VACUUM ANALYZE usage_row")
	}
	h.rollUp(raw)
	fmt.Fprintf(h.t.Output(), "%d rows loaded in %v, %d rolled up in %v\n", n, loaded.Round(time.Second), h.rows, (time.Since(began) - loaded).Round(time.Second))
}

// rollUp makes all rollups anew, a day at a time.
func (h *history) rollUp(db *sql.DB) {
	h.t.Helper()
	h.exec(db, "DELETE FROM rollup")
	rollups := stats.Rollups{Rows: 1}
	if h.world.driver == "pgx" {
		rollups.Rows = 64
	}
	day := h.now.Truncate(24 * time.Hour).UnixMicro()
	for range h.days + 1 {
		tx, err := db.BeginTx(h.t.Context(), nil)
		if err != nil {
			h.t.Fatal(err)
		}
		t := make(stats.Tallies)
		err = stats.EachCall(h.t.Context(), tx, h.world.client, "", stats.Gap{From: day, To: day + stats.DayMicros}, func(c *stats.Call) error {
			t.Add(c)
			return nil
		})
		if err == nil {
			err = rollups.Add(h.t.Context(), tx, t)
		}
		if err = errors.Join(err, tx.Commit()); err != nil {
			h.t.Fatal(err)
		}
		day -= stats.DayMicros
	}
}

func (h *history) exec(db *sql.DB, query string) {
	h.t.Helper()
	if _, err := db.ExecContext(h.t.Context(), query); err != nil {
		h.t.Fatalf("%s: %v", query, err)
	}
}

// dropIndexes drops the secondary indexes of the table and returns what makes
// them again.
func (h *history) dropIndexes(db *sql.DB) (again []string) {
	h.t.Helper()
	query := "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND tbl_name = 'usage_row' AND sql IS NOT NULL"
	if h.world.driver == "pgx" {
		query = "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'usage_row' AND indexname <> 'usage_row_pkey'"
	}
	rows, err := db.QueryContext(h.t.Context(), query)
	if err != nil {
		h.t.Fatal(err)
	}
	defer rows.Close()
	var names []string
	for rows.Next() {
		var name, text string
		if err := rows.Scan(&name, &text); err != nil {
			h.t.Fatal(err)
		}
		names, again = append(names, name), append(again, text)
	}
	if err := rows.Err(); err != nil || rows.Close() != nil || len(again) == 0 {
		h.t.Fatalf("indexes %v, %v", again, err)
	}
	for _, name := range names {
		h.exec(db, "DROP INDEX "+name)
	}
	return again
}

// copyIn loads rows with COPY.
func (h *history) copyIn(next func() []any) {
	h.t.Helper()
	conn, err := pgx.Connect(h.t.Context(), h.world.source)
	if err != nil {
		h.t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(h.t.Context()))
	_, err = conn.CopyFrom(h.t.Context(), pgx.Identifier{"usage_row"}, usageColumns(),
		pgx.CopyFromFunc(func() ([]any, error) { return next(), nil }))
	if err != nil {
		h.t.Fatal(err)
	}
}

// insert loads rows with a prepared statement.
func (h *history) insert(db *sql.DB, next func() []any) {
	h.t.Helper()
	h.exec(db, "PRAGMA synchronous = OFF")
	h.exec(db, "PRAGMA cache_size = -200000")
	query, marks := "INSERT INTO usage_row (", ") VALUES ("
	for i, c := range usageColumns() {
		if i > 0 {
			query, marks = query+", ", marks+", "
		}
		query, marks = query+c, marks+"?"
	}
	for more := true; more; {
		tx, err := db.Begin()
		if err != nil {
			h.t.Fatal(err)
		}
		stmt, err := tx.Prepare(query + marks + ")")
		if err != nil {
			h.t.Fatal(err)
		}
		for range 50_000 {
			values := next()
			if more = values != nil; !more {
				break
			}
			if _, err := stmt.Exec(values...); err != nil {
				h.t.Fatal(err)
			}
		}
		if err := tx.Commit(); err != nil {
			h.t.Fatal(err)
		}
	}
}

// openStore opens the database of a gateway that has stopped.
func (w *world) openStore() *store.DB {
	w.t.Helper()
	o := store.Options{URL: w.source}
	if w.driver == "sqlite" {
		o = store.Options{URL: "sqlite:" + filepath.Base(w.source), DataDir: filepath.Dir(w.source)}
	}
	db, err := store.Open(w.t.Context(), o)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = db.Close() })
	return db
}

// openRaw opens the database past the store.
func (w *world) openRaw() *sql.DB {
	w.t.Helper()
	db, err := sql.Open(w.driver, w.source)
	if err != nil {
		w.t.Fatal(err)
	}
	return db
}
