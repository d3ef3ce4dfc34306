package invoice

import (
	"regexp"
	"strings"
)

// names says which cell of the rows a line belongs to: bills name models with
// the date of their snapshot, and lack some words of variants.
type names struct {
	model   map[string]string          // what a name is compared as
	variant map[string]map[string]bool // of a model: the words that both sides know
}

var dated = regexp.MustCompile(`-(\d{4}-\d{2}-\d{2}|\d{8})$`)

// newNames learns the names of both sides.
func newNames(rows map[Cell]*sums, lines []Line) *names {
	n := &names{model: make(map[string]string), variant: make(map[string]map[string]bool)}
	snapshots := make(map[string]map[string]bool) // by the name without a date
	note := func(model string) {
		base := dated.ReplaceAllString(model, "")
		if snapshots[base] == nil {
			snapshots[base] = make(map[string]bool)
		}
		if base != model {
			snapshots[base][model] = true
		}
		n.model[model] = base
	}
	for c := range rows {
		note(c.Model)
	}
	for i := range lines {
		note(lines[i].Model)
	}
	for model, base := range n.model {
		if len(snapshots[base]) > 1 {
			n.model[model] = model // several snapshots have prices of their own
		}
	}
	words := [2]map[string]map[string]bool{{}, {}}
	learn := func(side int, model, variant string) {
		model = n.model[model]
		if words[side][model] == nil {
			words[side][model] = make(map[string]bool)
		}
		for word := range strings.SplitSeq(variant, ",") {
			words[side][model][word] = true
		}
	}
	for c := range rows {
		learn(0, c.Model, c.Variant)
	}
	for i := range lines {
		learn(1, lines[i].Model, lines[i].Variant)
	}
	for model, known := range words[0] {
		n.variant[model] = make(map[string]bool)
		for word := range known {
			n.variant[model][word] = words[1][model][word]
		}
	}
	return n
}

// of is the cell that is compared with the other side's.
func (n *names) of(c Cell) Cell {
	c.Model = n.model[c.Model]
	known, there := n.variant[c.Model]
	if !there {
		return c
	}
	var words []string
	for word := range strings.SplitSeq(c.Variant, ",") {
		if known[word] {
			words = append(words, word)
		}
	}
	c.Variant = variantOf(words...)
	return c
}
