package yield

import (
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// TestYieldReachesThePoller lets a goroutine wait for a socket while another,
// on the only processor there is, goes on working.
func TestYieldReachesThePoller(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	w := New()
	defer w.Close()
	here, there := pair(t)
	late := 0
	for range 100 {
		read := reader(t, there)
		wake(t, here)
		w.Yield()
		if !read.Load() {
			late++
		}
		for !read.Load() {
			time.Sleep(time.Millisecond)
		}
	}
	if late > 10 { // the kernel may take its time to carry a byte
		t.Errorf("of 100 sockets that were ready %d were not read in the turn of others", late)
	}
}

// reader waits for a byte in a goroutine of its own.
func reader(t *testing.T, c net.Conn) *atomic.Bool {
	read := new(atomic.Bool)
	go func() {
		if _, err := c.Read(make([]byte, 1)); err != nil {
			t.Error(err)
		}
		read.Store(true)
	}()
	runtime.Gosched() // until it waits
	return read
}

func wake(t *testing.T, c net.Conn) {
	t.Helper()
	if _, err := c.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
}

// pair is two ends of a connection.
func pair(t *testing.T) (here, there net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if here, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { here.Close() })
	if there, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { there.Close() })
	return here, there
}

// TestYieldWithoutPipe yields without a pipe, and with one that was closed.
func TestYieldWithoutPipe(t *testing.T) {
	closed := New()
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	for name, w := range map[string]*Yielder{"nil": nil, "empty": new(Yielder), "closed": closed} {
		w.Yield()
		if err := w.Close(); err != nil && name != "closed" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestYieldConcurrently has several yield at the same time: none waits for
// another's byte.
func TestYieldConcurrently(t *testing.T) {
	w := New()
	defer w.Close()
	done := make(chan struct{})
	for range 8 {
		go func() {
			for range 1000 {
				w.Yield()
			}
			done <- struct{}{}
		}()
	}
	for range 8 {
		<-done
	}
}

// TestStep yields once a quantum is over, and not before.
func TestStep(t *testing.T) {
	loop := New().Loop()
	defer loop.yielder.Close()
	began := loop.began
	loop.began = began.Add(time.Hour)
	for range 3 * clockSteps {
		loop.Step()
	}
	if !loop.began.Equal(began.Add(time.Hour)) {
		t.Error("yielded within a quantum")
	}
	loop.began = began.Add(-quantum)
	for range clockSteps {
		loop.Step()
	}
	if loop.began.Before(began) {
		t.Error("did not yield after a quantum")
	}
}

func BenchmarkYield(b *testing.B) {
	w := New()
	defer w.Close()
	for b.Loop() {
		w.Yield()
	}
}

func BenchmarkStep(b *testing.B) {
	loop := New().Loop()
	defer loop.yielder.Close()
	for b.Loop() {
		loop.Step()
	}
}
