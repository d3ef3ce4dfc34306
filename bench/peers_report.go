package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// failed says why a line's figures mean nothing: there are none, or more than
// one call in a hundred failed. It is empty for others.
func (l *line) failed() string {
	if l.Failed != nil {
		return l.Failed.Error()
	}
	calls, failures := 0, l.failures()
	var first error
	for _, t := range l.Turns {
		calls += t.Calls
		first = cmp.Or(first, t.FirstFail)
	}
	if failures*100 > calls {
		return fmt.Sprintf("%d of %d calls failed, one with: %v", failures, failures+calls, first)
	}
	return ""
}

// whole is a figure without decimals.
func whole(f float64) string { return fmt.Sprint(int(math.Round(f))) }

// byScenario are the lines of each scenario, in order.
func (r *results) byScenario() [][]line {
	var out [][]line
	for _, l := range r.Lines {
		if len(out) == 0 || out[len(out)-1][0].Scenario != l.Scenario {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], l)
	}
	return out
}

// peerRows is the table of a run with peers, its heads first: medians, and for
// the ratio to the bare proxy in brackets the least and the most of the rounds.
// Latency is what a target adds over the direct call's median.
func (r *results) peerRows() [][]string {
	out := [][]string{{"scenario", "target", "CPU µs/call", "÷ bare proxy", "÷ Modelgate", "calls/s", "added p50 µs", "added p99 µs", "peak RSS MB"}}
	for _, lines := range r.byScenario() {
		direct := lines[0]
		for i, l := range lines {
			switch {
			case l.Target == nameDirect:
				continue
			case l.failed() != "":
				out = append(out, []string{l.Scenario, l.Target, "failed", "–", "–", "–", "–", "–", "–"})
				continue
			}
			row := []string{l.Scenario, l.Target, whole(l.cpu()), ratio(lines, i, nameProxy).String()}
			row = append(row, fmt.Sprintf("%.2f", ratio(lines, i, nameInterval).Median))
			for _, figure := range []float64{l.rate(), l.p50() - direct.p50(), l.p99() - direct.p99(), float64(l.RSS) / 1e6} {
				row = append(row, whole(figure))
			}
			out = append(out, row)
		}
	}
	return out
}

// summaryRows is a table with one row for each target and the median ratios of
// all scenarios, its heads first.
func (r *results) summaryRows() [][]string {
	groups := r.byScenario()
	heads := []string{"product", "version", "set up"}
	for _, lines := range groups {
		heads = append(heads, lines[0].Scenario)
	}
	out := [][]string{append(heads, "peak MB")}
	for _, first := range groups[0] {
		if first.Target == nameDirect {
			continue
		}
		version, set := "", "tuned `httputil.ReverseProxy`: no keys, no log"
		if first.Peer != nil {
			version, set = first.Peer.of.version, first.Peer.set
		}
		if first.Own {
			version, set = time.Now().UTC().Format(time.DateOnly), "keys, entitlements, budgets, rows, statistics and evidence in SQLite"
			if first.Target == nameAlways {
				set = "the same, and each answer waits for the disk"
			}
		}
		row, peak := []string{first.Target, version, set}, int64(0)
		for _, lines := range groups {
			at := slices.IndexFunc(lines, func(l line) bool { return l.Target == first.Target })
			cell := fmt.Sprintf("%.2f", ratio(lines, at, nameProxy).Median)
			if lines[at].failed() != "" {
				cell = "failed"
			}
			row, peak = append(row, cell), max(peak, lines[at].RSS)
		}
		out = append(out, append(row, fmt.Sprintf("%.0f", float64(peak)/1e6)))
	}
	return out
}

// remarks say what failed and what could not be measured, as a list.
func (r *results) remarks() string {
	var b strings.Builder
	for _, l := range r.Lines {
		if why := l.failed(); why != "" {
			fmt.Fprintf(&b, "- %s failed in %q: %s\n", l.Target, l.Scenario, code(why))
		}
	}
	var unobtained []string
	for _, m := range r.Missing {
		if m.reason == "" {
			unobtained = append(unobtained, m.name)
			continue
		}
		fmt.Fprintf(&b, "- %s could not be measured on this machine: %s\n", m.name, code(m.reason))
	}
	if len(unobtained) > 0 {
		fmt.Fprintf(&b, "- Not measured, because this machine could not obtain them: %s\n", strings.Join(unobtained, ", "))
	}
	return b.String()
}

// elsewhere finds names of folders and addresses.
var elsewhere = regexp.MustCompile(`https?://\S+|(?:^|\s)(?:/[^\s/]+)+/|127\.0\.0\.1:\d+`)

// code is a text from elsewhere on one line of Markdown, without what is only
// true of this machine.
func code(text string) string {
	text = elsewhere.ReplaceAllString(strings.Join(strings.Fields(text), " "), " … ")
	return "`" + strings.Join(strings.Fields(strings.ReplaceAll(text, "`", "'")), " ") + "`"
}

func (r *results) reportPeers(o *options, w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', tabwriter.AlignRight)
	for _, row := range r.peerRows() {
		fmt.Fprintln(tw, strings.Join(row, "\t")+"\t")
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	if _, err := fmt.Fprint(w, r.remarks(), r.footnotes()); err != nil || o.write == "" {
		return err
	}
	return r.writePeers(o.write)
}

// What is generated of a run with peers stands between these lines, in
// performance.md and guides/comparison.md.
const (
	peersStart = "<!-- peers: written by make bench-peers -->"
	peersEnd   = "<!-- end of peers -->"
)

// writePeers puts tables and chart into the documentation.
func (r *results) writePeers(dir string) error {
	const chart = "peers.svg"
	var whole, summary bytes.Buffer
	remarks := r.remarks()
	if remarks != "" {
		remarks += "\n"
	}
	fmt.Fprintf(&whole, "![CPU time per call over that of a bare proxy, beside other products](%s)\n\n", chart)
	writeTable(&whole, r.peerRows(), 2)
	whole.WriteString(remarks + r.footnotes())
	fmt.Fprintf(&summary, "![CPU time per call over that of a bare proxy, beside other products](../%s)\n\n", chart)
	writeTable(&summary, r.summaryRows(), 3)
	summary.WriteString(remarks + r.footnotes())
	if err := replaceBetween(filepath.Join(dir, "performance.md"), peersStart, peersEnd, whole.Bytes()); err != nil {
		return err
	}
	if err := replaceBetween(filepath.Join(dir, "guides", "comparison.md"), peersStart, peersEnd, summary.Bytes()); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, chart), r.chart(12), 0o644)
}
