package provider

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
)

var errMetadata = errors.New("address of a cloud metadata service")

// tlsConfig trusts the system's authorities, and those of a file.
func tlsConfig(caFile string) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if caFile == "" {
		return config, nil
	}
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
	return config, nil
}

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
