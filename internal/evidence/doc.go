// Package evidence is the file in which an organization's evidence leaves the
// gateway, and the verifier of such files.
//
// A file is a header line, records and a head line. Each record is chained to
// the one before by a hash (Chain); the head line holds a
// note, signed with the gateway's key, on where the chain stands and on the
// header. docs/evidence-format.md is the full description, from which another
// verifier can be written; contrib/evidence has one for Node.js and the test
// vectors that both must pass.
//
// Verify needs nothing but the file: no database, no configuration, no
// network. It reads the file once and keeps one line of it.
package evidence
