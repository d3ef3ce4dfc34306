package worker

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"modelgate"
	"modelgate/internal/spool"
)

// decode takes entries in and adds the rows that they complete to those that
// are pending.
func (s *Shipper) decode(entries []spool.Entry) {
	loop := s.yielder.Loop()
	for i := range entries {
		loop.Step()
		e := &entries[i]
		var err error
		switch e.Type {
		case spool.Begin:
			err = s.begin(e)
		case spool.Mark:
			err = s.mark(e)
		case spool.End:
			err = s.end(e)
		default:
			err = fmt.Errorf("entry of unknown type %d", e.Type)
		}
		if err != nil {
			s.setAside(e, err)
		}
	}
}

func (s *Shipper) begin(e *spool.Entry) error {
	b, err := s.decoder.Begin(e.ID, e.Payload)
	if err != nil {
		return err
	}
	c := s.newCall()
	c.begin, c.at = b, e.At
	s.open[e.ID] = c
	s.order = append(s.order, e.ID)
	s.trim()
	return nil
}

// newCall is an empty call, one that has ended where there is one.
func (s *Shipper) newCall() *openCall {
	n := len(s.spare)
	if n == 0 {
		return new(openCall)
	}
	c := s.spare[n-1]
	s.spare = s.spare[:n-1]
	return c
}

// trim forgets ended calls that began after one that is still open, once
// they are the greater part. One long call would keep all that follow it.
func (s *Shipper) trim() {
	const slack = 64
	if len(s.order) > 2*len(s.open)+slack {
		s.order = slices.DeleteFunc(s.order, func(id modelgate.UUID) bool { return s.open[id] == nil })
	}
}

func (s *Shipper) mark(e *spool.Entry) error {
	seen, err := s.decoder.End(e.Payload)
	if c := s.open[e.ID]; c != nil && err == nil {
		c.mark = &seen
	}
	return err
}

// end completes a row, unless it is booked already. An END that cannot be
// read still ends its call, which is then booked as an interrupted one.
func (s *Shipper) end(e *spool.Entry) error {
	c := s.open[e.ID]
	delete(s.open, e.ID)
	for len(s.order) > 0 && s.open[s.order[0]] == nil {
		s.order = s.order[1:]
	}
	switch {
	case e.At.Before(s.booked):
		return nil
	case c == nil:
		return errors.New("the beginning of this call is missing")
	}
	outcome, err := s.decoder.End(e.Payload)
	if err != nil {
		outcome = modelgate.InterruptedEnd(&c.begin, c.mark)
	}
	s.pending = append(s.pending, modelgate.Row(c.begin, outcome))
	if len(s.spare) < maxSpare {
		*c = openCall{}
		s.spare = append(s.spare, c)
	}
	return err
}

// needed is the oldest place that an open call or the reader still needs.
func (s *Shipper) needed() spool.Position {
	if len(s.order) > 0 {
		return s.open[s.order[0]].at
	}
	return s.reader.At()
}

// setAside keeps an entry that cannot be understood.
func (s *Shipper) setAside(e *spool.Entry, why error) {
	s.quarantined.Add(1)
	name := fmt.Sprintf("entry-%010d-%010d.bin", e.At.Segment, e.At.Offset)
	s.log.Error("spool entry cannot be booked; it was kept aside", "type", e.Type, "id", hex.EncodeToString(e.ID[:]), "file", name, "error", why)
	if err := s.spool.SetAside(name, e.Payload); err != nil {
		s.log.Error("spool entry could not be kept aside", "file", name, "error", err)
	}
}
