//go:build linux

package e2e

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"modelgate/test/testkit"
)

// sample is what the gateway's process holds at a moment.
type sample struct {
	rss, heap             float64 // MiB
	goroutines, files     float64
	spoolFiles, spoolSize float64 // MiB
}

func (w *world) sample() sample {
	w.t.Helper()
	statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", w.Pid()))
	if err != nil {
		w.t.Fatal(err)
	}
	var size, resident float64
	if _, err := fmt.Sscan(string(statm), &size, &resident); err != nil {
		w.t.Fatal(err)
	}
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", w.Pid()))
	if err != nil {
		w.t.Fatal(err)
	}
	spooled := 0
	for _, f := range files {
		if name, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", w.Pid(), f.Name())); err == nil && strings.HasSuffix(name, ".wal") {
			spooled++
		}
	}
	m := w.metrics()
	return sample{
		rss: resident * float64(os.Getpagesize()) / (1 << 20), heap: m["go_memstats_heap_inuse_bytes"] / (1 << 20),
		goroutines: m["go_goroutines"], files: float64(len(files)),
		spoolFiles: float64(spooled), spoolSize: m["modelgate_spool_bytes"] / (1 << 20),
	}
}

// median of a figure over samples.
func median(samples []sample, figure func(sample) float64) float64 {
	values := make([]float64, len(samples))
	for i, s := range samples {
		values[i] = figure(s)
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// TestSoak keeps a steady load for long, with reloads and restarts of the
// database, and looks for what grows.
func TestSoak(t *testing.T) {
	t.Parallel()
	cluster := testkit.NewPostgresCluster(t)
	w := newWorld(t, testkit.GatewayOptions{Database: cluster.Database(t)})
	lasts, every := size(12*time.Second, 20*time.Minute), size(500*time.Millisecond, 5*time.Second)
	reload, restart := size(2*time.Second, 30*time.Second), size(5*time.Second, 2*time.Minute)
	ctx, stop := context.WithCancel(t.Context())
	l, made := w.load(&load{rate: callsPerSecond, mix: mix{leaving: 0.05, slow: 0.1}, reached: make(chan int64)}), make(chan []*call, 1)
	go func() { made <- l.run(ctx) }()

	var samples []sample
	reloads, restarts := 0, 0
	ticks := int(lasts / every)
	for i := range ticks {
		l.until(t.Context(), int64(float64(i+1)*every.Seconds()*callsPerSecond))
		samples = append(samples, w.sample())
		if (i+1)%int(reload/every) == 0 {
			w.Signal(syscall.SIGHUP)
			reloads++
		}
		if (i+1)%int(restart/every) == 0 && i+1 < ticks {
			cluster.Stop(t)
			cluster.Start(t)
			restarts++
		}
	}
	stop()
	calls := <-made
	var idle sample
	calm := w.eventually("goroutines and files are those of the first minute again", time.Minute, func() bool {
		idle = w.sample()
		return idle.goroutines <= samples[0].goroutines+10 && idle.files <= samples[0].files+10 && idle.spoolFiles <= 2
	})
	if applied := w.metrics()[`modelgate_config_reloads_total{outcome="applied"}`]; int(applied) != reloads {
		t.Errorf("%.0f reloads were applied, want %d", applied, reloads)
	}
	w.settle()
	v := w.verdict(calls)
	if v.failed > 0 {
		t.Errorf("%d calls failed", v.failed)
	}
	early, late := samples[ticks/4:ticks/2], samples[ticks*3/4:]
	more := []string{"reloads", fmt.Sprint(reloads), "restarts of the database", fmt.Sprint(restarts), "idle again after s", fmt.Sprintf("%.1f", calm.Seconds())}
	for _, f := range []struct {
		name   string
		figure func(sample) float64
		slack  float64 // what the median may grow by from the second to the last quarter
	}{
		{"RSS MiB", func(s sample) float64 { return s.rss }, 8},
		{"heap MiB", func(s sample) float64 { return s.heap }, 8},
		{"goroutines", func(s sample) float64 { return s.goroutines }, 10},
		{"open files", func(s sample) float64 { return s.files }, 10},
		{"spool MiB", func(s sample) float64 { return s.spoolSize }, 64},
	} {
		from, to := median(early, f.figure), median(late, f.figure)
		more = append(more, f.name+", 2nd and last quarter, idle", fmt.Sprintf("%.0f %.0f %.0f", from, to, f.figure(idle)))
		if *full && to > from+f.slack {
			t.Errorf("%s: the median grew from %.0f to %.0f", f.name, from, to)
		}
	}
	v.table(t.Output(), fmt.Sprintf("soak of %v at %d calls/s", lasts, callsPerSecond), more...)
}
