package e2e

import (
	"fmt"
	"testing"
	"time"

	"modelgate/test/testkit"
)

// TestBooksKills kills the gateway again and again under load.
func TestBooksKills(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, database string) {
		calls, kills := size(10_000, 200_000), size(3, 50)
		w := newWorld(t, testkit.GatewayOptions{Database: database})
		l := w.load(&load{calls: calls, waits: true, mix: mix{leaving: 0.05, slow: 0.1}, reached: make(chan int64)})
		made := make(chan []*call)
		began := time.Now()
		go func() { made <- l.run(t.Context()) }()
		var down time.Duration
		for i := range kills {
			l.until(t.Context(), int64((i+1)*calls/(kills+1)))
			killed := time.Now()
			w.Kill()
			w.restart()
			down += time.Since(killed)
		}
		all := <-made
		took := time.Since(began)
		w.settle()
		v := w.verdict(all)
		if cut := v.partial + v.unknown; cut > kills*l.callers+v.left {
			t.Errorf("%d rows are not exact, want at most %d a kill and those who left", cut, l.callers)
		}
		v.table(t.Output(), fmt.Sprintf("kill -9 under load, %s", t.Name()), "kills", fmt.Sprint(kills),
			"seconds", fmt.Sprintf("%.1f", took.Seconds()), "  of them down", fmt.Sprintf("%.1f", down.Seconds()),
			"calls a second while up", fmt.Sprintf("%.0f", float64(calls)/(took-down).Seconds()))
	})
}
