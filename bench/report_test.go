package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestWriteDocs puts a run into the page: a table of ratios, one of the default's
// figures, and all of them into a file.
func TestWriteDocs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	page := filepath.Join(dir, "performance.md")
	if err := os.WriteFile(page, []byte("before\n"+generatedStart+"\nold\n"+generatedEnd+"\nafter\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	entry := func(scenario, target string, cpu, ratio float64) line {
		l := line{Scenario: scenario, Target: target, Turns: []turn{{CPU: cpu, Rate: 1000, P50: 2000, P99: 3000}}, RSS: 5e6}
		l.Ratios[0] = spread{Median: ratio, Least: ratio, Most: ratio}
		return l
	}
	r := &results{Machine: "a machine", Lines: []line{
		entry("c=1", nameDirect, 10, 0.1), entry("c=1", nameProxy, 100, 1), entry("c=1", nameAlways, 90, 0.9),
		entry("c=32", nameDirect, 10, 0.1), entry("c=32", nameProxy, 100, 1), entry("c=32", nameNginx, 20, 0.2), entry("c=32", nameAlways, 80, 0.8),
	}}
	if err := r.writeDocs(dir); err != nil {
		t.Fatal(err)
	}
	want := "before\n" + generatedStart + `

![CPU time per call over that of a bare proxy](performance.svg)

CPU time of a call over that of the bare proxy:

| scenario | modelgate, always | nginx |
|---|--:|--:|
| c=1 | 0.90 | – |
| c=32 | 0.80 | 0.20 |

Other figures of *modelgate, always*, the default; [performance.csv](performance.csv) has those of all targets:

| scenario | CPU µs/call | calls/s | added p50 µs | added p99 µs | peak RSS MB |
|---|--:|--:|--:|--:|--:|
| c=1 | 90.0 | 1000 | 0 | 0 | 5 |
| c=32 | 80.0 | 1000 | 0 | 0 | 5 |

` + r.footnotes() + "\n" + generatedEnd + "\nafter\n"
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("page (-want +got):\n%s", diff)
	}
	all, err := os.ReadFile(filepath.Join(dir, "performance.csv"))
	if want := `scenario,target,CPU µs/call,÷ bare proxy,calls/s,added p50 µs,added p99 µs,peak RSS MB,failures
c=1,direct,10.0,0.10 (0.10–0.10),1000,0,0,5,0
`; err != nil || len(all) < len(want) || string(all[:len(want)]) != want {
		t.Errorf("performance.csv: %v\n%s", err, all)
	}
}
