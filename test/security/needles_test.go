package security

import "encoding/binary"

// needle is a text that is searched for, and what it is.
type needle struct{ what, text string }

// needles finds any of many texts in one pass. The zero value has none.
type needles struct {
	begins [1 << 16]bool // the hashes of first four bytes
	by     map[uint16][]needle
}

func begin(text string) uint16 {
	return uint16((binary.LittleEndian.Uint32([]byte(text[:4])) * 0x9e3779b1) >> 16)
}

// add takes a text of four bytes or more.
func (n *needles) add(what, text string) {
	if n.by == nil {
		n.by = map[uint16][]needle{}
	}
	h := begin(text)
	n.begins[h] = true
	n.by[h] = append(n.by[h], needle{what, text})
}

// find calls found for every place of every text.
func (n *needles) find(text string, found func(what string, at int)) {
	for i := range max(len(text)-3, 0) {
		h := begin(text[i:])
		if !n.begins[h] {
			continue
		}
		for _, one := range n.by[h] {
			if len(text)-i >= len(one.text) && text[i:i+len(one.text)] == one.text {
				found(one.what, i)
			}
		}
	}
}
