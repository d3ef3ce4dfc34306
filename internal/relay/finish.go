package relay

import (
	"net/http"
	"time"

	"modelgate"
	"modelgate/internal/provider"
)

// finish is the one exit of a call. It runs after a panic and after the
// client has gone, closes the books if the call has begun, and then releases
// what is left of the answer: the bare status of a transport failure, or the
// end of the body. A reply that was cut is cut for the client too, and so is
// one whose END failed.
func (y *Relay) finish(c *call) {
	defer c.pass.Release()
	defer c.room.Leave()
	if !c.begun {
		c.hold.Release()
		if c.errand == nil {
			return
		}
	}
	c.client.close()
	replied := c.meter != nil
	if replied {
		defer c.meter.Close()
	}
	y.end(c)
	switch {
	case c.cut:
		panic(http.ErrAbortHandler)
	case !replied && c.status != 0 && c.status != statusClientGone:
		c.w.WriteHeader(c.status)
	}
}

// end writes the END entry, once. It is written even where reading the usage
// panics: a provider's bytes must not keep a call off the books.
func (y *Relay) end(c *call) {
	if c.ended || !c.begun { // an errand is not booked
		return
	}
	c.ended, c.closing = true, time.Now()
	end := c.outcome(c.closing)
	end.ParseStatus = modelgate.ParseUnknown
	defer y.settle(c, &end)
	defer func() {
		if err := y.Books.End(c.id, &end); err != nil {
			c.cut = true // nobody may hold an answer that is not in the books
			y.Log.Error("usage could not be made durable", "request_id", c.id.String(), "error", err)
		}
		y.Metrics.done(c, &end)
		y.trace(c, &end)
	}()
	c.charge(&end)
	c.provide(&end)
}

// outcome is how the call has come out by now, but for what it used.
func (c *call) outcome(now time.Time) modelgate.CallEnd {
	a := &c.attempts[c.tried]
	end := modelgate.CallEnd{StatusCode: c.status, LatencyMS: now.Sub(c.start).Milliseconds()}
	if c.status == 0 {
		end.StatusCode = http.StatusInternalServerError // the gateway failed before it had an answer
	}
	if !c.firstByte.IsZero() {
		end.FirstByteMS = c.firstByte.Sub(c.start).Milliseconds()
	}
	if c.tried > 0 {
		end.Provider, end.Model, end.Region = a.name, a.model, a.provider.Region()
	}
	return end
}

// charge fills in what the call used and what that costs.
func (c *call) charge(end *modelgate.CallEnd) {
	var source knowledge
	if c.free {
		source = uncharged
	} else {
		end.Usage, source = c.usage()
	}
	if source == uncharged {
		end.ParseStatus = modelgate.ParseOK
		return
	}
	var priced modelgate.Priced
	end.Cost, priced, end.PriceLabel = c.attempts[c.tried].price.Cost(&end.Usage, c.id.Time())
	switch {
	case source == blind && end.Cost == 0:
		end.ParseStatus = modelgate.ParseUnknown
	case source == stated && priced == modelgate.FullyPriced:
		end.ParseStatus = modelgate.ParseOK
	default:
		end.ParseStatus = modelgate.ParsePartial
	}
}

// knowledge says where a usage comes from.
type knowledge uint8

const (
	blind     knowledge = iota // nothing could be read
	estimated                  // counted from bytes, or only part of the reply's figures
	stated                     // the reply's own figures, whole
	uncharged                  // a refusal without usage, or a request that was not sent
)

// usage is the best supported lower estimate of what the call used: what the
// reply stated, else tokens estimated from the bytes of the request if it was
// sent, and of the reply if it came whole.
func (c *call) usage() (modelgate.Usage, knowledge) {
	if c.meter != nil {
		switch usage, seen := c.meter.Result(); seen {
		case provider.All:
			return usage, stated
		case provider.Some:
			return usage, estimated
		}
	}
	if !c.sent || c.meter != nil && c.status >= 300 {
		return modelgate.Usage{}, uncharged
	}
	a := &c.attempts[c.tried]
	if a.reader == nil || a.model == "" || !tokens(c.kind()) || c.unreadable {
		return modelgate.Usage{}, blind
	}
	usage := modelgate.Usage{Input: provider.EstimateTokens(a.size)}
	if c.model != nil && c.model.ContextLength > 0 {
		usage.Input = min(usage.Input, c.model.ContextLength) // pictures within a body are not text
	}
	if c.whole && c.kind() != modelgate.Embedding {
		usage.Output = c.estimateOutput()
	}
	return usage, estimated
}

const (
	// eventMark stands in each event of a stream once, or a little more often
	// where the text holds it.
	eventMark = "data:"
	// silentEvents of a stream carry no text: the first, the one with the
	// finish reason, and [DONE].
	silentEvents = 3
)

// estimateOutput guesses the tokens of a reply that does not state them. The
// events of a stream are mostly frame, so they count as a token each.
func (c *call) estimateOutput() int64 {
	if c.stream {
		return min(max(c.events-silentEvents, 0), provider.EstimateTokens(c.replied))
	}
	return provider.EstimateTokens(c.replied)
}

// tokens reports whether models of the kind are charged by the token. A
// model that is not catalogued is taken for one.
func tokens(k modelgate.ModelKind) bool {
	return k == modelgate.LLM || k == modelgate.Embedding || k == ""
}
