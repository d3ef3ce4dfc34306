package gateway

import (
	"testing"

	"modelgate/internal/cancelctx"
)

func TestCallsInFlightEndTogether(t *testing.T) {
	t.Parallel()
	var all inFlight
	early, gone, late := new(cancelctx.Context), new(cancelctx.Context), new(cancelctx.Context)
	all.add(early)
	all.add(gone)
	all.remove(gone)
	all.cancel()
	all.add(late)
	if early.Cause() != errEnding || late.Cause() != errEnding || gone.Cause() != nil {
		t.Errorf("early %v, gone %v, late %v", early.Cause(), gone.Cause(), late.Cause())
	}
}
