// Package security attacks the running binary the way strangers, holders of
// keys and hostile providers would, and looks for what must not come of it.
// The tests are the rows of the tables in docs/reference/threats.md; those that
// begin with TestIncident are what has happened to other gateways.
//
// Most tests share one gateway, in which each has a provider and a model of
// its own; see lab.
package security
