package sqldb

import (
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// Never is how a missing expiry is stored: it sorts after every instant.
const Never = math.MaxInt64

// Stored is t as it will be read back.
func Stored(t time.Time) time.Time { return Instant(Micros(t)) }

// Expiry stores an instant after which something ends, zero meaning never.
func Expiry(t time.Time) int64 {
	if t.IsZero() {
		return Never
	}
	return t.UnixMicro()
}

func Expires(us int64) time.Time {
	if us == Never {
		return time.Time{}
	}
	return Instant(us)
}

// JSON encodes v as JSON.
func JSON(v any) (string, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrValue, err)
	}
	return string(b), nil
}

// Document scans a JSON column into what it points at.
type Document struct{ Into any }

// Scan implements sql.Scanner.
func (d Document) Scan(src any) error {
	switch v := src.(type) {
	case string:
		return json.Unmarshal([]byte(v), d.Into)
	case []byte:
		return json.Unmarshal(v, d.Into)
	}
	return fmt.Errorf("a JSON column holds %T", src)
}

// Moment scans a column of microseconds.
type Moment struct{ Into *time.Time }

// Scan implements sql.Scanner.
func (m Moment) Scan(src any) error {
	us, ok := src.(int64)
	if !ok {
		return fmt.Errorf("a column of microseconds holds %T", src)
	}
	*m.Into = Instant(us)
	return nil
}

// Cursor is a place in a list that is ordered by time and then id, newest
// first: the last entry of the page before. Its time has microseconds.
type Cursor struct {
	At time.Time
	ID string
}

// Bound is the bound that a query compares (created_at, id) with; without a
// cursor it lies past every row.
func (c *Cursor) Bound() (int64, string) {
	if c == nil {
		return math.MaxInt64, ""
	}
	return Micros(c.At), c.ID
}

// Page cuts the row that was fetched beyond the limit to learn whether there
// are more.
func Page[T any](rows []T, limit int) ([]T, bool) {
	if limit > 0 && len(rows) > limit {
		return rows[:limit], true
	}
	return rows, false
}

// Fetch is how many rows a query asks for; without a limit all of them.
func Fetch(limit int) int64 {
	if limit <= 0 {
		return math.MaxInt64
	}
	return int64(limit) + 1
}
