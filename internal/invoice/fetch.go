package invoice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	pageTimeout = 30 * time.Second
	maxPage     = 10 << 20 // bytes
	maxPages    = 200
	// maxWait bounds what a provider may ask to wait for, retries how often.
	maxWait = time.Minute
	retries = 3
)

// Source is a provider's API of costs.
type Source struct {
	Base       string // address without a path of the API
	Credential string // an administrator's key
	ByProject  bool   // lines are told apart by project in place of by key, where a source cannot do both
	Client     *http.Client
	Sleep      func(context.Context, time.Duration) error
}

// errPages says that an API does not come to an end.
var errPages = errors.New("the pages of the bill do not end")

// pages reads the pages of a list, whose cursors are in next_page.
func (s *Source) pages(ctx context.Context, path string, query url.Values, header http.Header, each func(json.RawMessage) error) error {
	seen := make(map[string]bool)
	for range maxPages {
		text, err := s.page(ctx, path+"?"+query.Encode(), header)
		if err != nil {
			return err
		}
		var page struct {
			Data     []json.RawMessage `json:"data"`
			HasMore  bool              `json:"has_more"`
			NextPage string            `json:"next_page"`
		}
		if err := json.Unmarshal(text, &page); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		for _, one := range page.Data {
			if err := each(one); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		}
		if !page.HasMore || page.NextPage == "" {
			return nil
		}
		if seen[page.NextPage] {
			return fmt.Errorf("%s: %w: %q came twice", path, errPages, page.NextPage)
		}
		seen[page.NextPage] = true
		query.Set("page", page.NextPage)
	}
	return fmt.Errorf("%s: %w after %d", path, errPages, maxPages)
}

// page reads a page, later if the provider asks for that.
func (s *Source) page(ctx context.Context, path string, header http.Header) ([]byte, error) {
	for try := 0; ; try++ {
		text, wait, err := s.get(ctx, path, header)
		if wait == 0 || try == retries {
			return text, err
		}
		if err := s.Sleep(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// errStatus is an answer other than 200.
type errStatus int

func (e errStatus) Error() string {
	return "the provider answered " + strconv.Itoa(int(e)) + " " + http.StatusText(int(e))
}

// get makes one request; wait is how long to wait before another, 0 for not at
// all. Errors name neither the credential nor what the provider says.
func (s *Source) get(ctx context.Context, path string, header http.Header) (text []byte, wait time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(s.Base, "/")+path, nil)
	if err != nil {
		return nil, 0, err
	}
	req.Header = header.Clone()
	resp, err := s.Client.Do(req)
	if err != nil {
		return nil, 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusTooManyRequests {
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		wait = min(max(time.Duration(seconds)*time.Second, time.Second), maxWait)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, wait, errStatus(resp.StatusCode)
	}
	text, err = io.ReadAll(io.LimitReader(resp.Body, maxPage+1))
	if err == nil && len(text) > maxPage {
		err = fmt.Errorf("a page is larger than %d bytes", maxPage)
	}
	return text, 0, err
}

// errCurrency refuses a bill that cannot be compared.
var errCurrency = errors.New("only USD is compared")

// amount reads a decimal; shift moves its point to the left.
func amount(text string, shift int) (value *big.Rat, decimals int, err error) {
	text = strings.Trim(text, `"`)
	mantissa, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	if e, err := strconv.Atoi(exponent); len(text) > 64 || exponent != "" && (err != nil || e < -30 || e > 18) {
		return nil, 0, fmt.Errorf("%q is no amount", text)
	}
	value, ok := new(big.Rat).SetString(text)
	if !ok || strings.ContainsAny(text, "/_xXpP") {
		return nil, 0, fmt.Errorf("%q is no amount", text)
	}
	_, fraction, _ := strings.Cut(mantissa, ".")
	e, _ := strconv.Atoi(exponent)
	return value.Quo(value, new(big.Rat).SetInt(power(shift))), max(len(fraction)-e, 0) + shift, nil
}

func power(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }
