package main

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// driven is what a slice of load gave.
type driven struct {
	turn
	calls int
}

// drive loads the target for a while: in a closed loop, where each connection
// makes one call after the other and at least one, or at a rate in calls per
// second. Every answer is read to its end; anything but a whole 200 is a failure.
func drive(t *target, sc *scenario, d time.Duration, rate int) (driven, error) {
	results := make([][]time.Duration, sc.Connections)
	failures := make([]error, sc.Connections)
	failed := make([]int, sc.Connections)
	var running sync.WaitGroup
	began := time.Now()
	starts := closedLoop(began.Add(d))
	if rate > 0 {
		starts = openLoop(d, rate)
	}
	for i := range sc.Connections {
		request := t.request(sc, i)
		running.Go(func() {
			next := starts()
			for at, ok := next(); ok; at, ok = next() {
				if err := t.session(request, at, next, &results[i]); err != nil {
					failures[i] = err
					failed[i]++
					time.Sleep(10 * time.Millisecond)
				}
			}
		})
	}
	running.Wait()
	all := slices.Concat(results...)
	if len(all) == 0 {
		return driven{}, fmt.Errorf("no call succeeded: %w", errors.Join(failures...))
	}
	slices.Sort(all)
	out := driven{calls: len(all)}
	out.Rate = float64(len(all)) / time.Since(began).Seconds()
	out.P50, out.P99 = all[len(all)/2], all[len(all)*99/100]
	for i, n := range failed {
		out.Failures += n
		if failures[i] != nil {
			out.FirstFail = failures[i]
		}
	}
	return out, nil
}

// A starter says when a connection's next call is to begin, and false when
// there are no more.
type starter func() (time.Time, bool)

// closedLoop starts a connection's call as soon as the one before has ended,
// the first in any case, until the deadline.
func closedLoop(deadline time.Time) func() starter {
	return func() starter {
		first := true
		return func() (time.Time, bool) {
			now := time.Now()
			more := first || now.Before(deadline)
			first = false
			return now, more
		}
	}
}

// openLoop starts calls at even intervals, whichever connection is free for
// them. A call that no connection is free for waits, and has begun.
func openLoop(d time.Duration, rate int) func() starter {
	calls := int(d.Seconds() * float64(rate))
	due := make(chan time.Time, calls)
	go func() {
		defer close(due)
		began := time.Now()
		for i := range calls {
			at := began.Add(time.Duration(i) * time.Second / time.Duration(rate))
			sleepUntil(at)
			due <- at
		}
	}()
	return func() starter {
		return func() (time.Time, bool) {
			at, ok := <-due
			return at, ok
		}
	}
}

// session makes calls on one connection, the first of which began at the given
// time, until there are no more.
func (t *target) session(request []byte, began time.Time, next starter, latencies *[]time.Duration) error {
	conn, err := t.dial()
	if err != nil {
		return err
	}
	defer conn.Close()
	r := bufio.NewReaderSize(conn, 64<<10)
	for more := true; more; began, more = next() {
		if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
			return err
		}
		if _, err := conn.Write(request); err != nil {
			return err
		}
		if err := readAnswer(r); err != nil {
			return err
		}
		*latencies = append(*latencies, time.Since(began))
	}
	return nil
}

// dial opens a connection as clients do.
func (t *target) dial() (net.Conn, error) {
	if t.certified != nil {
		return tls.Dial("tcp", t.address, t.certified)
	}
	return net.Dial("tcp", t.address)
}

// readAnswer reads one response to its end.
func readAnswer(r *bufio.Reader) error {
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		return err
	}
	n, err := io.Copy(io.Discard, resp.Body)
	switch {
	case err != nil:
		return err
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("answer %s", resp.Status)
	case n == 0:
		return errors.New("answer without a body")
	}
	return nil
}
