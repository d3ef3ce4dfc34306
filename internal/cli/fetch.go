package cli

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
	"sync/atomic"
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

// readList reads a price list from a file or from an address.
func (a *app) readList(ctx context.Context, from string) ([]byte, error) {
	if !strings.HasPrefix(from, "https://") && !strings.HasPrefix(from, "http://") {
		return os.ReadFile(from)
	}
	if !secure(from) {
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
	body := &counted{r: resp.Body, part: "download", total: resp.ContentLength}
	defer a.terminal(a.Stderr).Watch("bytes", body.sample)()
	text, err := io.ReadAll(io.LimitReader(body, maxList+1))
	if err == nil && len(text) > maxList {
		err = fmt.Errorf("%s is larger than %d bytes", from, maxList)
	}
	return text, err
}

// secure reports whether an address is one of https, or of this machine.
func secure(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "https" || ip != nil && ip.IsLoopback()
}

// counted counts what is read.
type counted struct {
	r     io.Reader
	part  string
	total int64 // bytes; 0 or less: unknown
	done  atomic.Int64
}

// Read reads on.
func (c *counted) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.done.Add(int64(n))
	return n, err
}

func (c *counted) sample() terminal.Sample {
	return terminal.Sample{Part: c.part, Done: c.done.Load(), Total: max(c.total, 0)}
}
