// Package fetch reads price lists from files and from addresses.
package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"modelgate/internal/terminal"
)

const (
	fetchTimeout = 30 * time.Second
	// maxList bounds a price list, in bytes: today's have about five million.
	maxList = 16 << 20
)

// errInsecure refuses an address that others on the way could answer for.
var errInsecure = errors.New("a price list is fetched with https only; download it by other means and name the file")

// List reads a price list from a file or from an address. watch is called with a
// measure of a download, and what it returns when that is over.
func List(ctx context.Context, from string, watch func(unit string, sample func() terminal.Sample) (stop func())) ([]byte, error) {
	if !strings.HasPrefix(from, "https://") && !strings.HasPrefix(from, "http://") {
		return os.ReadFile(from)
	}
	if !Secure(from) {
		return nil, fmt.Errorf("%s: %w", from, errInsecure)
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, err
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%w; download the list by other means and name the file", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answered %s", from, resp.Status)
	}
	body := &terminal.Reader{R: resp.Body, Part: "download", Total: resp.ContentLength}
	defer watch("bytes", body.Sample)()
	text, err := io.ReadAll(io.LimitReader(body, maxList+1))
	if err == nil && len(text) > maxList {
		err = fmt.Errorf("%s is larger than %d bytes", from, maxList)
	}
	return text, err
}

// Secure reports whether an address is one of https, or of this machine.
func Secure(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "https" || ip != nil && ip.IsLoopback()
}
