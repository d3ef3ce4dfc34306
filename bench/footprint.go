package main

import (
	"fmt"
	"net"
	"os"
	"strings"
	"time"
)

// figures are what a gateway takes beside time. Memory is RSS in bytes.
type figures struct {
	Binary     int64 // bytes
	Start      time.Duration
	Idle       int64 // with the keys of ordinary
	IdleLarge  int64 // with the keys of hundredfold; 0 where it was not asked for
	IdleStream int64 // for each of idleStreams open and silent streams
	IdleConn   int64 // for each of idleConns open connections between calls
}

// How many streams and connections are held open at once.
const (
	idleStreams = 5000
	idleConns   = 9000
)

// footprint measures gateways of its own, started on existing databases.
func footprint(o *options, providers [len(links)]*target) (*figures, error) {
	info, err := os.Stat(o.binary)
	if err != nil {
		return nil, err
	}
	out := &figures{Binary: info.Size()}
	g := gateway{name: "footprint", binary: o.binary, fsync: "interval", providers: providers, scale: ordinary()}
	if err := g.restarted(func(t *target, ready time.Duration) error {
		out.Start, out.Idle = ready, t.rss()
		if out.IdleConn, err = hold(t, modelPlain, idleConns); err != nil {
			return err
		}
		return nil
	}); err != nil {
		return nil, err
	}
	if err := g.restarted(func(t *target, _ time.Duration) error {
		out.IdleStream, err = hold(t, modelHeld, idleStreams)
		return err
	}); err != nil || !o.large {
		return out, err
	}
	g.scale = hundredfold()
	err = g.restarted(func(t *target, _ time.Duration) error {
		out.IdleLarge = t.rss()
		return nil
	})
	return out, err
}

// restarted fills a database, starts the gateway on it a second time and lets f
// look at it once it is idle. It tells f how long that start took.
func (g gateway) restarted(f func(t *target, ready time.Duration) error) error {
	dir, err := os.MkdirTemp("", "modelgate-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	g.dir = dir
	first, err := g.start()
	if err != nil {
		return err
	}
	first.end()
	began := time.Now()
	t, err := g.serve()
	if err != nil {
		return err
	}
	defer t.end()
	t.keys = first.keys
	if err := awaitOK(t.address, "/readyz", 10*time.Second); err != nil {
		return err
	}
	ready := time.Since(began)
	time.Sleep(2 * time.Second) // what starting left behind is given back
	return f(t, ready)
}

// hold opens connections, makes a call of a model on each and says what memory
// each takes then: of modelHeld the answers stay open, of others the
// connections do.
func hold(t *target, model string, n int) (int64, error) {
	request := t.request(&scenario{Model: model, Body: 900}, 0)
	var open []net.Conn
	defer func() {
		for _, c := range open {
			c.Close()
		}
	}()
	before := t.rss()
	buf := make([]byte, 16<<10)
	for range n {
		c, err := net.Dial("tcp", t.address)
		if err != nil {
			return 0, fmt.Errorf("%d connections: %w", len(open), err)
		}
		open = append(open, c)
		if _, err := c.Write(request); err != nil {
			return 0, err
		}
		if err := c.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
			return 0, err
		}
		got, err := c.Read(buf)
		if err != nil || !strings.HasPrefix(string(buf[:got]), "HTTP/1.1 200") {
			return 0, fmt.Errorf("connection %d: %q, %v", len(open), buf[:got], err)
		}
	}
	return (t.rss() - before) / int64(n), nil
}
