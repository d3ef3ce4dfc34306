package config

import (
	"net/netip"
	"net/url"
	"strings"
	"time"
)

const (
	maxOrigins    = 100
	maxCORSAge    = 24 * time.Hour
	privateAlias  = "private"
	anyOrigin     = "*"
	anyHostPrefix = "*."
)

// privateNetworks are what `private` stands for: loopback, private and
// link-local ones.
var privateNetworks = [...]string{
	"127.0.0.0/8", "::1/128", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "169.254.0.0/16", "fe80::/10",
}

// ProxyNetworks are TrustedProxies as networks, of those that are valid.
func (s *Server) ProxyNetworks() []netip.Prefix {
	var list []netip.Prefix
	for _, text := range s.TrustedProxies {
		if networks, fault := proxyNetworks(text); fault == "" {
			list = append(list, networks...)
		}
	}
	return list
}

// proxyNetworks are what one of TrustedProxies stands for, or what is wrong
// with it.
func proxyNetworks(text string) (list []netip.Prefix, fault string) {
	if text == privateAlias {
		for _, network := range privateNetworks {
			list = append(list, netip.MustParsePrefix(network))
		}
		return list, ""
	}
	network, err := netip.ParsePrefix(text)
	if address, addressErr := netip.ParseAddr(text); addressErr == nil && address.Zone() == "" {
		network, err = netip.PrefixFrom(address, address.BitLen()), nil
	}
	switch {
	case err != nil:
		return nil, "want a network such as 10.0.0.0/8, an address, or private"
	case network.Addr().Is4In6():
		return nil, "is an IPv4 network in IPv6; write it as IPv4"
	}
	return []netip.Prefix{network.Masked()}, ""
}

// checkNetwork judges what concerns proxies and other sites' pages.
func (s *Server) checkNetwork(d *document) {
	for i, text := range s.TrustedProxies {
		path := element("server.trusted_proxies", i)
		networks, fault := proxyNetworks(text)
		d.faultIf(fault != "", path, "%s", fault)
		for _, network := range networks {
			if network.Bits() == 0 {
				d.warn(path, "trusts everybody: any client can claim any address")
			}
		}
	}
	d.faultIf(len(s.CORS.Origins) > maxOrigins, "server.cors.origins", "must be at most %d", maxOrigins)
	for i, origin := range s.CORS.Origins {
		path := element("server.cors.origins", i)
		switch {
		case origin == anyOrigin && len(s.CORS.Origins) > 1:
			d.fault(path, `must stand alone: "*" is every origin`)
		case origin != anyOrigin && !isOrigin(origin):
			d.fault(path, "want an origin as browsers send it, such as https://app.example.com or https://*.example.com, in lower case and without a path")
		}
	}
	d.faultIf(s.CORS.MaxAge < 0 || s.CORS.MaxAge > maxCORSAge, "server.cors.max_age", "must be from 0 to 24h")
}

// isOrigin reports whether a text is an origin as browsers serialize it, or
// one with a star in place of the first labels of its host.
func isOrigin(text string) bool {
	scheme, host, found := strings.Cut(text, "://")
	if !found || scheme != "http" && scheme != "https" {
		return false
	}
	host = strings.TrimPrefix(host, anyHostPrefix)
	u, err := url.Parse(scheme + "://" + host)
	if err != nil || host == "" || u.Host != host || u.Hostname() == "" || strings.HasPrefix(host, ".") || strings.ContainsAny(host, "*@/?#%") {
		return false
	}
	defaultPort := u.Port() == "80" && scheme == "http" || u.Port() == "443" && scheme == "https"
	if defaultPort || strings.HasSuffix(host, ":") {
		return false
	}
	for i := range len(host) {
		if c := host[i]; c <= ' ' || c >= 0x7f || 'A' <= c && c <= 'Z' {
			return false
		}
	}
	return true
}
