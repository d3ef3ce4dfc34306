//go:build rowless && !failpoint

package main

import (
	"net/http"

	"modelgate"
	"modelgate/internal/relay"
	"modelgate/internal/spool"
	"modelgate/internal/work"
)

// failpoints of a build with the tag rowless book nothing: `make bench` holds
// it against the real program to see what the books cost.
type failpoints struct{}

func newFailpoints(func(string) (string, bool)) failpoints { return failpoints{} }

func (failpoints) spool(o spool.Options) spool.Options { return o }
func (failpoints) ledger(l work.Ledger) work.Ledger    { return l }
func (failpoints) books(relay.Books) relay.Books       { return noBooks{} }
func (failpoints) handler(h http.Handler) http.Handler { return h }

func (failpoints) exporter(e *work.Exporter) *work.Exporter { return e }

type noBooks struct{}

func (noBooks) Begin(*modelgate.CallBegin) error             { return nil }
func (noBooks) Mark(modelgate.UUID, *modelgate.CallEnd)      {}
func (noBooks) End(modelgate.UUID, *modelgate.CallEnd) error { return nil }
