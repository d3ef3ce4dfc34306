// Package credential holds the secrets of a provider and hands them out in turn.
package credential

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"modelgate"
	"modelgate/internal/httpfield"
)

const (
	// restTime is how long a credential rests that was refused, unless the
	// provider says otherwise; maxRest bounds what it may say.
	restTime = 30 * time.Second
	maxRest  = 10 * time.Minute
	// fileCheck is how often a credential file is looked at.
	fileCheck = time.Second
	// maxLength bounds a credential, in bytes.
	maxLength = 8 << 10
)

// Credential is one secret of a provider.
type Credential struct {
	value       string
	fingerprint string // tells credentials apart without revealing them
	rests       time.Time
}

// Reveal is the secret itself, "" for the place of an identity.
func (c *Credential) Reveal() string { return c.value }

// Fingerprint tells credentials apart without revealing them.
func (c *Credential) Fingerprint() string { return c.fingerprint }

// String hides the secret.
func (c *Credential) String() string { return "[redacted]" }

// of is the credential with a value.
func of(value string) *Credential {
	sum := sha256.Sum256([]byte("modelgate credential\x00" + value))
	return &Credential{value: value, fingerprint: hex.EncodeToString(sum[:8])}
}

// Set hands out a provider's credentials in turn. Safe for concurrent use.
type Set struct {
	now      func() time.Time
	file     string
	optional bool

	mu       sync.Mutex
	since    time.Time // when what follows became known
	list     []*Credential
	previous []*Credential
	turn     int
	checked  time.Time // when the file was last looked at
	modified time.Time
	size     int64
}

// Config says where a set's credentials come from.
type Config struct {
	Current []string // used in turn
	File    string   // holds one instead, and is read again when it changes
	// Previous serve only what was made with them.
	Previous []string
	// Identity is the fingerprint of what authorizes calls in place of
	// credentials; "" for none.
	Identity string
	Optional bool             // calls need none
	Now      func() time.Time // the clock; nil is time.Now
}

// New checks the credentials and makes the set. It does not read the file: a call
// without a credential fails by itself.
func New(cfg Config) (*Set, error) {
	switch {
	case len(cfg.Current) > 0 && cfg.File != "":
		return nil, errors.New("give credentials or a credential file, not both")
	case cfg.Identity != "" && (len(cfg.Current) > 0 || cfg.File != ""):
		return nil, errors.New("give credentials or an identity, not both")
	}
	s := &Set{now: cfg.Now, file: cfg.File, optional: cfg.Optional}
	if s.now == nil {
		s.now = time.Now
	}
	s.since = s.now()
	if cfg.Identity != "" {
		s.list = []*Credential{{fingerprint: cfg.Identity}}
	}
	for i, value := range slices.Concat(cfg.Current, cfg.Previous) {
		value = strings.TrimSpace(value)
		switch {
		case value == "":
		case !httpfield.IsValue(value) || len(value) > maxLength:
			return nil, errors.New("a credential has control characters or is too long")
		case i < len(cfg.Current):
			s.list = append(s.list, of(value))
		default:
			s.previous = append(s.previous, of(value))
		}
	}
	return s, nil
}

// Pick returns the next credential that does not rest; if all do, the one
// that wakes first. Where the call needs none and there is none it is nil.
func (s *Set) Pick() (*Credential, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refresh(); err != nil {
		return nil, err
	}
	if len(s.list) == 0 {
		if s.optional {
			return nil, nil
		}
		return nil, modelgate.ErrCredential
	}
	if len(s.list) == 1 {
		return s.list[0], nil
	}
	now := s.now()
	best := s.list[s.turn%len(s.list)]
	for i := range s.list {
		next := s.list[(s.turn+i)%len(s.list)]
		if !next.rests.After(now) {
			best = next
			break
		}
		if next.rests.Before(best.rests) {
			best = next
		}
	}
	s.turn++
	return best, nil
}

// Find returns the credential with a fingerprint, previous ones included. It
// was used at an instant; the zero time is long ago. Errors:
// modelgate.ErrCredentialNewer where that was after the credentials became known
// here, else modelgate.ErrCredentialGone.
func (s *Set) Find(fingerprint string, used time.Time) (*Credential, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refresh(); err != nil {
		return nil, err
	}
	for _, list := range [][]*Credential{s.list, s.previous} {
		for _, known := range list {
			if known.fingerprint == fingerprint {
				return known, nil
			}
		}
	}
	if used.After(s.since) {
		return nil, modelgate.ErrCredentialNewer
	}
	return nil, modelgate.ErrCredentialGone
}

// Shows reports whether a text has one of the credentials in it.
func (s *Set) Shows(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, list := range [][]*Credential{s.list, s.previous} {
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

// InUse says that these credentials are used from now on, and no earlier ones.
func (s *Set) InUse() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since = s.now()
}

// refresh reads the file again when it has changed.
func (s *Set) refresh() error {
	now := s.now()
	if s.file == "" || len(s.list) > 0 && now.Sub(s.checked) < fileCheck && !now.Before(s.checked) {
		return nil
	}
	info, err := os.Stat(s.file)
	if err != nil {
		s.list, s.modified = nil, time.Time{}
		return modelgate.ErrCredential
	}
	s.checked = now
	if len(s.list) > 0 && info.ModTime().Equal(s.modified) && info.Size() == s.size {
		return nil
	}
	s.list = nil
	if info.Size() > maxLength {
		return modelgate.ErrCredential
	}
	content, err := os.ReadFile(s.file)
	value := strings.TrimSpace(string(content))
	if err != nil || value == "" || !httpfield.IsValue(value) {
		return modelgate.ErrCredential
	}
	s.list, s.since = []*Credential{of(value)}, now
	s.modified, s.size = info.ModTime(), info.Size()
	return nil
}

// Note lets a credential rest that the provider refused or throttled.
func (s *Set) Note(used *Credential, reply *http.Response) {
	if used == nil || reply.StatusCode != http.StatusUnauthorized && reply.StatusCode != http.StatusTooManyRequests {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
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
