package simulator

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"
)

// Served is what the simulator did for one request: the provider's side of the
// bill. The counts are those of the whole answer, also when it was cut short.
type Served struct {
	Seq    int64  `json:"seq"`              // 1, 2, … in order of arrival at one simulator
	Marker string `json:"marker,omitempty"` // the value of [[mark=…]]; polls carry their job's
	Method string `json:"method"`
	Path   string `json:"path"`            // as received, decoded
	Model  string `json:"model,omitempty"` // as received
	Status int    `json:"status"`          // 0: the connection was closed before the status line

	InputTokens        int64   `json:"input_tokens,omitempty"` // uncached
	CachedTokens       int64   `json:"cached_tokens,omitempty"`
	CacheWriteTokens   int64   `json:"cache_write_tokens,omitempty"`
	CacheWrite1hTokens int64   `json:"cache_write_1h_tokens,omitempty"`
	OutputTokens       int64   `json:"output_tokens,omitempty"`    // reasoning included
	ReasoningTokens    int64   `json:"reasoning_tokens,omitempty"` // part of OutputTokens
	Images             int     `json:"images,omitempty"`
	Seconds            float64 `json:"seconds,omitempty"`    // of sound or video
	Characters         int     `json:"characters,omitempty"` // code points spoken
	SearchUnits        int     `json:"search_units,omitempty"`

	Job       string `json:"job,omitempty"`        // the provider's id of the job made or asked for
	JobStatus string `json:"job_status,omitempty"` // its status after this request, in the simulator's words

	// Usage says that the client was sent the usage the provider states.
	Usage bool `json:"usage,omitempty"`
	// Complete says that the whole answer was handed to a connection whose
	// other end was, as far as known, still there.
	Complete bool  `json:"complete"`
	Chunks   int   `json:"chunks,omitempty"` // frames of a stream handed over
	Bytes    int64 `json:"bytes"`            // of the body handed over, after compression

	Header http.Header `json:"header,omitempty"` // of the request, with Options.KeepRequests
	Body   []byte      `json:"body,omitempty"`   // of the request, with Options.KeepRequests
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

// File is a Ledger that appends one line of JSON a record to a file, each in
// one write, so that several processes can share it and a killed one loses
// nothing it recorded.
type File struct {
	mu  sync.Mutex
	f   *os.File
	err error
}

// OpenFile opens the ledger at path, creating it if it is not there.
func OpenFile(path string) (*File, error) {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open upstream ledger: %w", err)
	}
	return &File{f: f}, nil
}

// Record implements Ledger. The first failure is kept for Close.
func (l *File) Record(s Served) {
	line, err := json.Marshal(s)
	if err == nil {
		_, err = l.f.Write(append(line, '\n'))
	}
	if err != nil {
		l.mu.Lock()
		if l.err == nil {
			l.err = err
		}
		l.mu.Unlock()
	}
}

// Close closes the file. It returns the first failure to record, too.
func (l *File) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := errors.Join(l.err, l.f.Close()); err != nil {
		return fmt.Errorf("upstream ledger: %w", err)
	}
	return nil
}

// ReadFile reads the ledger at path. A last line without its end, which a
// killed machine can leave, is not a record.
func ReadFile(path string) ([]Served, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read upstream ledger: %w", err)
	}
	defer f.Close()
	var records []Served
	for r := bufio.NewReader(f); ; {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return records, nil
		}
		if err != nil {
			return records, fmt.Errorf("read upstream ledger: %w", err)
		}
		var s Served
		if err := json.Unmarshal(bytes.TrimSpace(line), &s); err != nil {
			return records, fmt.Errorf("read upstream ledger, record %d: %w", len(records)+1, err)
		}
		records = append(records, s)
	}
}
