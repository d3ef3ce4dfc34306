package evidence

import (
	"encoding/hex"
	"regexp"
	"strconv"
)

var costShape = regexp.MustCompile(`^"((?:0|[1-9][0-9]{0,9})\.[0-9]{9})"$`)

// judge checks that record n has the members that its type requires, and adds
// its cost to the sum. It ignores unknown members and records of other types.
func (v *verifier) judge(n int64) error {
	if string(v.value("v")) != "1" {
		return bad(Tampered, "record %d is of a version that is not 1", n)
	}
	missing := ""
	need := func(name string, ok bool) {
		if !ok && missing == "" {
			missing = name
		}
	}
	kind := string(v.value("type"))
	switch kind {
	case `"usage"`, `"usage.final"`, `"audit"`:
		need("client_id", v.text("client_id") == string(v.chain.ClientID))
		need("at", timeShape.MatchString(v.text("at")))
	}
	switch kind {
	case `"usage"`:
		need("id", orgShape.MatchString(v.text("id")))
		need("cost_usd", v.money("cost_usd", 1))
		v.report.Usage++
	case `"usage.final"`:
		need("ref", orgShape.MatchString(v.text("ref")))
		need("cost_usd", v.money("cost_usd", 1))
		need("previous_cost_usd", v.money("previous_cost_usd", -1))
		v.report.Finals++
	case `"audit"`:
		need("id", v.text("id") != "")
		need("action", v.text("action") != "")
		v.report.Audit++
	default:
		need("type", len(kind) > 2 && kind[0] == '"')
		v.report.Other++
	}
	if missing != "" {
		return bad(Tampered, "record %d has no %s, or not one of this organization and form", n, missing)
	}
	if kind == `"audit"` && v.text("action") == "evidence.prune" {
		return v.prune(n)
	}
	return nil
}

// prune compares the record of a pruning with the place where the file begins.
func (v *verifier) prune(n int64) error {
	change, ok := scanObject(v.value("change"), nil)
	if !ok || v.header.Anchor.Note == nil || string(find(change, "to")) != strconv.FormatInt(v.header.Anchor.Seq, 10) {
		return nil
	}
	if string(find(change, "hash")) != `"`+v.header.Anchor.Hash+`"` {
		return bad(Tampered, "record %d says that the chain was pruned at another hash", n)
	}
	v.pruned = true
	return nil
}

func find(members []member, name string) []byte {
	for _, m := range members {
		if string(m.name) == name {
			return m.value
		}
	}
	return nil
}

// value is a member of the record, nil where it has none.
func (v *verifier) value(name string) []byte { return find(v.members, name) }

// text is a member that is a string without escapes, else "".
func (v *verifier) text(name string) string {
	s := v.value(name)
	if len(s) < 2 || s[0] != '"' || !plain(s[1:len(s)-1]) {
		return ""
	}
	return string(s[1 : len(s)-1])
}

// money adds an amount to the sum, times sign.
func (v *verifier) money(name string, sign int64) bool {
	m := costShape.FindSubmatch(v.value(name))
	if m == nil {
		return false
	}
	amount := m[1]
	nano, err := strconv.ParseUint(string(amount[:len(amount)-10])+string(amount[len(amount)-9:]), 10, 64)
	if err != nil {
		return false
	}
	v.term.SetUint64(nano)
	if sign < 0 {
		v.term.Neg(&v.term)
	}
	v.cost.Add(v.cost, &v.term)
	return true
}

// unhex decodes what isHash accepts.
func unhex(text string) []byte {
	b, _ := hex.DecodeString(text)
	return b
}
