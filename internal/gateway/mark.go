package gateway

import (
	"time"

	"modelgate"
	"modelgate/internal/pricing"
	"modelgate/internal/provider/usage"
)

const (
	// firstLooks are how many pieces of a reply are looked at as they come:
	// some providers state the input in the first event. From then on a look
	// is taken once in lookEvery, because it costs as much as a small event,
	// and whenever a quarter of the cost that is marked has come on top of it.
	firstLooks = 4
	lookEvery  = 250 * time.Millisecond
	// unmarked is which part of the marked cost may be delivered on top of it:
	// so a MARK holds four fifths at least, and a reply has some dozens.
	unmarked = 4
)

// marks remembers what was noted of a reply under way.
type marks struct {
	looks int
	last  time.Time
	usage modelgate.Usage
	// next is how many tokens of output are delivered at most before a MARK
	// has to say so.
	next int64
}

// mark notes what the reply has stated and delivered so far, so that a death
// of the process leaves a row that knows it. It comes before the piece that
// it counts is passed on.
func (g *Gateway) mark(c *call) {
	m := &c.marks
	delivered := c.meter.Output()
	due := delivered > m.next
	now := time.Now()
	if !due && m.looks >= firstLooks && now.Sub(m.last) < lookEvery {
		return
	}
	m.looks++
	m.last = now
	used, seen := c.meter.Result()
	if !due && (seen == usage.Nothing || used == m.usage) {
		return
	}
	m.usage = used
	end := c.outcome(now)
	c.charge(&end)
	m.next = delivered + max(c.headroom(&end)/unmarked, 1)
	g.Books.Mark(c.id, &end)
}

// markSent notes that the call goes to another route than BEGIN says.
func (g *Gateway) markSent(c *call) {
	sent := c.estimateSent()
	end := c.outcome(time.Now())
	end.Usage.Input, end.Cost, end.PriceLabel = sent.Input, sent.Cost, sent.PriceLabel
	end.ParseStatus = modelgate.ParsePartial
	g.Books.Mark(c.id, &end)
}

// headroom is how many tokens of output cost as much as the call so far.
func (c *call) headroom(end *modelgate.CallEnd) int64 {
	more := end.Usage
	more.Output += 1_000_000
	dearer, _, _ := pricing.Cost(c.attempts[c.tried].price, &more, c.id.Time())
	if rate := int64(dearer - end.Cost); rate > 0 && end.Cost > 0 {
		return int64(float64(end.Cost) / float64(rate) * 1e6)
	}
	return end.Usage.TotalTokens()
}
