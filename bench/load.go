package main

import (
	"bufio"
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

// drive keeps the scenario's connections busy for a while, one call after the
// other on each. Every answer is read to its end; anything but a whole 200 is
// a failure. Each connection makes a call, however late it gets to it.
func drive(t *target, sc *scenario, d time.Duration) (driven, error) {
	deadline := time.Now().Add(d)
	results := make([][]time.Duration, sc.Connections)
	failures := make([]error, sc.Connections)
	failed := make([]int, sc.Connections)
	var running sync.WaitGroup
	began := time.Now()
	for i := range sc.Connections {
		request := t.request(sc, i)
		running.Go(func() {
			for begun := false; !begun || time.Now().Before(deadline); begun = true {
				if err := session(t.address, request, deadline, &results[i]); err != nil {
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

// session makes calls on one connection until the deadline, at least one.
func session(address string, request []byte, deadline time.Time, latencies *[]time.Duration) error {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	r := bufio.NewReaderSize(conn, 64<<10)
	for {
		began := time.Now()
		if err := conn.SetDeadline(began.Add(30 * time.Second)); err != nil {
			return err
		}
		if _, err := conn.Write(request); err != nil {
			return err
		}
		if err := readAnswer(r); err != nil {
			return err
		}
		ended := time.Now()
		*latencies = append(*latencies, ended.Sub(began))
		if !ended.Before(deadline) {
			return nil
		}
	}
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
