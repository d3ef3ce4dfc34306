//go:build linux

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"modelgate/test/testkit"
)

// starved is a load that goes on while there is no room for its books.
type starved struct {
	*world
	l    *load
	stop context.CancelFunc
	made chan []*call
}

func starve(w *world) *starved {
	s := &starved{world: w, made: make(chan []*call, 1)}
	s.l = w.load(&load{rate: callsPerSecond, mix: mix{leaving: 0.02, slow: 0.1}, reached: make(chan int64)})
	var ctx context.Context
	ctx, s.stop = context.WithCancel(w.t.Context())
	go func() { s.made <- s.l.run(ctx) }()
	s.l.until(w.t.Context(), callsPerSecond/2)
	return s
}

// full and served say how the last of the load's calls came out.
func (s *starved) full() bool   { return s.l.last.Load() == http.StatusServiceUnavailable }
func (s *starved) served() bool { return s.l.last.Load() == http.StatusOK }

// end judges: a call was either answered, with its exact row, or refused
// before the provider saw it.
func (s *starved) end(title string, recovered time.Duration) {
	s.t.Helper()
	s.stop()
	calls := <-s.made
	s.settle()
	v := s.verdict(calls)
	refused := 0
	for _, c := range calls {
		if c.status == http.StatusServiceUnavailable {
			refused++
		}
	}
	if refused == 0 {
		s.t.Error("no call was refused: there was room all the time")
	}
	if v.failed != refused {
		i := slices.IndexFunc(calls, func(c *call) bool { return c.failed() && c.status != http.StatusServiceUnavailable })
		s.t.Errorf("%d calls failed in another way than by 503, such as %+v", v.failed-refused, calls[i])
	}
	v.table(s.t.Output(), title, "refused with 503", fmt.Sprint(refused), "recovered after s", fmt.Sprintf("%.2f", recovered.Seconds()))
}

// TestBooksSpoolFull keeps the database away until the spool has reached its
// bound.
func TestBooksSpoolFull(t *testing.T) {
	t.Parallel()
	cluster := testkit.NewPostgresCluster(t)
	s := starve(newWorld(t, testkit.GatewayOptions{
		Database: cluster.Database(t), Binary: testkit.FailpointBinary(t),
		Env: []string{"MODELGATE_FAILPOINT_SEGMENT=65536", "MODELGATE_FAILPOINT_BOUND=524288"},
	}))
	cluster.Stop(t)
	s.eventually("calls are refused", time.Minute, s.full)
	s.l.until(t.Context(), s.l.done.Load()+callsPerSecond)
	cluster.Start(t)
	took := s.eventually("calls are served again", size(patience, 5*time.Second), s.served)
	s.l.until(t.Context(), s.l.done.Load()+callsPerSecond/2)
	s.end("spool of 512 KiB full, the database away", took)
}

// TestBooksDiskFull fills the disk that the spool is on.
func TestBooksDiskFull(t *testing.T) {
	t.Parallel()
	dir := smallDisk(t, "48m")
	s := starve(newWorld(t, testkit.GatewayOptions{
		Database: testkit.Postgres(t), Dir: dir, Binary: testkit.FailpointBinary(t),
		Env: []string{"MODELGATE_FAILPOINT_SEGMENT=131072"},
	}))
	filler := filepath.Join(dir, "filler")
	fill(t, filler)
	s.eventually("calls are refused", time.Minute, s.full)
	s.l.until(t.Context(), s.l.done.Load()+callsPerSecond)
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	took := s.eventually("calls are served again", size(patience, 5*time.Second), s.served)
	s.l.until(t.Context(), s.l.done.Load()+callsPerSecond/2)
	s.end("disk of 48 MiB full", took)
}

// smallDisk mounts a disk of its own for one test.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("NOT PROVED HERE: only root can mount a small disk; internal/spool's simulated disk covers a part of it")
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("NOT PROVED HERE: no small disk can be mounted: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fill leaves not one byte of the disk.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for block := make([]byte, 1<<16); err == nil; {
		_, err = f.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("fill the disk: %v", err)
	}
}
