package httpx

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// ForwardedFor is the header in which reverse proxies say for whom they ask.
const ForwardedFor = "X-Forwarded-For"

const forwardedProto = "X-Forwarded-Proto"

// Proxies are the networks of the trusted reverse proxies, whose headers about
// their clients are believed; nil for none. Safe for concurrent use.
type Proxies []netip.Prefix

// Trusts reports whether an address is such a proxy's.
func (p Proxies) Trusts(a netip.Addr) bool {
	if len(p) == 0 {
		return false
	}
	a = a.Unmap().WithZone("")
	return slices.ContainsFunc(p, func(network netip.Prefix) bool { return network.Contains(a) })
}

// Client is the address that a request comes from: its peer's, or where that
// is a trusted proxy the last one in the lines of X-Forwarded-For that is not.
// If an element is not an address, the client is the hop that added it.
func (p Proxies) Client(peer netip.Addr, forwarded []string) netip.Addr {
	client := peer.Unmap().WithZone("")
	for _, line := range slices.Backward(forwarded) {
		for _, element := range slices.Backward(strings.Split(line, ",")) {
			hop, ok := parseHop(strings.TrimSpace(element))
			if !ok || !p.Trusts(client) {
				return client
			}
			client = hop
		}
	}
	return client
}

// Network is what requests of one client are counted by: its IPv4 address, or the
// /64 of an IPv6 address, which one customer usually holds.
func (p Proxies) Network(r *http.Request) netip.Prefix {
	client := p.Client(peerOf(r), r.Header[ForwardedFor])
	bits := 32
	if client.Is6() {
		bits = 64
	}
	network, _ := client.Prefix(bits) // the zero prefix for the zero address
	return network
}

// parseHop reads one element of X-Forwarded-For: an address, in brackets or not,
// with a port or without.
func parseHop(text string) (netip.Addr, bool) {
	a, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"))
	if err != nil {
		both, portErr := netip.ParseAddrPort(text)
		if portErr != nil {
			return netip.Addr{}, false
		}
		a = both.Addr()
	}
	return a.Unmap().WithZone(""), true
}

// OverTLS reports whether a request came over TLS, to here or to a trusted
// proxy that says so.
func (p Proxies) OverTLS(r *http.Request) bool {
	if r.TLS != nil {
		return true
	}
	said := r.Header[forwardedProto]
	return len(said) == 1 && strings.EqualFold(strings.TrimSpace(said[0]), "https") && p.Trusts(peerOf(r))
}

// Ignored reports whether a request has headers of a proxy that is not trusted.
func (p Proxies) Ignored(r *http.Request) bool {
	return (len(r.Header[ForwardedFor]) > 0 || len(r.Header[forwardedProto]) > 0) && !p.Trusts(peerOf(r))
}

// peerOf is the address of a request's connection; the zero one where there is
// none to be read.
func peerOf(r *http.Request) netip.Addr {
	peer, _ := netip.ParseAddrPort(r.RemoteAddr) // an address that cannot be parsed is not trusted
	return peer.Addr()
}
