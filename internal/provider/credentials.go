package provider

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"modelgate"
	"modelgate/internal/httpfield"
)

// Auth is how a credential travels: in a header, behind a prefix, or in a
// query parameter. The zero value sends none.
type Auth struct {
	Header string // canonical
	Prefix string // such as "Bearer "
	Query  string // the name of a parameter; Header is empty then
}

// OlderAuth replaces Auth for a client whose version header is there and
// sorts before a version.
type OlderAuth struct {
	Header, Before string
	Auth           Auth
}

func bearer() Auth            { return Auth{Header: "Authorization", Prefix: "Bearer "} }
func header(name string) Auth { return Auth{Header: http.CanonicalHeaderKey(name)} }

const (
	// restTime is how long a credential rests that was refused, unless the
	// provider says otherwise; maxRest bounds what it may say.
	restTime = 30 * time.Second
	maxRest  = 10 * time.Minute
	// fileCheck is how often a credential file is looked at.
	fileCheck = time.Second
	// maxCredential bounds a credential, in bytes.
	maxCredential = 8 << 10
)

// credential is one secret of a provider.
type credential struct {
	value       string
	fingerprint string // tells credentials apart without revealing them
	rests       time.Time
}

func newCredential(value string) *credential {
	sum := sha256.Sum256([]byte("modelgate credential\x00" + value))
	return &credential{value: value, fingerprint: hex.EncodeToString(sum[:8])}
}

// credentials hands out a provider's secrets in turn. Safe for concurrent
// use.
type credentials struct {
	now      func() time.Time
	file     string
	optional bool

	mu       sync.Mutex
	since    time.Time // when what follows became known
	list     []*credential
	previous []*credential
	turn     int
	checked  time.Time // when the file was last looked at
	modified time.Time
	size     int64
}

// pick returns the next credential that does not rest; if all do, the one
// that wakes first. Where the call needs none and there is none it is nil.
func (c *credentials) pick() (*credential, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.refresh(); err != nil {
		return nil, err
	}
	if len(c.list) == 0 {
		if c.optional {
			return nil, nil
		}
		return nil, modelgate.ErrCredential
	}
	if len(c.list) == 1 {
		return c.list[0], nil
	}
	now := c.now()
	best := c.list[c.turn%len(c.list)]
	for i := range c.list {
		next := c.list[(c.turn+i)%len(c.list)]
		if !next.rests.After(now) {
			best = next
			break
		}
		if next.rests.Before(best.rests) {
			best = next
		}
	}
	c.turn++
	return best, nil
}

// find returns the credential with a fingerprint, previous ones included. It
// was used at an instant; the zero time is long ago. Errors:
// modelgate.ErrCredentialNewer where that was after the credentials became known
// here, else modelgate.ErrCredentialGone.
func (c *credentials) find(fingerprint string, used time.Time) (*credential, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.refresh(); err != nil {
		return nil, err
	}
	for _, list := range [][]*credential{c.list, c.previous} {
		for _, known := range list {
			if known.fingerprint == fingerprint {
				return known, nil
			}
		}
	}
	if used.After(c.since) {
		return nil, modelgate.ErrCredentialNewer
	}
	return nil, modelgate.ErrCredentialGone
}

// shows reports whether a text has one of the credentials in it.
func (c *credentials) shows(text string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, list := range [][]*credential{c.list, c.previous} {
		for _, known := range list {
			if known.value == "" { // of an identity
				continue
			}
			if strings.Contains(text, known.value) || strings.Contains(text, url.QueryEscape(known.value)) {
				return true
			}
		}
	}
	return false
}

// InUse says that calls go out with these credentials from now on, and with no
// earlier ones: a job that was made before with a credential that is not among
// them has lost it.
func (p *Provider) InUse() {
	p.secrets.mu.Lock()
	defer p.secrets.mu.Unlock()
	p.secrets.since = p.secrets.now()
}

// refresh reads the file again when it has changed.
func (c *credentials) refresh() error {
	now := c.now()
	if c.file == "" || len(c.list) > 0 && now.Sub(c.checked) < fileCheck && !now.Before(c.checked) {
		return nil
	}
	info, err := os.Stat(c.file)
	if err != nil {
		c.list, c.modified = nil, time.Time{}
		return modelgate.ErrCredential
	}
	c.checked = now
	if len(c.list) > 0 && info.ModTime().Equal(c.modified) && info.Size() == c.size {
		return nil
	}
	c.list = nil
	if info.Size() > maxCredential {
		return modelgate.ErrCredential
	}
	content, err := os.ReadFile(c.file)
	value := strings.TrimSpace(string(content))
	if err != nil || value == "" || !httpfield.IsValue(value) {
		return modelgate.ErrCredential
	}
	c.list, c.since = []*credential{newCredential(value)}, now
	c.modified, c.size = info.ModTime(), info.Size()
	return nil
}

// note lets a credential rest that the provider refused or throttled.
func (c *credentials) note(used *credential, reply *http.Response) {
	if used == nil || reply.StatusCode != http.StatusUnauthorized && reply.StatusCode != http.StatusTooManyRequests {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	used.rests = now.Add(RetryAfter(reply.Header.Get("Retry-After"), now, restTime))
}

// RetryAfter reads a Retry-After header, seconds or a date, into a duration
// of at most ten minutes; fallback where it says nothing usable.
func RetryAfter(value string, now time.Time, fallback time.Duration) time.Duration {
	if d, err := time.ParseDuration(strings.TrimSpace(value) + "s"); err == nil && d >= 0 {
		return min(d, maxRest)
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, min(at.Sub(now), maxRest))
	}
	return fallback
}
