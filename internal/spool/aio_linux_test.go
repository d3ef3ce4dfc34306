package spool

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAIO(t *testing.T) {
	t.Parallel()
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	pipe, end, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	defer end.Close()
	real := newAIO()
	if real == nil {
		t.Fatal("the system has no asynchronous input and output (aio(7)): fs.aio-max-nr is used up, or a sandbox refuses it")
	}
	for name, a := range map[string]*aio{"aio": real, "thread": nil} {
		t.Run(name, func(t *testing.T) {
			var all, pollers sync.WaitGroup
			synced := make(chan struct{})
			pollers.Go(func() { // the end of a sync is told of once, whoever sees it
				for {
					select {
					case <-synced:
						return
					default:
						a.poll()
					}
				}
			})
			for range 4 {
				all.Go(func() {
					for i := range 20 {
						if _, err := file.WriteAt([]byte("an entry"), int64(i)); err != nil {
							t.Error(err)
						}
						if err := a.syncData(file); err != nil {
							t.Error(err)
						}
					}
				})
			}
			all.Wait()
			close(synced)
			pollers.Wait()
			if err := a.syncData(pipe); !errors.Is(err, unix.EINVAL) {
				t.Errorf("a pipe: %v, want what fdatasync says: %v", err, unix.EINVAL)
			}
			closed, err := os.Open(file.Name())
			if err != nil {
				t.Fatal(err)
			}
			closed.Close()
			if err := a.syncData(closed); err == nil {
				t.Error("a closed file was synced")
			}
			if err := a.syncData(file); err != nil {
				t.Errorf("after failures: %v", err)
			}
			if err := a.close(); err != nil {
				t.Error(err)
			}
		})
	}
}
