package simulator

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
)

// Served is what the simulator did for one request: the provider's side of the
// bill. The counts are those of the whole answer, also when it was cut short.
type Served struct {
	Seq    int64  // 1, 2, … in order of arrival at one simulator
	Marker string // the value of [[mark=…]]; polls carry their job's
	Method string
	Path   string // as received, decoded
	Model  string // as received
	Status int    // 0: the connection was closed before the status line

	InputTokens        int64 // uncached
	CachedTokens       int64
	CacheWriteTokens   int64
	CacheWrite1hTokens int64
	OutputTokens       int64 // reasoning included
	ReasoningTokens    int64 // part of OutputTokens
	Images             int
	Seconds            float64 // of sound or video
	Characters         int     // code points spoken
	SearchUnits        int

	Job       string // the provider's id of the job made or asked for
	JobStatus string // its status after this request, in the simulator's words

	// Usage says that the client was sent the usage the provider states.
	Usage bool
	// Complete says that the whole answer was handed to a connection whose
	// other end was, as far as known, still there.
	Complete bool
	Chunks   int   // frames of a stream handed over
	Bytes    int64 // of the body handed over, after compression

	Header http.Header // of the request, with Options.KeepRequests
	Body   []byte      // of the request, with Options.KeepRequests
}

// Ledger takes a record of each request served. Record is called from many
// goroutines, once a request, after the last byte was written and before the
// handler returns.
type Ledger interface {
	Record(Served)
}

// Memory is a Ledger that keeps everything. Its zero value is ready to use, by
// any number of goroutines.
type Memory struct {
	mu      sync.Mutex
	records []Served
	changed chan struct{} // closed at the next record; nil when nobody waits
}

// Record implements Ledger.
func (m *Memory) Record(s Served) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.records = append(m.records, s)
	if m.changed != nil {
		close(m.changed)
		m.changed = nil
	}
}

// All is a copy of the records in the order they were completed.
func (m *Memory) All() []Served {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.records)
}

// Len is the number of records.
func (m *Memory) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.records)
}

// Marked is the records that carry the marker.
func (m *Memory) Marked(marker string) []Served {
	m.mu.Lock()
	defer m.mu.Unlock()
	return marked(m.records, marker)
}

// Wait returns the records that carry the marker as soon as there are n. The
// error is the context's.
func (m *Memory) Wait(ctx context.Context, marker string, n int) ([]Served, error) {
	for {
		m.mu.Lock()
		found := marked(m.records, marker)
		if m.changed == nil {
			m.changed = make(chan struct{})
		}
		changed := m.changed
		m.mu.Unlock()
		if len(found) >= n {
			return found, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return found, fmt.Errorf("wait for %d records marked %q, have %d: %w", n, marker, len(found), ctx.Err())
		}
	}
}

func marked(records []Served, marker string) []Served {
	var found []Served
	for _, s := range records {
		if s.Marker == marker {
			found = append(found, s)
		}
	}
	return found
}
