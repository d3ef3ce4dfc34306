package usage

import (
	"bytes"
	"slices"
	"strings"
)

// CostMembers are the members of a format's replies that state a cost.
type CostMembers struct {
	paths [][]string
	// hints are in their names. A text without any of them, and
	// without an escape that could stand for one, has no such member.
	hints [][]byte
}

// NewCostMembers takes the paths of the members, names joined by dots.
func NewCostMembers(paths []string) CostMembers {
	var m CostMembers
	for _, path := range paths {
		names := strings.Split(path, ".")
		m.paths = append(m.paths, names)
		hint := []byte(names[len(names)-1])
		if !slices.ContainsFunc(m.hints, func(h []byte) bool { return bytes.Contains(hint, h) }) {
			m.hints = slices.DeleteFunc(m.hints, func(h []byte) bool { return bytes.Contains(h, hint) })
			m.hints = append(m.hints, hint)
		}
	}
	return m
}

// Any reports whether there are such members.
func (m CostMembers) Any() bool { return len(m.paths) > 0 }

// mayStand reports whether one of the members may stand in a text.
func (m *CostMembers) mayStand(text []byte) bool {
	return slices.ContainsFunc(m.hints, func(hint []byte) bool { return bytes.Contains(text, hint) }) || bytes.Contains(text, []byte(`\u`))
}
