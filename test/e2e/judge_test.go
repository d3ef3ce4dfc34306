package e2e

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"modelgate"
	"modelgate/internal/simulator"
)

// row is a usage row as it stands in the database.
type row struct {
	mark   int
	status int
	parse  modelgate.ParseStatus
	cost   int64
	usage  modelgate.Usage
}

// readRows reads every usage row past the gateway, with SQL of its own.
func readRows(t *testing.T, driver, source string) []row {
	t.Helper()
	db, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	found, err := db.Query("SELECT CAST(attribution AS TEXT), status_code, parse_status, cost, quantities FROM usage_row")
	if err != nil {
		t.Fatal(err)
	}
	defer found.Close()
	var rows []row
	for found.Next() {
		var r row
		var attribution, quantities string
		if err := found.Scan(&attribution, &r.status, &r.parse, &r.cost, &quantities); err != nil {
			t.Fatal(err)
		}
		var pairs struct{ N string }
		if err := json.Unmarshal([]byte(attribution), &pairs); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(quantities), &r.usage); err != nil {
			t.Fatal(err)
		}
		if r.mark, err = strconv.Atoi(pairs.N); err != nil {
			t.Fatalf("a usage row has no mark of the call that made it: its attribution is %s", attribution)
		}
		rows = append(rows, r)
	}
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	return rows
}

// claude reports whether a call was to a model with the prices of Claude.
func claude(s *simulator.Served) bool {
	return strings.HasSuffix(s.Path, "/messages") || strings.HasSuffix(s.Path, "/converse-stream")
}

// bill is what the provider's ledger says a call used, and what that costs.
// The prices are those of the catalog, in nano-USD a token.
func bill(s *simulator.Served) (usage modelgate.Usage, cost int64) {
	usage = modelgate.Usage{
		Input: s.InputTokens, CachedInput: s.CachedTokens, CacheWrite: s.CacheWriteTokens,
		Output: s.OutputTokens - s.ReasoningTokens, Reasoning: s.ReasoningTokens,
	}
	if claude(s) {
		return usage, 1000*usage.Input + 100*usage.CachedInput + 1250*usage.CacheWrite + 5000*s.OutputTokens
	}
	return usage, 250*usage.Input + 25*usage.CachedInput + 2000*s.OutputTokens
}

// mostEstimated is the most that a row may cost whose figures are estimated: a
// token for each four bytes of the request, with what the gateway adds to it, and
// of the answer, whose longest word has ten with the space behind it.
func mostEstimated(c *call, s *simulator.Served) int64 {
	const added, longestWord = 64, 10
	input := int64(len(c.body)+added+3) / 4
	output := (longestWord*s.OutputTokens + 3) / 4
	usage, cost := bill(s)
	if claude(s) {
		prompt := 1000*usage.Input + 100*usage.CachedInput + 1250*usage.CacheWrite
		return max(cost, max(prompt, 1000*input)+5000*output)
	}
	return max(cost, max(250*usage.Input+25*usage.CachedInput, 250*input)+2000*output)
}

// verdict is what the comparison of callers, ledger and rows gave.
type verdict struct {
	calls, answered, left, failed int // as the callers saw them
	served, rows                  int
	exact, partial, unknown       int // rows
	neverServed                   int // rows of calls that the provider never saw
	reconciled                    string

	// faults are what must not be.
	lost, twice, wrong, hits, over, refused fault
}

// fault counts one kind of breach and remembers the first few.
type fault struct {
	n     int
	marks []string
}

func (f *fault) add(mark int, format string, args ...any) {
	f.n++
	if len(f.marks) < 5 {
		f.marks = append(f.marks, fmt.Sprintf("call %d: ", mark)+fmt.Sprintf(format, args...))
	}
}

// judge compares. Every call, record and row must carry a mark.
func judge(t *testing.T, calls []*call, ledger []simulator.Served, rows []row) *verdict {
	t.Helper()
	v := &verdict{calls: len(calls), served: len(ledger), rows: len(rows)}
	served := make(map[int][]*simulator.Served, len(ledger))
	for i := range ledger {
		if ledger[i].Marker == "" {
			continue // the gateway died while it sent the request
		}
		mark, err := strconv.Atoi(ledger[i].Marker)
		if err != nil {
			t.Fatal(err)
		}
		served[mark] = append(served[mark], &ledger[i])
	}
	booked := make(map[int][]row, len(rows))
	for _, r := range rows {
		booked[r.mark] = append(booked[r.mark], r)
	}
	for _, c := range calls {
		v.call(c, served[c.mark], booked[c.mark])
		delete(served, c.mark)
		delete(booked, c.mark)
	}
	for mark := range served {
		v.hits.add(mark, "served, but no caller made it")
	}
	for mark := range booked {
		v.twice.add(mark, "booked, but no caller made it")
	}
	return v
}

func (v *verdict) call(c *call, served []*simulator.Served, rows []row) {
	switch {
	case c.left:
		v.left++
	case c.answered():
		v.answered++
	default:
		v.failed++
	}
	for _, r := range rows {
		switch r.parse {
		case modelgate.ParseOK:
			v.exact++
		case modelgate.ParsePartial:
			v.partial++
		default:
			v.unknown++
		}
	}
	switch {
	case len(served) > 1:
		v.hits.add(c.mark, "reached the provider %d times", len(served))
	case len(rows) > 1:
		v.twice.add(c.mark, "%d rows", len(rows))
	case len(served) == 1 && len(rows) == 0:
		v.lost.add(c.mark, "served with %d, no row", served[0].Status)
	case len(served) == 0 && len(rows) == 1:
		v.neverServed++
		if r := rows[0]; r.cost != 0 && r.parse != modelgate.ParsePartial {
			v.wrong.add(c.mark, "never served, row %+v", r)
		}
	}
	if c.answered() && (len(served) == 0 || len(rows) == 0) {
		v.wrong.add(c.mark, "answered, served %d times, %d rows", len(served), len(rows))
	}
	if c.status == http.StatusServiceUnavailable && (len(served) > 0 || len(rows) > 0) {
		v.refused.add(c.mark, "answered 503, served %d times, %d rows", len(served), len(rows))
	}
	if len(served) == 1 && len(rows) == 1 {
		v.compare(c, served[0], rows[0])
	}
}

// compare holds a row against the provider's bill: a row that claims to be
// exact must be, an answered call's must be, and one of a call that was cut
// must not claim more than an estimate of what was served.
func (v *verdict) compare(c *call, s *simulator.Served, r row) {
	usage, cost := bill(s)
	stated := modelgate.Usage{Input: r.usage.Input, CachedInput: r.usage.CachedInput, CacheWrite: r.usage.CacheWrite, Output: r.usage.Output, Reasoning: r.usage.Reasoning}
	exact := r.status == http.StatusOK && r.parse == modelgate.ParseOK && r.cost == cost && stated == usage
	switch {
	case c.answered() && !exact, r.parse == modelgate.ParseOK && r.status == http.StatusOK && !exact:
		v.wrong.add(c.mark, "served %+v for %d, row %+v", usage, cost, r)
	case r.status == http.StatusBadGateway && r.cost > mostEstimated(c, s):
		v.over.add(c.mark, "served %+v for %d, estimated %d at most, row %+v", usage, cost, mostEstimated(c, s), r)
	}
}

// faults are the breaches by name.
func (v *verdict) faults() []struct {
	name string
	*fault
} {
	return []struct {
		name string
		*fault
	}{
		{"lost (served, no row)", &v.lost}, {"twice", &v.twice}, {"wrong among answered", &v.wrong},
		{"provider hit more than once", &v.hits}, {"row above what was served", &v.over}, {"503 but served or booked", &v.refused},
	}
}

// check fails the test for every breach.
func (v *verdict) check(t *testing.T) {
	t.Helper()
	for _, f := range v.faults() {
		if f.n > 0 {
			t.Errorf("%s: %d calls; a call's mark is in its row's attribution and in the provider's ledger:\n\t%s", f.name, f.n, strings.Join(f.marks, "\n\t"))
		}
	}
}

// table writes the figures.
func (v *verdict) table(w io.Writer, title string, more ...string) {
	fmt.Fprintf(w, "\n%s\n", title)
	line := func(name string, value any) { fmt.Fprintf(w, "  %-32s %10v\n", name, value) }
	line("calls", v.calls)
	line("  answered whole", v.answered)
	line("  callers that hung up", v.left)
	line("  failed or cut", v.failed)
	line("served by the provider", v.served)
	line("usage rows", v.rows)
	line("  exact", v.exact)
	line("  partial", v.partial)
	line("  unknown", v.unknown)
	line("  begun, never served", v.neverServed)
	for _, f := range v.faults() {
		line(f.name, f.n)
	}
	line("reconcile", v.reconciled)
	for i := 0; i+1 < len(more); i += 2 {
		line(more[i], more[i+1])
	}
}
