package provider

import (
	"net"
	"net/netip"
	"strings"
	"syscall"
)

// RefuseMetadata is the Control of a net.Dialer: called with the resolved
// address before each connection, it refuses those of cloud metadata services.
func RefuseMetadata(_, address string, _ syscall.RawConn) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	if forbiddenHost(host) {
		return errMetadata
	}
	return nil
}

// forbiddenHost reports whether a name or address is that of a metadata
// service of AWS, Google Cloud, Azure, Oracle or Alibaba, or of a container
// credential endpoint.
func forbiddenHost(host string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if host == "metadata.google.internal" || host == "metadata.goog" || host == "instance-data" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	switch ip.WithZone("").Unmap().String() {
	case "169.254.169.254", "169.254.170.2", "169.254.170.23", "100.100.100.200",
		"fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254":
		return true
	}
	return false
}

// errNotPublic is why an organization's webhook is not connected to.
var errNotPublic = &Unreachable{Cause: "forbidden", Detail: "address is not a public one"}

// notPublic are the networks that the public Internet does not reach, besides
// those that netip.Addr knows (IANA special-purpose address registries), and
// those that carry an IPv4 address, which may be one of them.
var notPublic = [...]netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("100.64.0.0/10"), // carrier NAT
	netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("::/96"),
	netip.MustParsePrefix("64:ff9b::/96"),
	netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("2001::/23"),
	netip.MustParsePrefix("2002::/16"),
	netip.MustParsePrefix("fec0::/10"),
}

// RefusePrivate is the Control of a net.Dialer that connects to addresses which
// tenants choose: called with the resolved address before each connection, it
// refuses everything but public addresses, so that no tenant reaches a server of
// the operator's network.
func RefusePrivate(network, address string, c syscall.RawConn) error {
	if err := RefuseMetadata(network, address, c); err != nil {
		return err
	}
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	ip := at.Addr().WithZone("").Unmap()
	if !ip.IsGlobalUnicast() || ip.IsPrivate() {
		return errNotPublic
	}
	for _, p := range notPublic {
		if p.Contains(ip) {
			return errNotPublic
		}
	}
	return nil
}
