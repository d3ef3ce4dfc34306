package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// figures are what a gateway takes beside time.
type figures struct {
	Binary     int64 // bytes
	Start      time.Duration
	Idle       int64 // RSS, bytes
	IdleStream int64 // RSS, bytes for each of idleStreams open and silent streams
}

// idleStreams is how many streams are held open at once.
const idleStreams = 5000

// footprint measures a gateway of its own, started on an existing database.
func footprint(o *options, targets []*target) (*figures, error) {
	dir, err := os.MkdirTemp("", "modelgate-bench-")
	if err != nil {
		return nil, err
	}
	f := &fleet{dir: dir}
	defer f.stop()
	info, err := os.Stat(o.binary)
	if err != nil {
		return nil, err
	}
	out := &figures{Binary: info.Size()}
	g := gateway{name: "footprint", binary: o.binary, fsync: "interval", dir: filepath.Join(dir, "data"), upstream: targets[0].address, secure: targets[0].address, scale: ordinary()}
	first, err := g.start()
	if err := f.add(first, err); err != nil {
		return nil, err
	}
	f.targets = nil
	_ = first.process.Process.Signal(syscall.SIGTERM)
	_ = first.process.Wait()

	began := time.Now()
	t, err := g.serve()
	if err := f.add(t, err); err != nil {
		return nil, err
	}
	t.keys = first.keys
	if err := awaitOK(t.address, "/readyz"); err != nil {
		return nil, err
	}
	out.Start = time.Since(began)
	time.Sleep(2 * time.Second) // what starting left behind is given back
	out.Idle = t.rss()
	out.IdleStream, err = holdStreams(t)
	return out, err
}

// holdStreams opens streams that stay silent, and says what each takes.
func holdStreams(t *target) (int64, error) {
	request := t.request(&scenario{Model: modelHeld, Body: 900}, 0)
	var open []net.Conn
	defer func() {
		for _, c := range open {
			c.Close()
		}
	}()
	before := t.rss()
	for range idleStreams {
		c, err := net.Dial("tcp", t.address)
		if err != nil {
			return 0, fmt.Errorf("%d streams: %w", len(open), err)
		}
		open = append(open, c)
		if _, err := c.Write(request); err != nil {
			return 0, err
		}
	}
	buf := make([]byte, 4096)
	for _, c := range open {
		if err := c.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
			return 0, err
		}
		n, err := c.Read(buf)
		if err != nil || !strings.HasPrefix(string(buf[:n]), "HTTP/1.1 200") {
			return 0, fmt.Errorf("a held stream: %q, %v", buf[:n], err)
		}
	}
	return (t.rss() - before) / idleStreams, nil
}
