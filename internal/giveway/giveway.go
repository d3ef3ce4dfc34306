// Package giveway lets long work give way to the calls that are being served.
//
// runtime.Gosched alone does not: it lets those goroutines run that can, and one
// whose socket has got something to read cannot until the scheduler has asked
// the system's poller. On a lone processor it asks when there is nothing else to
// run, which there always is while something works, or every ten milliseconds.
package giveway

import (
	"errors"
	"os"
	"runtime"
	"syscall"
	"time"
)

// Yielder asks the poller. It has a pipe to itself: who waits until that can be read
// comes to its turn when everybody has whose socket was ready before. The nil
// Yielder, and one without a pipe, lets only those run that can. Safe for concurrent
// use.
type Yielder struct {
	read, write *os.File
	ends        syscall.RawConn // of read
}

// New opens the pipe. Where the system has none left the Yielder has none either.
func New() *Yielder {
	w := new(Yielder)
	read, write, err := os.Pipe()
	if err != nil {
		return w
	}
	ends, err := read.SyscallConn()
	if err != nil {
		_ = errors.Join(read.Close(), write.Close())
		return w
	}
	return &Yielder{read, write, ends}
}

// Close closes the pipe. The Yielder may still be used.
func (w *Yielder) Close() error {
	if w == nil || w.ends == nil {
		return nil
	}
	return errors.Join(w.read.Close(), w.write.Close())
}

// Give returns after everybody else has had a turn who can run or whose socket
// is ready.
func (w *Yielder) Give() {
	if w != nil && w.ends != nil {
		w.poll()
	}
	// Of all that the poller finds at once the scheduler runs the last one first.
	runtime.Gosched()
}

// poll waits for the byte that it writes. An error is that of a closed pipe.
func (w *Yielder) poll() {
	var room [1]byte
	written := false
	_ = w.ends.Read(func(fd uintptr) bool {
		if !written {
			written = true
			_, err := w.write.Write(room[:])
			return err != nil
		}
		_, err := syscall.Read(int(fd), room[:])
		return err != syscall.EAGAIN && err != syscall.EINTR
	})
}

// A stretch of work without a turn of others is about this long: longer, and
// calls wait for it; shorter, and processor caches are filled anew too often.
// What is worked on in one step may take its time.
const stretch = 500 * time.Microsecond

// Work is what one goroutine does in steps, giving way now and then.
type Work struct {
	way   *Yielder
	began time.Time // of the present stretch
	steps int
}

// Work begins.
func (w *Yielder) Work() Work { return Work{way: w, began: time.Now()} }

// steps between two looks at the clock: a step may be shorter than a look.
const looks = 8

// Step is called after each step.
func (w *Work) Step() {
	if w.steps++; w.steps%looks != 0 || time.Since(w.began) < stretch {
		return
	}
	w.way.Give()
	w.began = time.Now()
}
