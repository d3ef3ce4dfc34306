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
		w := newWorld(t, testkit.GatewayOptions{Database: database})
		w.kills(size(10_000, 200_000), size(3, 50), mix{leaving: 0.05, slow: 0.1})
	})
}

// TestBooksKillsOfFrames kills the gateway while Amazon's binary messages pass.
func TestBooksKillsOfFrames(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testkit.GatewayOptions{
		Providers: "\n  - {name: bedrock, format: bedrock, base_url: \"$UPSTREAM\", region: eu, credential: sk-upstream}",
		Catalog:   " []",
		More:      "prices:\n  - {provider: bedrock, model: \"*\", price: {input: 1, cached_input: 0.1, cache_write: 1.25, output: 5}}\n",
	})
	w.kills(size(6_000, 60_000), size(20, 200), mix{frames: true})
}

// kills makes calls while the gateway is killed so many times, and judges the books.
func (w *world) kills(calls, kills int, m mix) {
	t := w.t
	t.Helper()
	l := w.load(&load{calls: calls, waits: true, mix: m, reached: make(chan int64)})
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
}
