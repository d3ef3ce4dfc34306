// Command bench compares Modelgate with the provider called directly and with
// a bare tuned httputil.ReverseProxy, in one run on one machine: every target
// takes its turn in short slices, round after round, so that whatever else
// the machine does falls on all of them alike. It prints CPU time per call of
// the target's process, throughput and latency, and the medians of the
// per-round ratios; single figures depend on the machine, ratios hardly.
//
//	go run ./bench [-rounds 4] [-slice 3s] [-binary bin/modelgate] [-json]
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"
	"time"
)

func main() {
	if role := os.Getenv(roleVariable); role != "" {
		exit(serveRole(role))
	}
	var o options
	flag.IntVar(&o.rounds, "rounds", 4, "how often every target takes its turn")
	flag.DurationVar(&o.slice, "slice", 3*time.Second, "length of a turn")
	flag.StringVar(&o.binary, "binary", "bin/modelgate", "the gateway")
	flag.BoolVar(&o.json, "json", false, "print JSON")
	flag.Parse()
	exit(run(o, os.Stdout))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

type options struct {
	rounds int
	slice  time.Duration
	binary string
	json   bool
}

// scenario is one kind of load.
type scenario struct {
	Name        string
	Connections int
	Stream      bool
	Body        int // bytes of the prompt
}

var scenarios = [...]scenario{
	{"1 KB, c=1", 1, false, 900},
	{"1 KB, c=32", 32, false, 900},
	{"1 KB, c=256", 256, false, 900},
	{"stream of 40, c=64", 64, true, 900},
	{"100 KB, c=8", 8, false, 100_000},
}

// turn is one target's figures in one round.
type turn struct {
	CPU       float64 // µs per call, of the target's process
	Rate      float64 // calls per second
	P50, P99  time.Duration
	Failures  int
	FirstFail string
}

// line is one target's figures over all rounds of a scenario.
type line struct {
	Scenario string
	Target   string
	Turns    []turn
	Ratio    float64 // median over the rounds of CPU ÷ the proxy's CPU
}

func run(o options, w io.Writer) error {
	targets, stop, err := startTargets(o)
	if err != nil {
		return err
	}
	defer stop()
	var lines []line
	for _, sc := range scenarios {
		got, err := measure(o, sc, targets)
		if err != nil {
			return err
		}
		lines = append(lines, got...)
	}
	if o.json {
		return json.NewEncoder(w).Encode(lines)
	}
	return report(w, lines)
}

// measure runs the rounds of one scenario.
func measure(o options, sc scenario, targets []*target) ([]line, error) {
	lines := make([]line, len(targets))
	for i, t := range targets {
		lines[i] = line{Scenario: sc.Name, Target: t.name}
	}
	for range o.rounds {
		for i, t := range targets {
			if _, err := drive(t, sc, o.slice/4); err != nil { // warm-up
				return nil, fmt.Errorf("%s, %s: %w", sc.Name, t.name, err)
			}
			before, err := t.cpu()
			if err != nil {
				return nil, err
			}
			got, err := drive(t, sc, o.slice)
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", sc.Name, t.name, err)
			}
			after, err := t.cpu()
			if err != nil {
				return nil, err
			}
			got.turn.CPU = float64((after - before).Microseconds()) / float64(max(got.calls, 1))
			lines[i].Turns = append(lines[i].Turns, got.turn)
		}
	}
	base := slices.IndexFunc(targets, func(t *target) bool { return t.name == "bare proxy" })
	for i := range lines {
		var ratios []float64
		for r, t := range lines[i].Turns {
			ratios = append(ratios, t.CPU/lines[base].Turns[r].CPU)
		}
		lines[i].Ratio = median(ratios)
	}
	return lines, nil
}

func median[T int | float64 | time.Duration](values []T) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// report prints the table. Latency is what a target adds over the direct
// call, of the medians over the rounds.
func report(w io.Writer, lines []line) error {
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "scenario\ttarget\tCPU µs/call\t÷ proxy\tcalls/s\tadded p50 µs\tadded p99 µs\tfailures\t")
	var direct line
	for _, l := range lines {
		if l.Target == "direct" {
			direct = l
		}
		pick := func(of line, f func(turn) float64) float64 {
			var values []float64
			for _, t := range of.Turns {
				values = append(values, f(t))
			}
			return median(values)
		}
		p50 := func(t turn) float64 { return float64(t.P50) / 1e3 }
		p99 := func(t turn) float64 { return float64(t.P99) / 1e3 }
		failures := 0
		for _, t := range l.Turns {
			failures += t.Failures
		}
		fmt.Fprintf(tw, "%s\t%s\t%.1f\t%.2f\t%.0f\t%.0f\t%.0f\t%d\t\n", l.Scenario, l.Target,
			pick(l, func(t turn) float64 { return t.CPU }), l.Ratio, pick(l, func(t turn) float64 { return t.Rate }),
			pick(l, p50)-pick(direct, p50), pick(l, p99)-pick(direct, p99), failures)
	}
	return tw.Flush()
}
