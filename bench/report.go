package main

import (
	"bytes"
	"encoding/json"
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
	Lines     []line
	Footprint *figures
}

// disk is the median of a write of 4 KiB and one fdatasync, in a row and each
// after a pause as long as a call; 0 where it could not be measured.
type disk struct{ Row, Paused time.Duration }

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

// pauseOfCall is about as long as a call takes beside its fdatasync.
const pauseOfCall = 300 * time.Microsecond

// fdatasync is what making 4 KiB durable takes on the disk of the data
// directories, each time after a pause.
func fdatasync(pause time.Duration) time.Duration {
	file, err := os.CreateTemp("", "modelgate-bench-")
	if err != nil {
		return 0
	}
	defer os.Remove(file.Name())
	defer file.Close()
	block, took := make([]byte, 4096), make([]time.Duration, 0, 200)
	for range 200 {
		time.Sleep(pause)
		began := time.Now()
		if _, err := file.WriteAt(block, 0); err != nil {
			return 0
		}
		if err := datasync(file); err != nil {
			return 0
		}
		took = append(took, time.Since(began))
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

// rows is the table, its heads first. Latency is what a target adds over the
// direct call, of the medians over the rounds.
func (r *results) rows() [][]string {
	out := [][]string{{"scenario", "target", "CPU µs/call", "÷ bare proxy", "÷ nginx", "calls/s", "added p50 µs", "added p99 µs", "peak RSS MB", "failures"}}
	optional := func(ratio float64) string {
		if ratio == 0 {
			return "–"
		}
		return fmt.Sprintf("%.2f", ratio)
	}
	compared := slices.ContainsFunc(r.Lines, func(l line) bool { return l.ToFree != 0 })
	if compared {
		out[0] = append(out[0], "÷ no budgets")
	}
	var direct line
	for _, l := range r.Lines {
		if l.Target == nameDirect {
			direct = l
		}
		out = append(out, []string{l.Scenario, l.Target, fmt.Sprintf("%.1f", l.cpu()), optional(l.Ratio), optional(l.ToNginx),
			fmt.Sprintf("%.0f", l.rate()), fmt.Sprintf("%.0f", l.p50()-direct.p50()), fmt.Sprintf("%.0f", l.p99()-direct.p99()),
			fmt.Sprintf("%.0f", float64(l.RSS)/1e6), fmt.Sprint(l.failures())})
		if last := len(out) - 1; compared {
			out[last] = append(out[last], optional(l.ToFree))
		}
	}
	return out
}

func (r *results) report(o *options, w io.Writer) error {
	if o.write != "" {
		if err := r.writeDocs(o.write); err != nil {
			return err
		}
	}
	if o.json {
		return json.NewEncoder(w).Encode(r)
	}
	for _, table := range [][][]string{r.rows(), r.waits()} {
		tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', tabwriter.AlignRight)
		for _, row := range table {
			fmt.Fprintln(tw, strings.Join(row, "\t")+"\t")
		}
		if err := tw.Flush(); err != nil {
			return err
		}
	}
	_, err := fmt.Fprint(w, r.footnotes())
	return err
}

// waits is the table of what waiting for the disk adds, its heads first: with
// `always`, per round, over the bare proxy. Nil where it was left out.
func (r *results) waits() [][]string {
	heads := []string{"scenario", "p50 over the bare proxy's, µs", "one fdatasync, µs", "after a pause, µs", "÷ fdatasync", "÷ fdatasync after a pause"}
	var out [][]string
	var bare line
	for _, l := range r.Lines {
		if l.Target == nameProxy {
			bare = l
		}
		if l.Target != nameAlways {
			continue
		}
		var over, row, paused, toRow, toPaused []float64
		for i, t := range l.Turns {
			more, d := float64(t.P50-bare.Turns[i].P50)/1e3, l.Disk[i]
			over, row, paused = append(over, more), append(row, float64(d.Row)/1e3), append(paused, float64(d.Paused)/1e3)
			toRow, toPaused = append(toRow, more/row[i]), append(toPaused, more/paused[i])
		}
		out = append(out, []string{l.Scenario, fmt.Sprintf("%.0f", median(over)), fmt.Sprintf("%.0f", median(row)), fmt.Sprintf("%.0f", median(paused)),
			fmt.Sprintf("%.2f", median(toRow)), fmt.Sprintf("%.2f", median(toPaused))})
	}
	if len(out) == 0 {
		return nil
	}
	return slices.Insert(out, 0, heads)
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
	fmt.Fprintf(&b, "%s; %s; one fdatasync is of 4 KiB written, in a row or each after a pause of %d µs\n", r.Machine, placed(), pauseOfCall.Microseconds())
	fmt.Fprintf(&b, "%d turns; %d more were made again because the host took more than %.0f %% of a processor from them; it took that from %d of those that count\n",
		all, repeats, mostStolen*100, noisy)
	if f := r.Footprint; f != nil {
		fmt.Fprintf(&b, "binary %.1f MiB; ready on an existing database of 10,000 keys after %d ms; idle RSS %.1f MB; an idle stream %.1f KiB (%d open)\n",
			float64(f.Binary)/(1<<20), f.Start.Milliseconds(), float64(f.Idle)/1e6, float64(f.IdleStream)/1024, idleStreams)
	}
	return b.String()
}

// writeTable writes rows, the heads first, as Markdown. The first columns are texts.
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

// writeDocs puts table and chart into the documentation.
func (r *results) writeDocs(dir string) error {
	file := filepath.Join(dir, "performance.md")
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	start, end := bytes.Index(text, []byte(generatedStart)), bytes.Index(text, []byte(generatedEnd))
	if start < 0 || end < start {
		return fmt.Errorf("%s: the lines around the figures are missing", file)
	}
	var b bytes.Buffer
	b.WriteString(generatedStart + "\n\n![CPU time per call over that of a bare proxy](performance.svg)\n\n")
	writeTable(&b, r.rows(), 2)
	if waits := r.waits(); waits != nil {
		b.WriteString("What waiting for the disk adds, `always`:\n\n")
		writeTable(&b, waits, 1)
	}
	b.WriteString(r.footnotes() + "\n")
	if err := os.WriteFile(file, slices.Concat(text[:start], b.Bytes(), text[end:]), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "performance.svg"), r.chart(), 0o644)
}
