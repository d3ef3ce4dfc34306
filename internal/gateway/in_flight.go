package gateway

import (
	"sync"
	"sync/atomic"

	"modelgate/internal/cancelctx"
)

// inFlight holds the contexts of the upstream calls under way. The zero value is
// ready for use. Safe for concurrent use.
type inFlight struct {
	calls sync.Map // of *cancelctx.Context
	over  atomic.Bool
}

// add notes a call. After cancel it is canceled at once.
func (f *inFlight) add(ctx *cancelctx.Context) {
	f.calls.Store(ctx, nil)
	if f.over.Load() { // cancel may have passed it by
		ctx.Cancel(errEnding)
	}
}

func (f *inFlight) remove(ctx *cancelctx.Context) { f.calls.Delete(ctx) }

// cancel cancels all calls, and all that come later.
func (f *inFlight) cancel() {
	f.over.Store(true)
	f.calls.Range(func(ctx, _ any) bool {
		ctx.(*cancelctx.Context).Cancel(errEnding)
		return true
	})
}
