// Package e2e holds the promise of the books against a running gateway:
// whatever dies, every call that reached a provider has exactly one usage
// row, and a call whose answer a client holds has the exact one.
//
// The gateway is the real binary. Callers and the simulated provider live in
// the test process, so that both survive it: what the provider's ledger says
// was served, and what the callers say they received, is compared with the
// rows that the database holds in the end.
//
// Beside the books it proves who may do what: every route as every kind of
// caller after everyone's things, and several instances that must agree on
// which keys are good.
//
// And it proves who pays: what a payment processor has counted is what was
// queued for it, whatever dies or fails in between, and a payment is credited
// once, and wallets hold what was entered less what calls were debited.
//
// Each test runs small by default. With the flag -full it runs at the size
// that the documentation states: see the targets prove-books, prove-access,
// prove-money, prove-scale, prove-billing, prove-pages, prove-history,
// prove-async and soak of the Makefile.
package e2e
