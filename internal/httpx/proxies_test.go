package httpx_test

import (
	"crypto/tls"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/httpx"
)

var proxies = httpx.Proxies{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("203.0.113.7/32"), netip.MustParsePrefix("fe80::/10")}

func TestClientBehindProxies(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		peer      string
		forwarded []string
		want      string
	}{
		"no header":                       {"10.0.0.1", nil, "10.0.0.1"},
		"one hop":                         {"10.0.0.1", []string{"198.51.100.1"}, "198.51.100.1"},
		"a forged element before":         {"10.0.0.1", []string{"1.1.1.1, 198.51.100.1"}, "198.51.100.1"},
		"a forged line before":            {"10.0.0.1", []string{"1.1.1.1", "198.51.100.1"}, "198.51.100.1"},
		"two proxies":                     {"10.0.0.1", []string{"198.51.100.1, 203.0.113.7"}, "198.51.100.1"},
		"two proxies in two lines":        {"10.0.0.1", []string{"1.1.1.1,198.51.100.1", "203.0.113.7"}, "198.51.100.1"},
		"proxies alone":                   {"10.0.0.1", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		"an untrusted peer":               {"198.51.100.9", []string{"198.51.100.1"}, "198.51.100.9"},
		"an untrusted peer's trusted hop": {"198.51.100.9", []string{"10.0.0.2"}, "198.51.100.9"},
		"a word":                          {"10.0.0.1", []string{"198.51.100.1, unknown"}, "10.0.0.1"},
		"a word behind a proxy":           {"10.0.0.1", []string{"unknown, 10.0.0.2"}, "10.0.0.2"},
		"nothing after a comma":           {"10.0.0.1", []string{"198.51.100.1,"}, "10.0.0.1"},
		"an empty line":                   {"10.0.0.1", []string{""}, "10.0.0.1"},
		"with ports":                      {"10.0.0.1", []string{"198.51.100.1:4711"}, "198.51.100.1"},
		"IPv6":                            {"fe80::1%eth0", []string{"2001:db8::1"}, "2001:db8::1"},
		"IPv6 in brackets":                {"10.0.0.1", []string{"[2001:db8::1]"}, "2001:db8::1"},
		"IPv6 with a port":                {"10.0.0.1", []string{"[2001:db8::1]:80"}, "2001:db8::1"},
		"IPv4 in IPv6":                    {"::ffff:10.0.0.1", []string{"::ffff:198.51.100.1"}, "198.51.100.1"},
	} {
		if got := proxies.Client(netip.MustParseAddr(c.peer), c.forwarded); got.String() != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	if got := httpx.Proxies(nil).Client(netip.MustParseAddr("127.0.0.1"), []string{"198.51.100.1"}); got.String() != "127.0.0.1" {
		t.Errorf("with no proxies %s", got)
	}
}

func TestOverTLSBehindProxies(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		peer string
		said []string
		tls  bool
		want bool
	}{
		"plain":             {"10.0.0.1:1", nil, false, false},
		"its own TLS":       {"198.51.100.1:1", nil, true, true},
		"a proxy says so":   {"10.0.0.1:1", []string{"https"}, false, true},
		"a proxy says http": {"10.0.0.1:1", []string{"http"}, false, false},
		"said twice":        {"10.0.0.1:1", []string{"https", "http"}, false, false},
		"a list":            {"10.0.0.1:1", []string{"https, http"}, false, false},
		"from elsewhere":    {"198.51.100.1:1", []string{"https"}, false, false},
	} {
		r := &http.Request{RemoteAddr: c.peer, Header: http.Header{"X-Forwarded-Proto": c.said}}
		if c.tls {
			r.TLS = &tls.ConnectionState{}
		}
		if got := proxies.OverTLS(r); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestIgnoredHeadersAreLoggedOnce, and those of a trusted proxy never; the
// address of the peer is not in the log.
func TestIgnoredHeadersAreLoggedOnce(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	h := httpx.Wrap(httpx.Options{
		IDs: modelgate.NewIDs(time.Now), Log: slog.New(slog.NewTextHandler(&log, nil)), MaxBody: 1000, Proxies: proxies,
	}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	ask := func(peer string) {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = peer
		r.Header.Set("X-Forwarded-For", "198.51.100.1")
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	ask("10.0.0.1:1")
	if log.Len() > 0 {
		t.Errorf("a trusted proxy: %s", log.String())
	}
	for range 3 {
		ask("192.0.2.1:1")
	}
	if strings.Count(log.String(), "trusted_proxies") != 1 || strings.Contains(log.String(), "192.0.2.1") {
		t.Errorf("log %s", log.String())
	}
}

// FuzzClient: what is found is the peer or stands in the header, and an
// untrusted peer is never left.
func FuzzClient(f *testing.F) {
	f.Add("10.0.0.1", "198.51.100.1, [::1]:80")
	f.Add("198.51.100.1", ",,")
	f.Fuzz(func(t *testing.T, peer, forwarded string) {
		from, err := netip.ParseAddr(peer)
		if err != nil {
			return
		}
		got := proxies.Client(from, []string{forwarded})
		if !got.IsValid() || !proxies.Trusts(from) && got != from.Unmap().WithZone("") {
			t.Errorf("%s behind %s", got, from)
		}
	})
}

func TestProxiesNetwork(t *testing.T) {
	t.Parallel()
	proxies := httpx.Proxies{netip.MustParsePrefix("127.0.0.0/8")}
	for _, test := range []struct{ peer, forwarded, want string }{
		{"203.0.113.7:1", "", "203.0.113.7/32"},
		{"203.0.113.7:1", "198.51.100.1", "203.0.113.7/32"},
		{"127.0.0.1:1", "198.51.100.1", "198.51.100.1/32"},
		{"127.0.0.1:1", "198.51.100.1, 2001:db8:1:2:3::4", "2001:db8:1:2::/64"},
		{"[::ffff:203.0.113.7]:1", "", "203.0.113.7/32"},
		{"@", "", "invalid Prefix"},
	} {
		r := &http.Request{RemoteAddr: test.peer, Header: http.Header{}}
		if test.forwarded != "" {
			r.Header.Set("X-Forwarded-For", test.forwarded)
		}
		if got := proxies.Network(r).String(); got != test.want {
			t.Errorf("%s for %q: %s, want %s", test.peer, test.forwarded, got, test.want)
		}
	}
}
