package gateway

import (
	"errors"
	"testing"

	"modelgate/internal/cancelctx"
)

func TestCallsInFlightEndTogether(t *testing.T) {
	t.Parallel()
	all, cause := newInFlight(), errors.New("cause")
	early, gone, late := new(cancelctx.Context), new(cancelctx.Context), new(cancelctx.Context)
	all.add(1, early)
	all.add(17, gone)
	all.remove(17, gone)
	all.end(cause)
	all.add(1, late)
	if early.Cause() != cause || late.Cause() != cause || gone.Cause() != nil {
		t.Errorf("early %v, gone %v, late %v", early.Cause(), gone.Cause(), late.Cause())
	}
}
