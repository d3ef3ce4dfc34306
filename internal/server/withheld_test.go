package server

import (
	"bytes"
	"log"
	"log/slog"
	"strings"
	"testing"
)

// TestStandardLoggerIsWithheld: what a library logs by itself is counted, told of
// once, and not repeated.
func TestStandardLoggerIsWithheld(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	w := &withheld{log: slog.New(slog.NewTextHandler(&text, nil))}
	library := log.New(w, "", 0)
	for range 3 {
		library.Printf("Unsolicited response starting with %q", "a tenant's reply")
	}
	if got := text.String(); strings.Contains(got, "tenant") || strings.Count(got, "withheld") != 1 || w.lines.Load() != 3 {
		t.Errorf("%d lines, the log has %q", w.lines.Load(), got)
	}
}
