package gateway

import (
	"errors"
	"sync"
	"time"

	"modelgate"
	"modelgate/internal/provider"
)

// warnEvery is how often the log tells that a provider cannot be reached, for
// each cause.
const warnEvery = 10 * time.Second

// warnings are what the log was told of providers that cannot be reached. The zero
// value is ready for use. Safe for concurrent use.
type warnings struct {
	mu    sync.Mutex
	known map[outage]*warning
}

// outage is what failed calls are counted by.
type outage struct{ provider, cause string }

type warning struct {
	last    time.Time
	omitted int // since then
}

// due reports whether the log should be told, and of how many it was not.
func (w *warnings) due(f outage, now time.Time) (omitted int, due bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	known := w.known[f]
	if known == nil {
		if w.known == nil {
			w.known = make(map[outage]*warning)
		}
		known = &warning{}
		w.known[f] = known
	} else if now.Sub(known.last) < warnEvery {
		known.omitted++
		return 0, false
	}
	omitted, known.last, known.omitted = known.omitted, now, 0
	return omitted, true
}

// unreached counts a request that got no reply, and has the log say why. The
// client learns no more than a status.
// ended is why the gateway ended the call, nil where it did not: a client that
// left, or the end of the process, is no provider's failure.
func (g *Gateway) unreached(id modelgate.UUID, name string, ended, err error) {
	cause, detail := "other", ""
	if known, ok := errors.AsType[*provider.Unreachable](err); ok {
		cause, detail = known.Cause, known.Detail
	}
	switch {
	case errors.Is(ended, errExpired):
		cause, detail = "timeout", "the call has lasted too long"
	case ended != nil, cause == "canceled":
		return
	}
	g.Metrics.unreached(name, cause)
	if omitted, due := g.warnings.due(outage{name, cause}, time.Now()); due {
		g.Log.Warn("provider cannot be reached", "request_id", id.String(), "provider", name, "cause", cause, "detail", detail, "omitted", omitted)
	}
}
