package e2e

import (
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// balancer spreads connections over the instances that say they are ready,
// as any load balancer in front of several does: it looks at /readyz and
// knows nothing else.
type balancer struct {
	URL    string
	client http.Client

	mu       sync.Mutex
	backends map[int]string // address by instance
	ready    map[string]bool
	next     int
}

// probeEvery is how often readiness is looked at.
const probeEvery = 100 * time.Millisecond

func newBalancer(t *testing.T) *balancer {
	t.Helper()
	b := &balancer{backends: map[int]string{}, ready: map[string]bool{}}
	b.client = http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b.URL = "http://" + l.Addr().String()
	stop := make(chan struct{})
	var loops sync.WaitGroup
	loops.Go(func() { b.probe(stop) })
	loops.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go b.connect(conn)
		}
	})
	t.Cleanup(func() { close(stop); l.Close(); loops.Wait() })
	return b
}

// set says where an instance listens.
func (b *balancer) set(instance int, url string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.backends[instance] = strings.TrimPrefix(url, "http://")
}

func (b *balancer) probe(stop <-chan struct{}) {
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for {
		b.mu.Lock()
		var addresses []string
		for _, a := range b.backends {
			addresses = append(addresses, a)
		}
		b.mu.Unlock()
		for _, a := range addresses {
			resp, err := b.client.Get("http://" + a + "/readyz")
			good := err == nil && resp.StatusCode == http.StatusOK
			if err == nil {
				resp.Body.Close()
			}
			b.mu.Lock()
			b.ready[a] = good
			b.mu.Unlock()
		}
		select {
		case <-tick.C:
		case <-stop:
			return
		}
	}
}

// pick are the ready instances, in turn; all where none is, as balancers do,
// for a machine that is too busy to answer probes may still serve.
func (b *balancer) pick() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	ready := b.good()
	if len(ready) == 0 {
		for i := range len(b.backends) {
			ready = append(ready, b.backends[i])
		}
	}
	if len(ready) == 0 {
		return nil
	}
	b.next++
	at := b.next % len(ready)
	return append(ready[at:], ready[:at]...)
}

// good are the instances that are ready. The lock must be held.
func (b *balancer) good() (ready []string) {
	for i := range len(b.backends) {
		if a := b.backends[i]; b.ready[a] {
			ready = append(ready, a)
		}
	}
	return ready
}

// found reports how many are ready.
func (b *balancer) found() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.good())
}

func (b *balancer) connect(client net.Conn) {
	defer client.Close()
	for _, address := range b.pick() {
		server, err := net.Dial("tcp", address)
		if err != nil {
			continue
		}
		var copies sync.WaitGroup
		copies.Go(func() { _, _ = io.Copy(server, client); _ = server.(*net.TCPConn).CloseWrite() }) // either end may hang up
		copies.Go(func() { _, _ = io.Copy(client, server); client.Close() })
		copies.Wait()
		server.Close()
		return
	}
}
