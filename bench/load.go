package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// drive loads the target for a while: in a closed loop, where each connection
// makes one call after the other and at least one, or at a rate in calls per
// second. Every answer is read to its end; anything but a 200 with all that the
// provider said is a failure.
func drive(t *target, sc *scenario, d time.Duration, rate int) (turn, error) {
	results := make([][]time.Duration, sc.Connections)
	failures := make([]error, sc.Connections)
	failed := make([]int, sc.Connections)
	var running sync.WaitGroup
	began := time.Now()
	starts := closedLoop(began.Add(d))
	if rate > 0 {
		starts = openLoop(d, rate)
	}
	want := sc.saying()
	for i := range sc.Connections {
		request := t.request(sc, i)
		running.Go(func() {
			next := starts()
			for at, ok := next(); ok; at, ok = next() {
				if err := t.session(request, want, at, next, &results[i]); err != nil {
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
		return turn{}, fmt.Errorf("no call succeeded: %w", firstOf(failures))
	}
	slices.Sort(all)
	out := turn{Calls: len(all)}
	out.Rate = float64(len(all)) / time.Since(began).Seconds()
	out.P50, out.P99 = all[len(all)/2], all[len(all)*99/100]
	for _, n := range failed {
		out.Failures += n
	}
	out.FirstFail = firstOf(failures)
	return out, nil
}

// firstOf is the first error that is one.
func firstOf(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
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
// time, until there are no more. All that is wanted must be in each answer.
func (t *target) session(request []byte, want [][]byte, began time.Time, next starter, latencies *[]time.Duration) error {
	conn, err := t.dial()
	if err != nil {
		return err
	}
	defer conn.Close()
	r := bufio.NewReaderSize(conn, 64<<10)
	var answer bytes.Buffer
	for more := true; more; began, more = next() {
		if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
			return err
		}
		if _, err := conn.Write(request); err != nil {
			return err
		}
		if err := readAnswer(r, &answer, want); err != nil {
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

// readAnswer reads one response to its end, into a buffer that it empties first.
func readAnswer(r *bufio.Reader, answer *bytes.Buffer, want [][]byte) error {
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		return err
	}
	answer.Reset()
	if _, err := answer.ReadFrom(resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("answer %s: %.200s", resp.Status, answer.Bytes())
	}
	for _, text := range want {
		if !bytes.Contains(answer.Bytes(), text) {
			return fmt.Errorf("answer without %s: %.200s", text, answer.Bytes())
		}
	}
	return nil
}
