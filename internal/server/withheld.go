package server

import (
	"log/slog"
	"sync/atomic"
	"time"
)

// withheldEvery is how often the log tells of what was withheld from it.
const withheldEvery = time.Minute

// withheld stands in for the output of the standard logger, which libraries write
// to, net/http among them, and which may quote what a provider has sent: it counts
// the lines and drops their text. Safe for concurrent use.
type withheld struct {
	log   *slog.Logger
	lines atomic.Int64
	told  atomic.Int64 // when the log was told, in nanoseconds; 0: never
}

// Write takes one line. It never fails.
func (w *withheld) Write(line []byte) (int, error) {
	n, now, told := w.lines.Add(1), time.Now().UnixNano(), w.told.Load()
	if (told == 0 || now-told >= int64(withheldEvery)) && w.told.CompareAndSwap(told, now) {
		w.log.Warn("a library wrote to the standard logger; its text is withheld, for it may quote a provider", "lines", n)
	}
	return len(line), nil
}
