package gateway

import (
	"errors"
	"net"
	"net/http"
	"time"

	"modelgate"
	"modelgate/internal/cancelctx"
	"modelgate/internal/provider"
	"modelgate/internal/provider/reqscan"
)

// The status of a call whose client left before there was an answer. No
// client ever sees it.
const statusClientGone = 499

// forward writes BEGIN, sends the call to one route after another until one
// answers, and passes the answer on. The upstream call outlives the client's
// request, so that its usage can still be read.
func (g *Gateway) forward(c *call) error {
	first, err := c.first()
	if err != nil {
		return err
	}
	c.out = first
	g.Writes.BeforeWrite()
	if err := g.begin(c); err != nil {
		return err
	}
	defer g.watch(c)()
	g.Metrics.inFlight.Inc()
	defer g.Metrics.inFlight.Dec()

	resp, err := g.try(c, first)
	c.body = nil
	if err != nil {
		a := &c.attempts[c.tried]
		if c.sent && a.protocol != nil {
			g.Log.Warn("the creation of a job got no reply; a job that it made is lost", "request_id", c.id.String(), "provider", a.name)
		}
		c.fail(err)
		return nil
	}
	defer resp.Body.Close()
	g.streamReply(c, resp)
	return nil
}

// watch bounds the upstream call of c: by its client, its provider and the
// life of the gateway. What it returns ends that.
func (g *Gateway) watch(c *call) (stop func()) {
	c.client = disconnectWatcher{upstream: &c.upstream, drains: g.drains, org: c.caller.ClientID, limit: g.DrainFor, gauge: g.Metrics.drains}
	g.inFlight.add(&c.upstream)
	c.stall = g.timers.Get().(*stallTimer)
	c.stall.start(c, g.Lifetime, g.tick(c))
	forget := cancelctx.AfterFunc(c.r.Context(), c.client.left)
	return func() {
		forget()
		c.stall.stop()
		g.timers.Put(c.stall)
		g.inFlight.remove(&c.upstream)
	}
}

// tick is how often to look whether a call has stopped: often enough for the
// shortest of its bounds.
func (g *Gateway) tick(c *call) time.Duration {
	tick := min(g.Lifetime, g.Stuck)
	for i := range c.attempts {
		tick = min(tick, c.attempts[i].provider.Timeouts().Idle)
	}
	return tick / 4
}

// begin writes the BEGIN entry; without it no call is made.
func (g *Gateway) begin(c *call) error {
	a := &c.attempts[c.tried]
	begin := modelgate.CallBegin{
		ID: c.id, At: c.id.Time(), ClientID: c.caller.ClientID, KeyID: c.caller.KeyID, SubAccountID: c.caller.SubAccountID,
		Provider: a.name, Model: a.model, Region: a.region(), Door: c.surface, Kind: c.kind(),
		ViaSDK: viaSDK(c.r.UserAgent()), Attribution: c.attribution, Holds: c.reservation.Holds(), Rules: c.reservation.Rules(), Sent: c.estimateSent(), WalletMarkup: c.caller.WalletMarkup,
	}
	if c.model != nil {
		begin.Slug, begin.Author = c.model.Slug, c.model.Author()
	}
	if err := g.Books.Begin(&begin); err != nil {
		g.Log.Error("call refused: usage cannot be recorded", "request_id", c.id.String(), "error", err)
		return modelgate.Errorf(modelgate.Unavailable, "usage cannot be recorded right now; retry shortly")
	}
	c.begun, c.readyAt = true, time.Now()
	return nil
}

// try sends the call along its routes: a request that could not leave, a 429
// and a 5xx move on to the next, before a byte of the reply has been passed on
// and never twice to the same. The last route's outcome stands.
func (g *Gateway) try(c *call, out *provider.Attempt) (*http.Response, error) {
	for {
		a := &c.attempts[c.tried]
		c.sentWith = out.Credential()
		c.client.setPolicy(a.provider.OnDisconnect())
		if a.protocol != nil {
			c.client.keepGoing()
		}
		resp, sent, err := a.provider.Send(out)
		c.sent = sent
		if err == nil {
			c.firstByte = time.Now()
			if resp.StatusCode < 200 {
				resp.Body.Close()
				err = errSwitched
				g.unreached(c.id, a.name, c.upstream.Cause(), err)
				return nil, err
			}
		} else {
			g.unreached(c.id, a.name, c.upstream.Cause(), err)
		}
		if !movesOn(resp, sent) || c.upstream.Cause() != nil || c.client.hasLeft() {
			return resp, err
		}
		next, following := c.following()
		if following == nil {
			return resp, err
		}
		if resp != nil {
			resp.Body.Close()
		}
		g.Metrics.fellBack(a.name)
		c.tried, out, c.sent, c.firstByte = next, following, false, time.Time{}
		g.markSent(c)
	}
}

// errSwitched is a reply that changes the protocol, which no call asks for.
var errSwitched = &provider.Unreachable{Cause: "malformed", Detail: "the reply switches to another protocol"}

// outbound is the request of a route. A large body is not made for routes that
// may never be tried.
func (c *call) outbound(i int) (*provider.Attempt, error) {
	a := &c.attempts[i]
	if a.edits != nil {
		a.out.Body = reqscan.Splice(nil, c.body, a.edits...)
	}
	a.size = int64(len(a.out.Body))
	return a.provider.Outbound(&c.upstream, a.out)
}

// first is the request of the first route that has a credential; where none has,
// why the first has not.
func (c *call) first() (*provider.Attempt, error) {
	out, err := c.outbound(0)
	if !errors.Is(err, modelgate.ErrCredential) {
		return out, err
	}
	next, following := c.following()
	if following == nil {
		return nil, err
	}
	c.tried = next
	return following, nil
}

// following is the next route that has a credential, and its request; nil
// when there is none.
func (c *call) following() (int, *provider.Attempt) {
	for i := c.tried + 1; i < len(c.attempts); i++ {
		if i > 0 {
			c.attempts[i-1].out.Body = nil // it has been sent, or never will be
		}
		if out, err := c.outbound(i); err == nil {
			return i, out
		}
	}
	return 0, nil
}

// movesOn reports whether an outcome lets another route try.
func movesOn(resp *http.Response, sent bool) bool {
	if resp == nil {
		return !sent
	}
	return resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= 500
}

// fail answers a call that got no reply: a status and nothing else.
func (c *call) fail(err error) {
	var timeout net.Error
	switch {
	case errors.Is(c.upstream.Cause(), errLeft):
		c.status = statusClientGone
		return
	case errors.Is(c.upstream.Cause(), errExpired), errors.As(err, &timeout) && timeout.Timeout():
		c.status = http.StatusGatewayTimeout
	default:
		c.status = http.StatusBadGateway
	}
	if !c.client.hasLeft() {
		c.w.Header().Set("Content-Length", "0")
		c.forbidRetry(c.status)
	}
}

// forbidRetry tells SDKs not to ask again for a job that the provider may have
// made all the same.
func (c *call) forbidRetry(status int) {
	if c.sent && c.attempts[c.tried].protocol != nil && (status >= 500 || status == http.StatusRequestTimeout) {
		c.w.Header().Set("X-Should-Retry", "false")
	}
}
