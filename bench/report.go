package main

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// results are all figures of a run.
type results struct {
	Machine   string
	Sync      time.Duration
	Lines     []line
	Footprint *figures
	Missing   []absent
}

// machine says what a run ran on.
func machine() string {
	model, processors := runtime.GOARCH, 0
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for l := range strings.Lines(string(text)) {
			if name, value, ok := strings.Cut(l, ":"); ok && strings.TrimSpace(name) == "model name" {
				model = strings.TrimSpace(value)
				processors++
			}
		}
	}
	if processors == 0 {
		processors = runtime.NumCPU()
	}
	return fmt.Sprintf("%d × %s, %s, %s", processors, model, runtime.GOOS, runtime.Version())
}

// syncTime is the median of what making 4 KiB durable takes on the disk of the
// data directories; 0 where it cannot be measured.
func syncTime() time.Duration {
	file, err := os.CreateTemp("", "modelgate-bench-")
	if err != nil {
		return 0
	}
	defer os.Remove(file.Name())
	defer file.Close()
	block, took := make([]byte, 4096), make([]time.Duration, 200)
	for i := range took {
		began := time.Now()
		if _, err := file.WriteAt(block, 0); err != nil {
			return 0
		}
		if err := file.Sync(); err != nil {
			return 0
		}
		took[i] = time.Since(began)
	}
	return median(took)
}

// cell is a line's median of one figure.
func (l *line) cell(f func(turn) float64) float64 {
	var values []float64
	for _, t := range l.Turns {
		values = append(values, f(t))
	}
	return median(values)
}

func (l *line) cpu() float64  { return l.cell(func(t turn) float64 { return t.CPU }) }
func (l *line) rate() float64 { return l.cell(func(t turn) float64 { return t.Rate }) }
func (l *line) p50() float64  { return l.cell(func(t turn) float64 { return float64(t.P50) / 1e3 }) }
func (l *line) p99() float64  { return l.cell(func(t turn) float64 { return float64(t.P99) / 1e3 }) }

func (l *line) failures() int {
	n := 0
	for _, t := range l.Turns {
		n += t.Failures
	}
	return n
}

// String is the median and, in brackets, from where to where the rounds reach.
func (s spread) String() string {
	if s.Median == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f (%.2f–%.2f)", s.Median, s.Least, s.Most)
}

// afterRatios are the heads of the columns behind the ratios.
var afterRatios = [...]string{"calls/s", "added p50 µs", "added p99 µs", "peak RSS MB", "failures"}

// rows is the table, its heads first. Latency is what a target adds over the
// direct call, of the medians over the rounds. A yardstick that did not take
// part has no column.
func (r *results) rows() [][]string {
	heads := []string{"scenario", "target", "CPU µs/call"}
	var compared []int
	for k, name := range yardsticks {
		if slices.ContainsFunc(r.Lines, func(l line) bool { return l.Ratios[k].Median != 0 }) {
			compared = append(compared, k)
			heads = append(heads, "÷ "+strings.TrimPrefix(name, "modelgate, "))
		}
	}
	out := [][]string{append(heads, afterRatios[:]...)}
	var direct line
	for _, l := range r.Lines {
		if l.Target == nameDirect {
			direct = l
		}
		row := []string{l.Scenario, l.Target, fmt.Sprintf("%.1f", l.cpu())}
		for _, k := range compared {
			row = append(row, l.Ratios[k].String())
		}
		for _, figure := range []float64{l.rate(), l.p50() - direct.p50(), l.p99() - direct.p99(), float64(l.RSS) / 1e6, float64(l.failures())} {
			row = append(row, fmt.Sprintf("%.0f", figure))
		}
		out = append(out, row)
	}
	return out
}

func (r *results) report(o *options, w io.Writer) error {
	if o.write != "" {
		if err := r.writeDocs(o.write); err != nil {
			return err
		}
	}
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', tabwriter.AlignRight)
	for _, row := range r.rows() {
		fmt.Fprintln(tw, strings.Join(row, "\t")+"\t")
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprint(w, r.footnotes())
	return err
}

// turns says how many turns there were, how many were made again, and how many
// still lost more than they should have.
func (r *results) turns() (all, repeats, noisy int) {
	for _, l := range r.Lines {
		for _, t := range l.Turns {
			all++
			repeats += t.Repeats
			if t.Stolen > mostStolen {
				noisy++
			}
		}
	}
	return all, repeats, noisy
}

// footnotes are the figures that belong to no scenario.
func (r *results) footnotes() string {
	var b strings.Builder
	all, repeats, noisy := r.turns()
	fmt.Fprintf(&b, "%s; %s; writing 4 KiB and syncing them takes %d µs\n", r.Machine, placed(), r.Sync.Microseconds())
	fmt.Fprintf(&b, "%d turns; %d were repeated because the virtual machine's host took more than %.0f %% of a processor, and %d with such a loss count\n",
		all, repeats, mostStolen*100, noisy)
	if f := r.Footprint; f != nil {
		fmt.Fprintf(&b, "binary %.1f MiB; ready on an existing database of 10,000 keys after %d ms; idle RSS %.1f MB; an idle stream %.1f KiB (%d open); a connection between calls %.1f KiB (%d open)\n",
			float64(f.Binary)/(1<<20), f.Start.Milliseconds(), float64(f.Idle)/1e6, float64(f.IdleStream)/1024, idleStreams, float64(f.IdleConn)/1024, idleConns)
		if f.IdleLarge > 0 {
			fmt.Fprintf(&b, "idle RSS with %d keys %.1f MB\n", hundredfold().keys, float64(f.IdleLarge)/1e6)
		}
	}
	return b.String()
}

// ratioRows is a table of CPU over that of the bare proxy: a row for each
// scenario, a column for each target but the direct call and the proxy itself.
func (r *results) ratioRows() [][]string {
	heads := []string{"scenario"}
	out := [][]string{nil}
	for _, l := range r.Lines {
		if out[len(out)-1] == nil || out[len(out)-1][0] != l.Scenario {
			out = append(out, []string{l.Scenario})
		}
		if l.Target == nameDirect || l.Target == nameProxy {
			continue
		}
		column := slices.Index(heads, l.Target)
		if column < 0 {
			column = len(heads)
			heads = append(heads, l.Target)
		}
		row := &out[len(out)-1]
		for len(*row) <= column {
			*row = append(*row, "–")
		}
		if median := l.Ratios[0].Median; median != 0 {
			(*row)[column] = fmt.Sprintf("%.2f", median)
		}
	}
	out[0] = heads
	for i := range out {
		for len(out[i]) < len(heads) {
			out[i] = append(out[i], "–")
		}
	}
	return out
}

// defaultRows are the other figures of a target, out of the whole table.
func (r *results) defaultRows(target string) [][]string {
	rows := r.rows()
	var out [][]string
	for i, row := range rows {
		if i == 0 || row[1] == target {
			figures := row[len(row)-len(afterRatios):]
			out = append(out, append([]string{row[0], row[2]}, figures[:len(figures)-1]...))
		}
	}
	return out
}

// replaceBetween replaces what stands between two lines of a file.
func replaceBetween(file, start, end string, by []byte) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, found := bytes.Cut(text, []byte(start))
	_, after, ended := bytes.Cut(rest, []byte(end))
	if !found || !ended {
		return fmt.Errorf("%s: the lines %s and %s are missing", file, start, end)
	}
	return os.WriteFile(file, slices.Concat(before, []byte(start+"\n\n"), by, []byte("\n"+end), after), 0o644)
}

// writeTable writes rows, the heads first, as Markdown. The first columns are
// texts.
func writeTable(b *bytes.Buffer, rows [][]string, texts int) {
	for i, row := range rows {
		fmt.Fprintf(b, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			b.WriteString("|" + strings.Repeat("---|", texts) + strings.Repeat("--:|", len(row)-texts) + "\n")
		}
	}
	b.WriteString("\n")
}

// The generated part of performance.md stands between these lines.
const (
	generatedStart = "<!-- figures: written by make bench -->"
	generatedEnd   = "<!-- end of figures -->"
)

// writeDocs puts tables, chart and a file of all figures into the documentation.
func (r *results) writeDocs(dir string) error {
	var b bytes.Buffer
	b.WriteString("![CPU time per call over that of a bare proxy](performance.svg)\n\n")
	b.WriteString("CPU time of a call over that of the bare proxy:\n\n")
	writeTable(&b, r.ratioRows(), 1)
	fmt.Fprintf(&b, "Other figures of *%s*, the default; [performance.csv](performance.csv) has those of all targets:\n\n", nameAlways)
	writeTable(&b, r.defaultRows(nameAlways), 1)
	b.WriteString(r.footnotes())
	if err := replaceBetween(filepath.Join(dir, "performance.md"), generatedStart, generatedEnd, b.Bytes()); err != nil {
		return err
	}
	var all bytes.Buffer
	if err := csv.NewWriter(&all).WriteAll(r.rows()); err != nil {
		return err
	}
	return cmp.Or(
		os.WriteFile(filepath.Join(dir, "performance.csv"), all.Bytes(), 0o644),
		os.WriteFile(filepath.Join(dir, "performance.svg"), r.chart(3), 0o644))
}
