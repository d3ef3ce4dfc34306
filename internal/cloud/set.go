package cloud

import (
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Set holds the identities in use, and keeps those whose configuration stays
// when the file is read again. It is safe for concurrent use, and the collector
// of their metrics.
type Set struct {
	log *slog.Logger

	mu     sync.Mutex
	inUse  map[string]*member // by provider
	counts map[string]*counts // of identities that were replaced, by provider
}

// member is an identity and what it was made of.
type member struct {
	*Identity
	made Config
}

// counts are the counters that outlive an identity.
type counts struct{ refreshed, failed, rejected, unavailable int64 }

// NewSet makes an empty set.
func NewSet(log *slog.Logger) *Set {
	return &Set{log: log, inUse: make(map[string]*member), counts: make(map[string]*counts)}
}

// Next are the identities of a configuration, by provider. They are not in use
// before Use.
func (s *Set) Next(configs []Config) (*Next, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := &Next{set: s, members: make(map[string]*member, len(configs))}
	for _, c := range configs {
		m := &member{made: c}
		if have := s.inUse[c.Provider]; have != nil && reflect.DeepEqual(have.made, c) {
			m = have
		} else {
			identity, err := New(c, s.log)
			if err != nil {
				return nil, fmt.Errorf("provider %s: identity: %w", c.Provider, err)
			}
			m.Identity = identity
		}
		next.members[c.Provider] = m
	}
	return next, nil
}

// Next are identities that are not in use yet.
type Next struct {
	set     *Set
	members map[string]*member
}

// Of is the identity of a provider, nil where it has none.
func (n *Next) Of(provider string) *Identity {
	if m := n.members[provider]; m != nil {
		return m.Identity
	}
	return nil
}

// Use starts the identities, in place of those that are in use.
func (n *Next) Use() {
	n.set.mu.Lock()
	defer n.set.mu.Unlock()
	for provider, old := range n.set.inUse {
		if n.members[provider] != old {
			old.Close()
			n.set.countsOf(provider).add(old.tokens)
		}
	}
	for provider, m := range n.members {
		if n.set.inUse[provider] != m {
			m.Start()
		}
	}
	n.set.inUse = n.members
}

// Close ends the fetching ahead of all identities.
func (s *Set) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.inUse {
		m.Close()
	}
}

func (s *Set) countsOf(provider string) *counts {
	if s.counts[provider] == nil {
		s.counts[provider] = new(counts)
	}
	return s.counts[provider]
}

func (n *counts) add(c *cache) {
	n.refreshed += c.refreshed.Load()
	n.failed += c.failed.Load()
	n.rejected += c.rejected.Load()
	n.unavailable += c.unavailable.Load()
}

// metric describes one of the set's metrics.
func metric(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("modelgate_credential_"+name, help, append([]string{"provider"}, labels...), nil)
}

// Describe sends nothing: which metrics there are depends on the configuration.
func (s *Set) Describe(chan<- *prometheus.Desc) {}

// Collect sends the metrics of every provider with an identity.
func (s *Set) Collect(to chan<- prometheus.Metric) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for provider, m := range s.inUse {
		n := *s.countsOf(provider)
		n.add(m.tokens)
		send := func(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
			to <- prometheus.MustNewConstMetric(d, kind, value, append([]string{provider}, labels...)...)
		}
		refreshes := metric("refreshes_total", "Fetches of the credential of a provider's identity, by outcome.", "outcome")
		send(refreshes, prometheus.CounterValue, float64(n.refreshed), "ok")
		send(refreshes, prometheus.CounterValue, float64(n.failed), "failed")
		send(metric("rejected_total", "Replies that refused the credential or the signature of a provider's identity."), prometheus.CounterValue, float64(n.rejected))
		send(metric("unavailable_total", "Calls refused with 500 because a provider's identity had no credential."), prometheus.CounterValue, float64(n.unavailable))
		if expires, known := m.tokens.expiry(); known {
			send(metric("expiry_timestamp_seconds", "When the credential at hand expires; 0 before there was one."), prometheus.GaugeValue, expires)
		}
	}
}

// expiry is when the credential expires, in seconds of Unix time, 0 before there
// is one. It reports false for one that does not.
func (c *cache) expiry() (seconds float64, known bool) {
	have := c.current.Load()
	if have == nil {
		return 0, true
	}
	return float64(have.expires.UnixNano()) / float64(time.Second), !have.expires.IsZero()
}
