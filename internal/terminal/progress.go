package terminal

import (
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/mattn/go-runewidth"
)

const (
	// progressAfter spares quick work the line.
	progressAfter = time.Second
	progressEvery = 200 * time.Millisecond
)

// Sample is how far long work is.
type Sample struct {
	Part  string // what is being done, such as the table that is copied
	Done  int64  // in units
	Total int64  // 0: unknown
}

// Meter takes samples from whoever works and hands them to Watch. The zero
// value is ready. Safe for concurrent use.
type Meter struct {
	mu   sync.Mutex
	last Sample
}

// Set notes how far a part is.
func (m *Meter) Set(part string, done, total int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last = Sample{part, done, total}
}

// Sample is what was noted last.
func (m *Meter) Sample() Sample {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last
}

// Watch shows how far work is, in the last line of a terminal, from the first
// second on until stop is called. Elsewhere it shows nothing. Unit names what is
// counted: bytes, rows.
func (t Terminal) Watch(unit string, sample func() Sample) (stop func()) {
	if !t.Interactive() {
		return func() {}
	}
	done := make(chan struct{})
	var ended sync.WaitGroup
	ended.Go(func() { t.watch(unit, sample, done) })
	return sync.OnceFunc(func() {
		close(done)
		ended.Wait()
	})
}

func (t Terminal) watch(unit string, sample func() Sample, done <-chan struct{}) {
	const eraseLine = "\r\x1b[K"
	began, first := time.Now(), sample()
	timer := time.NewTimer(progressAfter)
	defer timer.Stop()
	shown := false
	for {
		select {
		case <-done:
			if shown {
				fmt.Fprint(t.w, eraseLine)
			}
			return
		case <-timer.C:
		}
		now := sample()
		if now.Part != first.Part {
			began, first = time.Now(), now
		}
		line := progressLine(now, now.Done-first.Done, time.Since(began), unit)
		fmt.Fprint(t.w, eraseLine+runewidth.Truncate(line, t.columns-1, "…"))
		shown = true
		timer.Reset(progressEvery)
	}
}

// progressLine says which part is at work, how much of it is done, at what rate,
// and how long the rest takes. Since is what was done within elapsed.
func progressLine(s Sample, since int64, elapsed time.Duration, unit string) string {
	line := fmt.Sprintf("%s: %s", s.Part, grouped(s.Done))
	if s.Total > 0 {
		line += " of " + grouped(s.Total)
	}
	line += " " + unit
	rate := float64(since) / max(elapsed.Seconds(), 1e-3)
	if rate <= 0 {
		return line
	}
	if rate >= 10 {
		rate = math.Round(rate)
		line += fmt.Sprintf(", %s/s", grouped(int64(rate)))
	} else {
		line += fmt.Sprintf(", %.1f/s", rate)
	}
	if left := s.Total - s.Done; s.Total > 0 && left >= 0 {
		line += fmt.Sprintf(", %s left", time.Duration(float64(left)/rate*float64(time.Second)).Round(time.Second))
	}
	return line
}

// grouped is a number with its digits in groups of three.
func grouped(n int64) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return grouped(n/1000) + fmt.Sprintf(",%03d", n%1000)
}
