package spool

import (
	"sync"

	"modelgate"
)

// Calls writes calls into a spool. It is safe for concurrent use.
type Calls struct {
	spool   *Spool
	buffers sync.Pool // of *[]byte
}

// NewCalls writes into s.
func NewCalls(s *Spool) *Calls {
	c := &Calls{spool: s}
	c.buffers.New = func() any {
		b := make([]byte, 0, 1024)
		return &b
	}
	return c
}

// Begin books that a call is about to leave; see Spool.Begin.
func (c *Calls) Begin(b *modelgate.CallBegin) error {
	buf := c.buffers.Get().(*[]byte)
	defer c.buffers.Put(buf)
	*buf = AppendBegin((*buf)[:0], b)
	return c.spool.Begin((*[16]byte)(&b.ID), *buf)
}

// Mark books what a call has used so far; see Spool.Mark.
func (c *Calls) Mark(id modelgate.UUID, e *modelgate.CallEnd) {
	buf := c.buffers.Get().(*[]byte)
	defer c.buffers.Put(buf)
	*buf = AppendEnd((*buf)[:0], e)
	c.spool.Mark((*[16]byte)(&id), *buf)
}

// End books how a call came out; see Spool.End.
func (c *Calls) End(id modelgate.UUID, e *modelgate.CallEnd) error {
	buf := c.buffers.Get().(*[]byte)
	defer c.buffers.Put(buf)
	*buf = AppendEnd((*buf)[:0], e)
	return c.spool.End((*[16]byte)(&id), *buf)
}

// SetAside keeps bytes that cannot be booked in the quarantine, for a person
// to look at.
func (s *Spool) SetAside(name string, content []byte) error {
	return s.FS.Keep("quarantine/"+name, content)
}
