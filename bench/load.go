package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
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
			out.FirstFail = failures[i].Error()
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

// readAnswer reads one HTTP/1.1 response to its end.
func readAnswer(r *bufio.Reader) error {
	status, err := r.ReadSlice('\n')
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(status, []byte("HTTP/1.1 200")) {
		return fmt.Errorf("answer %q", bytes.TrimSpace(status))
	}
	length, chunked := -1, false
	for {
		header, err := r.ReadSlice('\n')
		if err != nil {
			return err
		}
		name, value, _ := strings.Cut(strings.TrimSpace(string(header)), ":")
		switch strings.ToLower(name) {
		case "":
			if chunked {
				return readChunks(r)
			}
			if length <= 0 {
				return errors.New("answer without a body")
			}
			_, err := r.Discard(length)
			return err
		case "content-length":
			if length, err = strconv.Atoi(strings.TrimSpace(value)); err != nil {
				return err
			}
		case "transfer-encoding":
			chunked = true
		}
	}
}

func readChunks(r *bufio.Reader) error {
	for {
		head, err := r.ReadSlice('\n')
		if err != nil {
			return err
		}
		n, err := strconv.ParseInt(string(bytes.TrimSpace(head)), 16, 32)
		if err != nil {
			return err
		}
		if _, err := io.CopyN(io.Discard, r, n+2); err != nil {
			return err
		}
		if n == 0 {
			return nil
		}
	}
}
