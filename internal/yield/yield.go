// Package yield lets goroutines give others a turn where Go's scheduler does not
// do so soon enough: long background work yields to calls, and calls that are
// about to write to sockets yield to each other.
//
// runtime.Gosched alone does not let background work yield: it runs goroutines
// that are runnable, and one whose socket has become readable is not until the
// scheduler has polled the network. On a single processor it polls when nothing
// is runnable, which is never while background work runs, or every ten
// milliseconds.
package yield

import (
	"errors"
	"os"
	"runtime"
	"syscall"
	"time"
)

// Yielder has the scheduler poll the network. It owns a pipe: a goroutine that
// waits until the pipe is readable runs after every goroutine whose socket was
// ready before. The nil Yielder, and one without a pipe, yields to runnable
// goroutines only. Safe for concurrent use.
type Yielder struct {
	read, write *os.File
	conn        syscall.RawConn // of read
}

// New opens the pipe. If the process has no file descriptor left, the Yielder has
// no pipe.
func New() *Yielder {
	read, write, err := os.Pipe()
	if err != nil {
		return new(Yielder)
	}
	conn, err := read.SyscallConn()
	if err != nil {
		_ = errors.Join(read.Close(), write.Close())
		return new(Yielder)
	}
	return &Yielder{read, write, conn}
}

// Close closes the pipe. The Yielder may still be used.
func (y *Yielder) Close() error {
	if y == nil || y.conn == nil {
		return nil
	}
	return errors.Join(y.read.Close(), y.write.Close())
}

// Yield returns once every goroutine has had a turn that is runnable or whose
// socket is ready.
func (y *Yielder) Yield() {
	if y != nil && y.conn != nil {
		y.poll()
	}
	// Of the goroutines that one poll makes runnable, the scheduler runs the last first.
	runtime.Gosched()
}

// poll writes a byte into the pipe and waits until it can be read. An error means
// that the pipe is closed.
func (y *Yielder) poll() {
	var b [1]byte
	written := false
	_ = y.conn.Read(func(fd uintptr) bool {
		if !written {
			written = true
			_, err := y.write.Write(b[:])
			return err != nil
		}
		_, err := syscall.Read(int(fd), b[:])
		return err != syscall.EAGAIN && err != syscall.EINTR
	})
}

const (
	// quantum is about how long background work runs before it yields. With a
	// longer one calls wait; with a shorter one caches are refilled too often.
	quantum = 500 * time.Microsecond
	// clockSteps is how many steps lie between two looks at the clock, because a
	// step may be shorter than a look.
	clockSteps = 8
)

// Loop is a long loop of one goroutine that yields about every half millisecond.
type Loop struct {
	yielder *Yielder
	began   time.Time // of the present quantum
	steps   int
}

// Loop begins a loop.
func (y *Yielder) Loop() Loop { return Loop{yielder: y, began: time.Now()} }

// Step is called after each iteration.
func (l *Loop) Step() {
	if l.steps++; l.steps%clockSteps != 0 || time.Since(l.began) < quantum {
		return
	}
	l.yielder.Yield()
	l.began = time.Now()
}
