// Package testkit is what tests need around the gateway: upstreams that keep a
// ledger, a payment processor, private Postgres and Redis servers, and the
// gateway's own binary. Only tests import it.
//
// Everything listens on loopback and ends with the test, or with the test
// process, even when that is killed.
package testkit
