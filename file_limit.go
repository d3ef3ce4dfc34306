package modelgate

// FileClient has the rate limits of the configuration file over an hour or a day,
// and the counters of those of all organizations together. No organization has
// this id.
const FileClient ClientID = "*"

// InFile reports whether the budget is a rate limit of the configuration file: it
// has no ID and applies to each target of its level, each with counters of its
// own.
func (b *Budget) InFile() bool { return b.Rule < 0 }

// Value is the value of the counter that a call counts in: the Match's, and of a
// limit that is InFile the target before it. It is false where there is none.
func (b *Budget) Value(t *Traits) (value string, there bool) {
	value = b.Match.Value(t)
	if !b.InFile() {
		return value, true
	}
	id := ""
	switch b.Level {
	case LevelSubAccount:
		id = string(t.SubAccountID)
	case LevelKey:
		id = string(t.KeyID)
	default:
		return value, true
	}
	if value != "" && id != "" {
		id += "/" + value
	}
	return id, id != ""
}

// Counts reports whether a call counts, and the Value of its counter.
func (b *Budget) Counts(t *Traits) (value string, counts bool) {
	if value, counts = b.Match.Counts(t); !counts || !b.InFile() {
		return value, counts
	}
	return b.Value(t)
}

// ReplacedBy reports whether a limit of the configuration file gives way to one
// that the operator has set for the target of the caller.
func (b *Budget) ReplacedBy(o *Budget) bool {
	return o.Owner == OwnerOperator && o.Level == b.Level && o.Generation == 0 && o.Unit == b.Unit && o.Period == b.Period && o.Match.Same(b.Match)
}
