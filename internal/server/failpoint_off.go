//go:build !failpoint

package server

import (
	"net/http"

	"modelgate/internal/gateway"
	"modelgate/internal/spool"
	"modelgate/internal/worker"
)

// failpoints are the places at which a build with the tag failpoint can be
// made to die. This build has none.
type failpoints struct{}

func newFailpoints(func(string) (string, bool)) failpoints { return failpoints{} }

func (failpoints) spool(o spool.Options) spool.Options          { return o }
func (failpoints) ledger(l worker.Ledger) worker.Ledger         { return l }
func (failpoints) books(b gateway.Books) gateway.Books          { return b }
func (failpoints) handler(h http.Handler) http.Handler          { return h }
func (failpoints) exporter(e *worker.Exporter) *worker.Exporter { return e }
