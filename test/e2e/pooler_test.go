package e2e

import (
	"testing"

	"modelgate/test/testkit"
)

// TestBooksBehindPooler kills a gateway under load whose connections to the
// database are given out by the transaction.
func TestBooksBehindPooler(t *testing.T) {
	t.Parallel()
	calls := size(3_000, 50_000)
	database := testkit.Postgres(t)
	w := newWorld(t, testkit.GatewayOptions{Database: testkit.Pooler(t, database), Pooled: true})
	w.source = database // the judge looks at PostgreSQL itself
	l := w.load(&load{calls: calls, waits: true, mix: mix{leaving: 0.05}, reached: make(chan int64)})
	made := make(chan []*call)
	go func() { made <- l.run(t.Context()) }()
	l.until(t.Context(), int64(calls/2))
	w.Kill()
	w.restart()
	all := <-made
	w.settle()
	w.verdict(all).table(t.Output(), "kill -9 behind PgBouncer in transaction mode")
}
