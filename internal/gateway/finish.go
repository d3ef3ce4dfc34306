package gateway

import (
	"net/http"
	"time"

	"modelgate"
	"modelgate/internal/pricing"
	"modelgate/internal/provider/usage"
)

// finish is the one exit of a call. It runs also after a panic, and after the
// client has gone. It writes END if the call has begun and deliver has not, and then
// sends what is left of the answer: the bare status of a transport failure, or the
// end of the body. A reply that was cut is cut for the client too, and so is
// one whose END failed.
func (g *Gateway) finish(c *call) {
	defer c.pass.Release()
	defer c.room.Release()
	defer c.entryRates.End()
	defer c.callRates.End()
	if !c.begun {
		c.reservation.Release()
		return
	}
	c.client.release()
	replied := c.meter != nil
	if replied {
		defer c.meter.Close()
	}
	g.recordEnd(c)
	switch {
	case c.cut:
		panic(http.ErrAbortHandler)
	case !replied && c.status != 0 && c.status != statusClientGone:
		c.w.WriteHeader(c.status)
	}
}

// recordEnd writes the END entry, once. It is written even where reading the usage
// panics: a provider's bytes must not keep a call off the books.
func (g *Gateway) recordEnd(c *call) {
	if c.ended {
		return
	}
	c.ended, c.closingAt = true, time.Now()
	end := c.outcome(c.closingAt)
	end.ParseStatus = modelgate.ParseUnknown
	defer g.settle(c, &end)
	defer func() {
		if err := g.Books.End(c.id, &end); err != nil {
			c.cut = true // nobody may hold an answer that is not in the books
			g.Log.Error("usage could not be made durable", "request_id", c.id.String(), "error", err)
		}
		if c.costOnAnswer && !c.cut {
			c.tellCost(&end)
		}
		g.Metrics.done(c, &end)
		g.trace(c, &end)
	}()
	c.charge(&end)
	if end.ParseStatus == modelgate.ParseOK && c.meter != nil && c.status < 300 {
		c.texts.learn(c.caller.ClientID, c.attempts[c.tried].routeName(), c.meter.Delivered(), &end.Usage)
	}
	c.bookJob(&end)
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
		end.Provider, end.Model, end.Region = a.name, a.model, a.region()
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
	switch {
	case c.spillover:
		end.Usage.ServiceTier = "spillover"
	case end.Usage.ServiceTier == "":
		end.Usage.ServiceTier = c.attempts[c.tried].tier
	}
	var priced pricing.Coverage
	end.Cost, priced, end.PriceLabel = c.cost(&end.Usage)
	if source == stated && c.meter != nil {
		priced = c.takeStated(end, priced)
	}
	switch {
	case source == blind && end.Cost == 0:
		end.ParseStatus = modelgate.ParseUnknown
	case source == stated && priced == pricing.FullyPriced:
		end.ParseStatus = modelgate.ParseOK
	default:
		end.ParseStatus = modelgate.ParsePartial
	}
	c.guessed = source == estimated
}

// knowledge says where a usage comes from.
type knowledge uint8

const (
	blind     knowledge = iota // nothing could be read
	estimated                  // counted from bytes, or only part of the reply's figures
	stated                     // the reply's own figures, whole
	uncharged                  // a refusal without usage, or a request that was not sent
)

// usage is what the call used: what the reply stated, and where that is not
// all, the larger of it and an estimate of what was sent and delivered.
func (c *call) usage() (modelgate.Usage, knowledge) {
	var used modelgate.Usage
	seen := usage.Nothing
	if c.meter != nil {
		if used, seen = c.meter.Result(); seen == usage.All {
			return used, stated
		}
	}
	a := &c.attempts[c.tried]
	switch failed := c.meter != nil && c.status >= 300; {
	case failed && seen == usage.Some:
		return used, estimated
	case failed || !c.sent:
		return used, uncharged
	case a.reader == nil || a.model == "":
		return used, blind
	}
	kind := c.kind()
	counted := tokens(kind)
	if kind == modelgate.Rerank && c.replied > 0 && !c.whole {
		used.Searches, counted = max(used.Searches, 1), true
	}
	if counted && used.PromptTokens() == 0 {
		used.Input = c.estimateInput()
	}
	if c.meter != nil && kind != modelgate.Embedding && kind != modelgate.Rerank {
		most := c.mostOutput() - (used.CompletionTokens() - used.Output)
		text := c.meter.Unstated()
		shown, hidden := c.texts.estimate(c.caller.ClientID, a.routeName(), text)
		used.Output = max(used.Output, min(used.Output+shown, most))
		if text > 0 && used.Reasoning == 0 && seen == usage.Nothing {
			used.Reasoning = max(min(hidden, most-used.Output), 0)
		}
	}
	if !counted && seen == usage.Nothing && used.Output == 0 {
		return used, blind
	}
	return used, estimated
}

// estimateInput guesses the tokens of the request.
func (c *call) estimateInput() int64 {
	n := usage.EstimateTokens(c.attempts[c.tried].size)
	if c.model != nil && c.model.ContextLength > 0 && c.kind() != modelgate.Embedding {
		n = min(n, c.model.ContextLength) // pictures within a body are not text
	}
	return n
}

// estimateSent is what the call costs once it is sent, by the length of its
// request alone.
func (c *call) estimateSent() modelgate.SentEstimate {
	a := &c.attempts[c.tried]
	if c.free || a.reader == nil || a.model == "" || !tokens(c.kind()) {
		return modelgate.SentEstimate{}
	}
	usage := modelgate.Usage{Input: c.estimateInput()}
	cost, _, label := pricing.Cost(a.price, &usage, c.id.Time())
	return modelgate.SentEstimate{Input: usage.Input, Cost: cost, PriceLabel: label}
}

// mostOutput is what the request and the model let a reply have.
func (c *call) mostOutput() int64 {
	most := int64(modelgate.MaxQuantity)
	if c.bound.Output > 0 {
		most = c.bound.Output
	}
	if c.model != nil && c.model.MaxOutput > 0 {
		most = min(most, c.model.MaxOutput)
	}
	answers := c.bound.Answers()
	return min(most, modelgate.MaxQuantity/answers) * answers
}

// tokens reports whether models of the kind are charged by the token. A
// model that is not catalogued is taken for one.
func tokens(k modelgate.ModelKind) bool {
	return k == modelgate.LLM || k == modelgate.Embedding || k == ""
}
