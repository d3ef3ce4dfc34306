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
// end of the body. A reply that was cut is cut for the client too.
func (y *Relay) finish(c *call) {
	defer c.pass.Release()
	if !c.begun {
		return
	}
	c.client.close()
	replied := c.meter != nil
	y.end(c)
	if replied {
		c.meter.Close()
	}
	switch {
	case c.cut:
		panic(http.ErrAbortHandler)
	case !replied && c.status != 0 && c.status != statusClientGone:
		c.w.WriteHeader(c.status)
	}
}

// end writes the END entry, once.
func (y *Relay) end(c *call) {
	if c.ended {
		return
	}
	c.ended = true
	end := y.closing(c)
	if err := y.Books.End(c.id, &end); err != nil {
		y.Log.Error("usage could not be made durable", "request_id", c.id.String(), "error", err)
	}
	y.Metrics.done(c, &end)
}

// closing is how the call came out.
func (y *Relay) closing(c *call) modelgate.CallEnd {
	a := &c.attempts[c.tried]
	end := modelgate.CallEnd{StatusCode: c.status, LatencyMS: time.Since(c.start).Milliseconds()}
	if c.status == 0 {
		end.StatusCode = http.StatusInternalServerError // the gateway failed before it had an answer
	}
	if !c.firstByte.IsZero() {
		end.FirstByteMS = c.firstByte.Sub(c.start).Milliseconds()
	}
	if c.tried > 0 {
		end.Provider, end.Model, end.Region = a.name, a.model, a.provider.Region()
	}
	if c.free {
		end.ParseStatus = modelgate.ParseOK
		return end
	}
	var source knowledge
	end.Usage, source = c.usage()
	if source == uncharged {
		end.ParseStatus = modelgate.ParseOK
		return end
	}
	var priced modelgate.Priced
	end.Cost, priced, end.PriceLabel = a.price.Cost(&end.Usage, c.id.Time())
	switch {
	case source == blind && priced != modelgate.FullyPriced, source == blind && end.Cost == 0:
		end.ParseStatus = modelgate.ParseUnknown
	case source == stated && priced == modelgate.FullyPriced:
		end.ParseStatus = modelgate.ParseOK
	default:
		end.ParseStatus = modelgate.ParsePartial
	}
	return end
}

// knowledge says where a usage comes from.
type knowledge uint8

const (
	blind     knowledge = iota // nothing could be read
	estimated                  // counted from bytes, or only part of the reply's figures
	stated                     // the reply's own figures, whole
	uncharged                  // an error without usage, or a request that was not sent
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
	if !c.sent || c.meter != nil && c.status >= 400 {
		return modelgate.Usage{}, uncharged
	}
	a := &c.attempts[c.tried]
	if a.reader == nil || a.model == "" || !tokens(c.kind()) {
		return modelgate.Usage{}, blind
	}
	usage := modelgate.Usage{Input: provider.EstimateTokens(int64(len(a.out.Body)))}
	if c.meter != nil && !c.cut {
		usage.Output = provider.EstimateTokens(c.replied)
	}
	return usage, estimated
}

// tokens reports whether models of the kind are charged by the token. A
// model that is not catalogued is taken for one.
func tokens(k modelgate.ModelKind) bool {
	return k == modelgate.LLM || k == modelgate.Embedding || k == ""
}
