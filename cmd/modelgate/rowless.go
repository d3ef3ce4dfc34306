//go:build rowless && !failpoint

package main

import (
	"context"
	"net/http"

	"modelgate"
	"modelgate/internal/gateway"
	"modelgate/internal/spool"
	"modelgate/internal/store"
	"modelgate/internal/worker"
)

// failpoints of a build with the tag rowless book nothing: `make bench` holds
// it against the real program to see what the books cost. With
// MODELGATE_ROWLESS=spool calls are written to the spool as ever, and what is
// in the spool is thrown away.
type failpoints struct{ spooled bool }

func newFailpoints(lookup func(string) (string, bool)) failpoints {
	way, _ := lookup("MODELGATE_ROWLESS")
	return failpoints{spooled: way == "spool"}
}

func (failpoints) spool(o spool.Options) spool.Options          { return o }
func (failpoints) handler(h http.Handler) http.Handler          { return h }
func (failpoints) exporter(e *worker.Exporter) *worker.Exporter { return e }

func (f failpoints) books(b gateway.Books) gateway.Books {
	if f.spooled {
		return b
	}
	return noBooks{}
}

func (failpoints) ledger(l worker.Ledger) worker.Ledger { return noLedger{l} }

// noLedger takes every batch and keeps none.
type noLedger struct{ worker.Ledger }

func (noLedger) Record(_ context.Context, b store.Batch) (int, error) { return len(b.Rows), nil }

type noBooks struct{}

func (noBooks) Begin(*modelgate.CallBegin) error             { return nil }
func (noBooks) Mark(modelgate.UUID, *modelgate.CallEnd)      {}
func (noBooks) End(modelgate.UUID, *modelgate.CallEnd) error { return nil }
