// Package spool is the local append-only file that loses nothing. A call
// writes a BEGIN entry before its first byte leaves for a provider and an END
// entry before the last byte of the answer reaches the client; a shipper reads
// the entries back and books them in the database.
//
// # Layout
//
// A directory holds numbered segments of equal, preallocated size, a lock file
// held by the process that owns the directory, the id of the instance, and
// quarantine/ for bytes that recovery could not read. A frame is
//
//	payload length u32 | CRC-32C u32 | type u8 | id [16] | payload
//
// with little-endian integers and a checksum over the segment's number, the
// frame's offset and length, and everything after the checksum. A frame is therefore
// valid in its own place only: bytes of an earlier life, or copied from
// elsewhere, cannot be mistaken for an entry.
//
// # Durability
//
// Append writes straight from the caller, so an entry survives the death of
// the process when Append returns. End additionally waits for an fdatasync
// that covers it: one goroutine syncs for all, and what is appended meanwhile is
// the next batch. The room for the
// END of every accepted BEGIN is set aside in preallocated segments: a full
// disk refuses new calls and never loses one under way. One goroutine makes
// segments ahead of need, so that calls wait for a slow disk only where they
// have used up all room. A failed sync is final, and so is an END that cannot
// be written: what the disk holds is unknown from then on, so the process must
// end and replay.
//
// # Recovery
//
// Open reads every segment. Unreadable bytes at the very end of the last one
// are frames that were being written when the process died; nobody was told
// they were there, and they are cleared. Unreadable bytes anywhere else are
// damage: they are counted, and reading goes on at the next valid frame. After
// a power cut that may include places whose writing nobody was told of, where
// the disk wrote later ones first. Either is copied to quarantine/. Damage that comes about later is found, and treated alike, by
// the reader. A new life always begins with a new segment and never writes
// behind an old one; where the spool is full it begins without one, so that
// what is there can be shipped.
package spool
