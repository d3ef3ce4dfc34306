package provider

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"time"
)

var errMetadata = errors.New("address of a cloud metadata service")

// newTransport makes the connection pool of one provider. It never follows
// redirects, never decompresses, and refuses cloud metadata services by the
// address it is about to connect to, whatever name led there.
func newTransport(t Timeouts, caFile string) (*http.Transport, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if caFile != "" {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		pem, err := os.ReadFile(caFile)
		if err != nil {
			return nil, fmt.Errorf("ca_file: %w", err)
		}
		if !pool.AppendCertsFromPEM(pem) {
			return nil, errors.New("ca_file: no certificate in PEM form")
		}
		config.RootCAs = pool
	}
	dialer := &net.Dialer{Timeout: t.Connect, KeepAlive: 30 * time.Second, Control: refuseMetadata}
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            counted(dialer.DialContext),
		TLSClientConfig:        config,
		TLSHandshakeTimeout:    t.Connect,
		ResponseHeaderTimeout:  t.FirstByte,
		DisableCompression:     true,
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
		MaxIdleConns:           8192,
		MaxIdleConnsPerHost:    1024,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 256 << 10,
		WriteBufferSize:        16 << 10,
		ReadBufferSize:         16 << 10,
	}, nil
}

// refuseMetadata is called with the resolved address before each connection.
func refuseMetadata(_, address string, _ syscall.RawConn) error {
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
