// Package testkit is what tests need around the gateway: upstreams that keep a
// ledger or replay recordings, and private Postgres and Redis servers. Only
// tests import it.
//
// Everything listens on loopback and ends with the test, or with the test
// process, even when that is killed.
package testkit
