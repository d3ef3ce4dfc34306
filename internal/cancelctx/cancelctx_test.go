package cancelctx_test

import (
	"context"
	"errors"
	"testing"

	"modelgate/internal/cancelctx"
)

func TestContext(t *testing.T) {
	t.Parallel()
	cause := errors.New("cause")
	var l cancelctx.Context
	ran := make(chan string, 4)
	stop := l.AfterFunc(func() { ran <- "stopped" })
	l.AfterFunc(func() { ran <- "called" })
	child, cancel := context.WithCancel(&l)
	defer cancel()
	if !stop() || stop() {
		t.Error("a function was not stopped once")
	}
	if l.Err() != nil || l.Cause() != nil {
		t.Error("it ended by itself")
	}
	l.Cancel(cause)
	l.Cancel(errors.New("later"))
	if got := <-ran; got != "called" || len(ran) > 0 {
		t.Errorf("called: %q and %d more", got, len(ran))
	}
	<-child.Done()
	<-l.Done()
	if !errors.Is(l.Err(), context.Canceled) || l.Cause() != cause {
		t.Errorf("ended with %v, %v", l.Err(), l.Cause())
	}
	if stop := l.AfterFunc(func() { ran <- "late" }); <-ran != "late" || stop() {
		t.Error("a function of a canceled context was not called")
	}
}
