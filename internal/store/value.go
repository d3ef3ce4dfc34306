package store

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"modelgate/internal/store/sqldb"
)

// never is how a missing expiry is stored: it sorts after every instant.
const never = math.MaxInt64

// stored is t as it will be read back.
func stored(t time.Time) time.Time { return sqldb.Instant(sqldb.Micros(t)) }

// expiry stores an instant after which something ends, zero meaning never.
func expiry(t time.Time) int64 {
	if t.IsZero() {
		return never
	}
	return t.UnixMicro()
}

func expires(us int64) time.Time {
	if us == never {
		return time.Time{}
	}
	return sqldb.Instant(us)
}

// text encodes v as JSON.
func text(v any) (string, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errValue, err)
	}
	return string(b), nil
}

// document scans a JSON column into what it points at.
type document struct{ into any }

// Scan implements sql.Scanner.
func (d document) Scan(src any) error {
	switch v := src.(type) {
	case string:
		return json.Unmarshal([]byte(v), d.into)
	case []byte:
		return json.Unmarshal(v, d.into)
	}
	return fmt.Errorf("a JSON column holds %T", src)
}

// moment scans a column of microseconds.
type moment struct{ into *time.Time }

// Scan implements sql.Scanner.
func (m moment) Scan(src any) error {
	us, ok := src.(int64)
	if !ok {
		return fmt.Errorf("a column of microseconds holds %T", src)
	}
	*m.into = sqldb.Instant(us)
	return nil
}

// Cursor is a place in a list that is ordered by time and then id, newest
// first: the last entry of the page before. Its time has microseconds.
type Cursor struct {
	At time.Time
	ID string
}

// before is the bound that a query compares (created_at, id) with; without a
// cursor it lies past every row.
func (c *Cursor) before() (int64, string) {
	if c == nil {
		return math.MaxInt64, ""
	}
	return sqldb.Micros(c.At), c.ID
}

// page cuts the row that was fetched beyond the limit to learn whether there
// are more.
func page[T any](rows []T, limit int) ([]T, bool) {
	if limit > 0 && len(rows) > limit {
		return rows[:limit], true
	}
	return rows, false
}

// fetch is how many rows a query asks for; without a limit all of them.
func fetch(limit int) int64 {
	if limit <= 0 {
		return math.MaxInt64
	}
	return int64(limit) + 1
}
