package store

import (
	"maps"
	"slices"
	"strconv"

	"modelgate"
	"modelgate/internal/store/sqldb"
)

// The two JSON columns of a usage row are written by hand: every row has them,
// and reflection would cost more than all else that is done to the row here.

// pairsText encodes attribution, usageText what was used.
func pairsText(pairs map[string]string) (string, error) {
	b, err := appendPairs(nil, pairs)
	return string(b), err
}

func usageText(u *modelgate.Usage) (string, error) {
	b, err := appendUsage(nil, u)
	return string(b), err
}

// appendPairs appends a JSON object of texts, sorted by their names.
func appendPairs(b []byte, pairs map[string]string) ([]byte, error) {
	var room [24]string
	names := slices.AppendSeq(room[:0], maps.Keys(pairs))
	slices.Sort(names)
	b = append(b, '{')
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		var err error
		if b, err = appendText(b, sqldb.Clean(name)); err != nil {
			return nil, err
		}
		if b, err = appendText(append(b, ':'), sqldb.Clean(pairs[name])); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

// appendText appends a JSON string.
func appendText(b []byte, s string) ([]byte, error) {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' {
			quoted, err := sqldb.JSON(s)
			return append(b, quoted...), err
		}
	}
	return append(append(append(b, '"'), s...), '"'), nil
}

// appendUsage appends the members that encoding/json makes of a Usage with clean
// texts, in the order of its counters and words.
func appendUsage(b []byte, u *modelgate.Usage) ([]byte, error) {
	b = append(b, '{')
	for i, n := range u.Counters() {
		if n != nil && *n != 0 {
			b = strconv.AppendInt(appendName(b, modelgate.CounterName(i)), *n, 10)
		}
	}
	for i, word := range u.Words() {
		if *word != "" {
			var err error
			if b, err = appendText(appendName(b, modelgate.WordName(i)), sqldb.Clean(*word)); err != nil {
				return nil, err
			}
		}
	}
	return append(b, '}'), nil
}

func appendName(b []byte, name string) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	return append(append(append(b, '"'), name...), `":`...)
}
