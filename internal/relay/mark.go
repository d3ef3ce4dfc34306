package relay

import (
	"time"

	"modelgate"
	"modelgate/internal/provider"
)

const (
	// firstLooks are how many pieces of a stream are looked at as they come:
	// some providers state the input in the first event. From then on a look
	// is taken once in lookEvery, because it costs as much as a small event.
	firstLooks = 4
	lookEvery  = 250 * time.Millisecond
)

// marks remembers what was noted of a stream under way.
type marks struct {
	looks int
	last  time.Time
	usage modelgate.Usage
}

// mark notes what the stream has stated so far, where that is news, so that a
// death of the process leaves a row that knows it.
func (y *Relay) mark(c *call) {
	m := &c.marks
	now := time.Now()
	if m.looks >= firstLooks && now.Sub(m.last) < lookEvery {
		return
	}
	m.looks++
	m.last = now
	usage, seen := c.meter.Result()
	if seen == provider.Nothing || usage == m.usage {
		return
	}
	m.usage = usage
	end := c.outcome(now)
	c.charge(&end)
	y.Books.Mark(c.id, &end)
}
