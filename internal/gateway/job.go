package gateway

import (
	"net/http"
	"slices"

	"modelgate"
	"modelgate/internal/pricing"
	"modelgate/internal/provider"
)

// jobKind is the kind of a job: that of the model where it is one of the ledger's, else the path's.
func jobKind(m *modelgate.Model, path modelgate.ModelKind) modelgate.ModelKind {
	kinds := []modelgate.ModelKind{modelgate.Video, modelgate.Image, modelgate.ThreeD, modelgate.Audio}
	if m != nil && slices.Contains(kinds, m.Kind) {
		return m.Kind
	}
	if path != "" {
		return path
	}
	return modelgate.Video
}

// passCreation passes on the reply to the creation of a job. It is taken in whole:
// the client sees the job's id only once the END that holds it is durable.
func (g *Gateway) passCreation(c *call, resp *http.Response) {
	a := &c.attempts[c.tried]
	c.stall.replyBegan(a.provider.Timeouts().Idle, g.Stuck)
	raw, plain, err := provider.ReadReply(resp)
	if err != nil {
		g.Log.Warn("the reply to the creation of a job broke off; the job is lost", "request_id", c.id.String(), "provider", a.name, "error", err)
		c.meter = nil
		c.status = http.StatusBadGateway
		c.forbidRetry(c.status)
		return
	}
	c.meter.Feed(raw)
	c.status, c.whole, c.replied = resp.StatusCode, true, int64(len(raw))
	task, usage := a.protocol.ReadCreated(resp.StatusCode, plain, a.requested, c.jobKind)
	if task == "" {
		g.Log.Warn("the reply to the creation of a job names none that can be followed", "request_id", c.id.String(), "provider", a.name)
	} else {
		c.job = &modelgate.NewJob{TaskID: task, Kind: c.jobKind, Protocol: a.protocol.Name, Credential: c.sentWith, Deadline: a.protocol.Deadline(c.id.Time())}
		c.jobUsage = usage
	}
	raw, ok := c.withoutCosts(a.provider, resp, raw, plain)
	if !ok {
		c.cut = true // it is booked in the end, and its job can be polled
		return
	}
	c.replyHeaders(a.provider, resp.Header)
	if c.costOnAnswer = g.asksCost(c); c.costOnAnswer {
		g.recordEnd(c)
	}
	c.w.WriteHeader(resp.StatusCode)
	g.deliver(&streamCopy{call: c, resp: resp}, raw, false)
}

// withoutCosts is what of a reply that was read whole may be shown to the caller;
// false where that cannot be told.
func (c *call) withoutCosts(p *provider.Provider, resp *http.Response, raw, plain []byte) ([]byte, bool) {
	if c.caller.SubAccountID == "" {
		return raw, true
	}
	return p.WithoutCosts(resp, raw, plain)
}

// bookJob completes the end of a call that has made a job: its cost is
// provisional, and what was reserved beyond that stays reserved.
func (c *call) bookJob(end *modelgate.CallEnd) {
	if c.job == nil {
		return
	}
	price := c.attempts[c.tried].price
	end.Usage, end.ParseStatus = c.jobUsage, modelgate.ParseProvisional
	end.Usage.Clamp()
	end.Cost, _, end.PriceLabel = c.cost(&end.Usage)
	c.job.Price, _ = pricing.Snapshot(price, c.id.Time())
	c.job.Reserve = max(c.reservation.Amount()-end.Cost, 0)
	end.Job = c.job
}
