package e2e

import (
	"testing"

	"modelgate"
	"modelgate/internal/simulator"
)

// TestJudge shows that the judge can say no: one call, and what is wrong
// with its books.
func TestJudge(t *testing.T) {
	t.Parallel()
	answered := call{mark: 1, status: 200, whole: true}
	served := simulator.Served{Marker: "1", Path: "/v1/chat/completions", InputTokens: 10, OutputTokens: 5, Status: 200}
	exact := row{1, 200, modelgate.ParseOK, 12500, modelgate.Usage{Input: 10, Output: 5}}
	change := func(fn func(*row)) row {
		r := exact
		fn(&r)
		return r
	}
	for _, c := range []struct {
		name   string
		call   call
		served []simulator.Served
		rows   []row
		want   string // the breach; "" for none
	}{
		{"sound", answered, []simulator.Served{served}, []row{exact}, ""},
		{"no row", call{mark: 1}, []simulator.Served{served}, nil, "lost (served, no row)"},
		{"no row of an answer", answered, []simulator.Served{served}, nil, "wrong among answered"},
		{"two rows", answered, []simulator.Served{served}, []row{exact, exact}, "twice"},
		{"two hits", answered, []simulator.Served{served, served}, []row{exact}, "provider hit more than once"},
		{"another cost", answered, []simulator.Served{served}, []row{change(func(r *row) { r.cost++ })}, "wrong among answered"},
		{"other tokens", answered, []simulator.Served{served}, []row{change(func(r *row) { r.usage.CachedInput++ })}, "wrong among answered"},
		{"an interrupted row", answered, []simulator.Served{served}, []row{{1, 502, modelgate.ParseUnknown, 0, modelgate.Usage{}}}, "wrong among answered"},
		{"interrupted", call{mark: 1}, []simulator.Served{served}, []row{{1, 502, modelgate.ParseUnknown, 0, modelgate.Usage{}}}, ""},
		{"interrupted, estimated", call{mark: 1}, []simulator.Served{served}, []row{{1, 502, modelgate.ParsePartial, 30000, modelgate.Usage{}}}, ""},
		{"interrupted for too much", call{mark: 1}, []simulator.Served{served}, []row{{1, 502, modelgate.ParsePartial, 30001, modelgate.Usage{}}}, "row above what was served"},
		{"exact by its own word", call{mark: 1}, []simulator.Served{served}, []row{change(func(r *row) { r.cost-- })}, "wrong among answered"},
		{"begun, never served", call{mark: 1}, nil, []row{{1, 502, modelgate.ParseUnknown, 0, modelgate.Usage{}}}, ""},
		{"refused, but served", call{mark: 1, status: 503, whole: true}, []simulator.Served{served}, []row{exact}, "503 but served or booked"},
		{"refused", call{mark: 1, status: 503, whole: true}, nil, nil, ""},
		{"a stranger's row", call{mark: 2}, nil, []row{exact}, "twice"},
		{"a stranger's call", call{mark: 2}, []simulator.Served{served}, nil, "provider hit more than once"},
	} {
		v := judge(t, []*call{&c.call}, c.served, c.rows)
		found := ""
		for _, f := range v.faults() {
			if f.n > 0 && (found == "" || f.name == c.want) {
				found = f.name
			}
		}
		if found != c.want {
			t.Errorf("%s: judged %q, want %q", c.name, found, c.want)
		}
	}
}
