package server

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"syscall"

	"modelgate/internal/httpx"
)

const (
	// filesApart are left for the spool, the database and the rest.
	filesApart = 256
	// mostConnections bounds the memory of clients that only hold connections.
	mostConnections = 50_000
)

// boundConnections keeps clients from taking every file there is: a call
// needs one for its client and one for its provider, and the books need some.
// One public address has a quarter of them. What comes past that is closed at
// once, which is cheap, and those who were there first go on. Proxies, behind
// which there are many clients, are not bounded by address.
func boundConnections(l net.Listener, proxies httpx.Proxies) net.Listener {
	var files syscall.Rlimit
	most := mostConnections
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err == nil && files.Cur < 2*mostConnections+filesApart {
		most = max(int(files.Cur)-filesApart, 2) / 2
	}
	return &boundListener{Listener: l, proxies: proxies, most: most, each: max(most/4, 1), from: make(map[netip.Prefix]int)}
}

type boundListener struct {
	net.Listener
	proxies    httpx.Proxies
	most, each int

	mu   sync.Mutex
	open int
	from map[netip.Prefix]int
}

// Accept waits for the next connection for which there is room.
func (b *boundListener) Accept() (net.Conn, error) {
	for {
		conn, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		network := publicNetwork(conn.RemoteAddr(), b.proxies)
		if b.enter(network) {
			return &boundConn{Conn: conn, leave: sync.OnceFunc(func() { b.leave(network) })}, nil
		}
		_ = conn.Close() // it was never used
	}
}

func (b *boundListener) enter(n netip.Prefix) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open >= b.most || n.IsValid() && b.from[n] >= b.each {
		return false
	}
	b.open++
	if n.IsValid() {
		b.from[n]++
	}
	return true
}

func (b *boundListener) leave(n netip.Prefix) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open--
	if b.from[n]--; b.from[n] <= 0 {
		delete(b.from, n)
	}
}

// publicNetwork is the address, or the /64 of IPv6, that connections are
// counted by; not valid for proxies, and for private addresses, behind which
// one may stand for many clients.
func publicNetwork(a net.Addr, proxies httpx.Proxies) netip.Prefix {
	peer, err := netip.ParseAddrPort(a.String())
	address := peer.Addr().Unmap()
	if err != nil || address.IsLoopback() || address.IsPrivate() || address.IsLinkLocalUnicast() || proxies.Trusts(address) {
		return netip.Prefix{}
	}
	bits := 32
	if address.Is6() {
		bits = 64
	}
	network, _ := address.Prefix(bits) // the bits fit the address
	return network
}

// boundConn gives its room back when it is closed.
type boundConn struct {
	net.Conn
	leave func()
}

// Close closes the connection.
func (c *boundConn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}

// SyscallConn implements syscall.Conn, for a server that waits without a buffer.
func (c *boundConn) SyscallConn() (syscall.RawConn, error) {
	if raw, ok := c.Conn.(syscall.Conn); ok {
		return raw.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}

// CloseWrite ends what is written, by which the server lets a client read the
// refusal of a body before its connection is reset.
func (c *boundConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
