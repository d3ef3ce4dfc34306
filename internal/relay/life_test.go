package relay

import (
	"context"
	"errors"
	"testing"
)

func TestLife(t *testing.T) {
	t.Parallel()
	cause := errors.New("cause")
	var l life
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
	l.end(cause)
	l.end(errors.New("later"))
	if got := <-ran; got != "called" || len(ran) > 0 {
		t.Errorf("called: %q and %d more", got, len(ran))
	}
	<-child.Done()
	<-l.Done()
	if !errors.Is(l.Err(), context.Canceled) || l.Cause() != cause {
		t.Errorf("ended with %v, %v", l.Err(), l.Cause())
	}
	if stop := l.AfterFunc(func() { ran <- "late" }); <-ran != "late" || stop() {
		t.Error("a function of an ended life was not called")
	}
}

func TestLivesEndTogether(t *testing.T) {
	t.Parallel()
	all, cause := newLives(), errors.New("cause")
	early, gone, late := new(life), new(life), new(life)
	all.add(1, early)
	all.add(17, gone)
	all.remove(17, gone)
	all.end(cause)
	all.add(1, late)
	if early.Cause() != cause || late.Cause() != cause || gone.Cause() != nil {
		t.Errorf("early %v, gone %v, late %v", early.Cause(), gone.Cause(), late.Cause())
	}
}
